"""Everything an operator can set, in one object."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from featurestore import DEFAULT_STORE
from syntax.errors import SpecError
from syntax.fingerprint import MAX_WORDS

_MIB = 1024 * 1024


class Settings(BaseSettings):
    """Settings of the service; each field is also read from ``PARSEBANK_<FIELD>``.

    Sizes are in the unit that the field's name ends in. Lists and mappings are given as JSON.

    >>> Settings(store="s3://bucket/parses", state_dir="/var/lib/parsebank").is_local_store
    False
    """

    model_config = SettingsConfigDict(
        env_prefix="PARSEBANK_", extra="forbid", protected_namespaces=(), allow_inf_nan=False
    )

    store: str = Field(
        default=DEFAULT_STORE,
        description="Store of parses and features: a folder or s3://bucket/prefix. Several "
        "services may share it; a shared folder also needs shared jobs (`jobs_url`).",
    )
    state_dir: Path = Field(
        default_factory=lambda fields: _default_state_dir(fields),
        description="Folder of the job tables (SQLite, unless `jobs_url` is set) and of staged "
        "uploads. It must survive restarts, or accepted jobs are lost. Use a local disk; with "
        "`jobs_url` it may be shared, and several replicas must share it. Default: `state` inside "
        "a local store.",
    )
    read_only: bool = Field(
        default=False,
        description="Answer, parse and query, and keep nothing: no parse, no row, no job. Also "
        "without it a service is read-only, and warns of it at its start, where it may not write "
        "to the folder of an existing store.",
    )
    commit_seconds: float = Field(
        default=1.0,
        gt=0,
        description="How often new parses and rows of the dataset `adhoc` are committed. A crash "
        "loses at most those of this time, which then have to be parsed again; a shorter time "
        "means more and smaller files.",
    )
    refresh_seconds: float = Field(
        default=1.0,
        ge=0,
        description="How long parses that jobs and other replicas store may stay unseen, and be "
        "parsed again. 0 reads the store's log for every new text (0.5 ms).",
    )
    models_dir: Path | None = Field(
        default=None,
        description="Folder of further models, searched with its direct sub-folders at every "
        "request; its models are preferred to the bundled ones. `parsebank models pull` fills it.",
    )
    models_url: str | None = Field(
        default=None,
        description="Source of `parsebank models pull`: URL or path of a copied models folder. "
        "Default: the archives of UDPipe's and Stanza's authors.",
    )
    offline: bool = Field(
        default=False,
        description="Never fetch a model or tokenizer from the network. `parsebank models pull` "
        "then takes only folders, and tokenizers of the Hugging Face hub come only from its cache.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="Device of backends that can use a GPU; `auto` uses a GPU if there is one.",
    )

    lang: str = Field(
        default="en", description="Language of a request that names neither language nor parser."
    )
    parsers: dict[str, str] = Field(
        default_factory=dict,
        description='Parser for a language that several models serve, as {"en": "udpipe/..."}.',
    )
    tokenizer: str = Field(
        default="parsebank-wordpiece-en",
        description="Default tokenizer of clients; `/info` shows it.",
    )
    tokenizers_dir: Path | None = Field(
        default=None,
        description="Folder of further tokenizers, one sub-folder each. Requests name one by its "
        "relative or absolute path. Requests cannot name other folders, except that of "
        "`tokenizer`; `/` permits all. A client with the service in its own process may name any "
        "folder.",
    )

    host: str = Field(
        default="127.0.0.1",
        description="Address to bind. Addresses other than loopback need `keys_file` or "
        "`allow_remote`.",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to bind; 0 picks one.")
    allow_remote: bool = Field(
        default=False,
        description="Allow binding a public address without keys. Everyone who reaches it can "
        "parse, read and write the store: put a proxy with authentication in front.",
    )
    keys_file: Path | None = Field(
        default=None,
        description="File of hashed API keys (`parsebank keys add NAME`). With it, every request "
        "except health checks and the documentation needs a key. Changes take effect at once.",
    )
    rate_limit: str | None = Field(
        default=None,
        description="Most requests per key (without keys: per address), such as `600/minute`; 429 "
        "beyond. A key's own limit replaces it.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Names by which the service may be called, in addition to IP addresses, "
        '`localhost` and the name in `host`, as ["parsebank.example", "*.corpora.example"]; '
        'others get 403. ["*"] admits all names, as does a `keys_file` if this list is empty.',
    )
    cors_origins: list[str] = Field(
        default_factory=list,
        description='Origins whose pages may call the service from a browser, as ["https://..."]. '
        "Pages of other origins can neither read answers nor write.",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="One line for people, or one JSON object, per event."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level that is logged (to standard error)."
    )

    workers: int = Field(
        default_factory=lambda: _cores(),
        ge=1,
        description="Parser processes per loaded model. They share the model's memory; each "
        "adds about 10 MB. More workers than cores gain nothing.",
    )
    job_workers: int = Field(
        default_factory=lambda: _cores(),
        ge=0,
        description="Processes that work on backfill jobs; the engine `dask` uses one for any "
        "number. 0 only queues jobs, which another process runs.",
    )
    job_nice: int = Field(
        default=10,
        ge=0,
        le=19,
        description="Niceness of the processes that work on backfill jobs. That of the parsers of "
        "requests is 5, so that requests come first with more. On a machine with other work, jobs "
        "get a small share with 10; choose 0 where nobody waits for requests, as a service inside "
        "a client does (`parsebank backfill` without `--url`).",
    )
    engine: Literal["local", "dask"] = Field(
        default="local",
        description="What runs backfill jobs: `local`, `job_workers` processes of this machine; "
        "`dask`, the workers of the cluster at `dask_scheduler`.",
    )
    dask_scheduler: str | None = Field(
        default=None,
        description="Address of a running `distributed` scheduler, as tcp://host:8786. Its "
        "workers need the same release of Parsebank, the same models, and the store.",
    )
    jobs_url: str | None = Field(
        default=None,
        description="Database of the job tables, as postgresql://user:password@host:5432/db: "
        "several replicas share jobs by it, and must also share the folder `state_dir`. Default: "
        "the SQLite file jobs.sqlite in `state_dir`.",
    )
    job_lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="Time without a heartbeat of its worker after which a shard is run again. A "
        "worker sends a heartbeat every two seconds as long as its process runs.",
    )
    job_text_seconds: float = Field(
        default=300.0,
        gt=0,
        description="Longest step of a job worker: one text or group of texts (of up to 8,000 "
        "characters, otherwise in proportion), loading a parser, or a commit. After it the worker "
        "is ended and its shard run again. Choose more than the slowest text takes on a busy "
        "machine.",
    )
    job_max_tries: int = Field(
        default=8,
        ge=1,
        description="Workers that may die on a shard before it fails. A text that kills every "
        "worker costs two, or three if it was parsed together with others.",
    )
    job_retry_days: float = Field(
        default=7.0,
        ge=0,
        description="How long the upload of a failed job is kept, so that you can retry its "
        "failed shards.",
    )
    job_idle_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Time without work after which a job worker ends and frees its memory.",
    )
    job_shard_segments: int = Field(
        default=3_000,
        ge=1,
        description="Texts in one shard, which one worker takes and one commit writes; the last "
        "shards of a job are smaller. Claiming and committing take 40 ms per shard, 3,000 short "
        "sentences two seconds.",
    )
    job_max_line_bytes: int = Field(
        default=16 * _MIB, ge=1024, description="Longest line of a backfill upload."
    )
    model_memory_mb: int = Field(
        default=4_096,
        ge=1,
        description="Memory of all loaded models and their workers. To load another one, the "
        "service unloads the models unused for longest. A single model may exceed the limit. A "
        "model never loaded is expected to take four times its files plus 100 MB (400 for "
        "neural models). GPU memory is not counted.",
    )
    worker_max_texts: int = Field(
        default=100_000,
        ge=1,
        description="Texts after which a parser process is replaced, between two batches, so that "
        "leaks of a library stay small.",
    )
    worker_max_growth_mb: int = Field(
        default=512,
        ge=1,
        description="Growth after which a process is replaced: a parser process since its first "
        "batch, between two batches; a job worker since its first shard, between two shards.",
    )

    max_body_bytes: int = Field(
        default=16 * _MIB,
        ge=1024,
        description="Largest request body; 413 beyond. Backfill uploads are streamed to disk and "
        "have no such limit.",
    )
    max_items: int = Field(
        default=1_000,
        ge=1,
        description="Most texts in a `/parse` request, or segments in a `/features` request.",
    )
    max_chars_per_text: int = Field(
        default=200_000, ge=1, description="Longest text, in Unicode code points."
    )
    max_words_per_sentence: int = Field(
        default=MAX_WORDS,
        ge=1,
        description="Longest sentence, in words. Parsing time is quadratic: UDPipe takes half a "
        "second for 1,000 words and eight for 4,000; Stanza takes six seconds and more for 1,000.",
    )
    max_matrix_pieces: int = Field(
        default=1_024,
        ge=1,
        description="Longest text, in pieces, whose matrices JSON answers contain.",
    )
    max_matrix_cells: int = Field(
        default=4_000_000,
        ge=1,
        description="Most matrix cells in one JSON answer (4 million are about 10 MB).",
    )
    max_packed_matrix_mb: int = Field(
        default=64,
        ge=0,
        description="Memory of the matrices in one Arrow answer, a byte per cell. Arrow answers "
        "ignore `max_matrix_pieces` and contain matrices of texts of up to 4,096 pieces.",
    )
    max_queued_words: int = Field(
        default=700_000,
        ge=1,
        description="Most words that wait for one model's workers; 429 beyond, and 422 for a "
        "single request with more. A value above what the workers parse within the deadline only "
        "turns 429 into `deadline`.",
    )
    batch_words: int = Field(
        default=350,
        ge=1,
        description="Words that a worker receives at once: enough to hide the round trip (40 ms "
        "of parsing), few enough to spread a request over the workers. Requests take turns of "
        "this many words.",
    )
    batch_wait_seconds: float = Field(
        default=0.0,
        ge=0,
        description="How long an idle worker waits for a batch to fill. UDPipe gains nothing; "
        "Stanza may gain under many small concurrent requests.",
    )
    request_deadline_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Time from the arrival of a request to its last parse. A text that is not "
        "parsed then fails with `deadline`, and a worker that is parsing it is replaced.",
    )
    model_load_seconds: float = Field(
        default=60.0, gt=0, description="Longest time in which a model must load."
    )
    shutdown_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Longest time in which the service finishes accepted requests when it stops.",
    )
    response_cache_mb: int = Field(
        default=64,
        ge=0,
        description="Memory of the cache of finished answers to repeated requests; 0 keeps none.",
    )
    max_loaded_tokenizers: int = Field(
        default=8, ge=1, description="Most tokenizers in memory (1-300 MB each)."
    )
    hub_timeout_seconds: float = Field(
        default=5.0,
        gt=0,
        description="How long to wait for the Hugging Face hub before a tokenizer name counts as "
        "unknown. With `offline` or HF_HUB_OFFLINE=1, the service never asks the hub.",
    )

    @field_validator("port", mode="before")
    @classmethod
    def _port(cls, value: Any) -> Any:
        # Kubernetes sets PARSEBANK_PORT=tcp://... in pods beside a Service named parsebank.
        return 8000 if str(value).startswith("tcp://") else value

    @property
    def is_local_store(self) -> bool:
        return "://" not in self.store


def read_settings(**given: Any) -> Settings:
    return checked_settings({name: value for name, value in given.items() if value is not None})


def checked_settings(fields: Mapping[str, Any]) -> Settings:
    try:
        Settings()
        return Settings(**fields)
    except ValidationError as error:
        faults = "; ".join(
            f"{name} (PARSEBANK_{name.upper()}) is {fault['input']!r}: {fault['msg']}"
            for fault in error.errors()
            for name in [".".join(map(str, fault["loc"]))]
        )
    except SettingsError as error:
        faults = f"{error}; give it as JSON"
    raise SpecError(f"the settings are wrong: {faults}")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cores() -> int:
    """Cores of the process: a container's share, not the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default_state_dir(fields: dict[str, Any]) -> Path:
    store = fields.get("store", DEFAULT_STORE)
    return Path("parsebank-state") if "://" in store else Path(store) / "state"
