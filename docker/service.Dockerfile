# The parsing service on the CPU. docker-compose.yml adds Stanza and PostgreSQL's driver as EXTRAS.
FROM python:3.11-slim-bookworm

# Names of extras of pyproject.toml, as "stanza,postgres". Without them there is no torch inside.
ARG EXTRAS=""
# Stanza's torch comes without CUDA from here; a mirror may replace it.
ARG TORCH_INDEX="https://download.pytorch.org/whl/cpu"

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY parsebank ./parsebank
COPY syntax ./syntax
COPY featurestore ./featurestore
COPY service ./service
COPY clients ./clients
COPY trainer ./trainer
RUN pip install -c constraints.txt --extra-index-url "$TORCH_INDEX" ".${EXTRAS:+[$EXTRAS]}" \
    && useradd --create-home --uid 10001 parsebank \
    && install -d -o parsebank /data /models
USER 10001
VOLUME /data /models
EXPOSE 8000
ENTRYPOINT ["parsebank"]
CMD ["serve", "--store", "/data"]
