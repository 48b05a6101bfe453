# The parsing service: CPU only, no torch.
FROM python:3.11-slim-bookworm

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY parsebank ./parsebank
COPY syntax ./syntax
COPY featurestore ./featurestore
COPY service ./service
COPY clients ./clients
COPY trainer ./trainer
RUN pip install -c constraints.txt . \
    && useradd --create-home --uid 10001 parsebank \
    && install -d -o parsebank /data
USER 10001
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["parsebank"]
CMD ["serve", "--store", "/data"]
