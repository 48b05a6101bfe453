# The trainer, and the service on a GPU: the CUDA build of torch that constraints.txt names comes
# with the base image.
FROM pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY parsebank ./parsebank
COPY syntax ./syntax
COPY featurestore ./featurestore
COPY service ./service
COPY clients ./clients
COPY trainer ./trainer
RUN pip install -c constraints.txt '.[train,stanza,postgres]' \
    && useradd --create-home --uid 10001 parsebank \
    && install -d -o parsebank /data /models /runs
USER 10001
VOLUME /data /models /runs
ENTRYPOINT ["parsebank"]
CMD ["train", "--list"]
