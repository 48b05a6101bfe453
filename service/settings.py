"""Everything an operator can set, in one object."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from featurestore import DEFAULT_STORE
from syntax.errors import SpecError

_MIB = 1024 * 1024


class Settings(BaseSettings):
    """Settings of the service; each field is also read from ``PARSEBANK_<FIELD>``.

    Sizes are in the unit that the field's name ends in. Lists and mappings are given as JSON.

    >>> Settings(store="s3://bucket/parses", state_dir="/var/lib/parsebank").is_local_store
    False
    """

    model_config = SettingsConfigDict(
        env_prefix="PARSEBANK_", extra="forbid", protected_namespaces=()
    )

    store: str = Field(
        default=DEFAULT_STORE,
        description="Where parses and features are kept: a folder, or s3://bucket/prefix. Several "
        "services may share it; on a folder only if they share their jobs too (`jobs_url`).",
    )
    state_dir: Path = Field(
        default_factory=lambda fields: _default_state_dir(fields),
        description="Folder of the job tables (SQLite, unless `jobs_url` is set) and of staged "
        "uploads. Must survive restarts, or acknowledged jobs are lost. On a local disk; with "
        "`jobs_url` it may be, and for several replicas must be, a shared one. Default: `state` "
        "inside a local store.",
    )
    commit_seconds: float = Field(
        default=1.0,
        gt=0,
        description="New parses, and rows of the dataset `adhoc`, are committed in groups of this "
        "age. A crash loses at most those of this time, which only costs parsing them again; "
        "shorter means more and smaller files.",
    )
    refresh_seconds: float = Field(
        default=1.0,
        ge=0,
        description="What jobs and other replicas have stored may stay unseen for this long, and "
        "be parsed once more. 0 looks at the store's log for every new text (0.5 ms).",
    )
    models_dir: Path | None = Field(
        default=None,
        description="Folder of further models, searched with its direct sub-folders, at every "
        "request; its models come before the bundled ones. `parsebank models pull` fills it.",
    )
    models_url: str | None = Field(
        default=None,
        description="Where `parsebank models pull` fetches from: URL or path of a copied models "
        "folder. Default: the archives of UDPipe's and Stanza's authors.",
    )
    offline: bool = Field(
        default=False,
        description="Never fetch a model or a tokenizer from the network; `parsebank models pull` "
        "then only takes folders, and of the Hugging Face hub only its cache is used.",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="Where backends that can use a GPU run: `auto` takes one if there is one.",
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
        description="Tokenizer that /info announces and clients use unless told otherwise.",
    )
    tokenizers_dir: Path | None = Field(
        default=None,
        description="Folder of further tokenizers, each in a folder of its own: requests name one "
        "by its path, from there or in full. Other folders cannot be named, but for that of "
        "`tokenizer`; with `/` all can. A client with the service in its own process may name all.",
    )

    host: str = Field(
        default="127.0.0.1",
        description="Address to bind. Any address but loopback is refused unless there is a "
        "`keys_file` or `allow_remote` is set.",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to bind; 0 picks one.")
    allow_remote: bool = Field(
        default=False,
        description="Allow binding a public address without keys. Everyone who reaches it can "
        "parse, read and write the store: put a proxy with authentication in front.",
    )
    keys_file: Path | None = Field(
        default=None,
        description="File of hashed API keys (`parsebank keys add NAME`). With it every request "
        "but for the health checks and the documentation needs a key. Read again when it changes.",
    )
    rate_limit: str | None = Field(
        default=None,
        description="Requests that one key, or without keys one address, may send, such as "
        "`600/minute`; 429 beyond. A key's own limit comes first.",
    )
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Names by which the service may be called, beside addresses, `localhost` and "
        'the name that `host` gives, as ["parsebank.example", "*.corpora.example"]; 403 for '
        'others. ["*"] admits all, and so does a `keys_file` where no name is listed.',
    )
    cors_origins: list[str] = Field(
        default_factory=list,
        description='Origins whose pages may call the service from a browser, as ["https://..."]. '
        "Pages of others can neither read answers nor write.",
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="One line for people, or one JSON object, per event."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level that is logged, to standard error."
    )

    workers: int = Field(
        default_factory=lambda: _cores(),
        ge=1,
        description="Parser processes per loaded model. They share the model's memory; each "
        "adds about 10 MB. More than there are cores gains nothing.",
    )
    job_workers: int = Field(
        default_factory=lambda: _cores(),
        ge=0,
        description="Processes that work on backfill jobs; with the engine `dask` one, whatever "
        "the number. 0 only queues jobs, for a service whose jobs are done by another process.",
    )
    engine: Literal["local", "dask"] = Field(
        default="local",
        description="Where backfill jobs are run: `local` by `job_workers` processes of this "
        "machine, `dask` by the workers of the cluster at `dask_scheduler`.",
    )
    dask_scheduler: str | None = Field(
        default=None,
        description="Address of a running `distributed` scheduler, as tcp://host:8786. Its "
        "workers need the same release of Parsebank, the same models, and the store.",
    )
    jobs_url: str | None = Field(
        default=None,
        description="Database of the job tables, as postgresql://user:password@host:5432/db: "
        "needed by several replicas, which then share their jobs; `state_dir` must be one folder "
        "that all of them see. Default: the SQLite file jobs.sqlite in `state_dir`.",
    )
    job_lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="A shard whose worker gives no sign of life for so long is run again. A "
        "worker gives one every two seconds as long as its process runs, whatever it is doing.",
    )
    job_text_seconds: float = Field(
        default=300.0,
        gt=0,
        description="A job worker that takes longer for one step is ended, and its shard is run "
        "again: for one text or group of texts (of up to 8,000 characters, else in proportion), "
        "for loading a parser, for a commit. Longer than the slowest text takes on a busy machine.",
    )
    job_max_tries: int = Field(
        default=8,
        ge=1,
        description="Workers that may die on a shard before it counts as failed. A text that kills "
        "every worker costs two, or three where it was in hand with others.",
    )
    job_retry_days: float = Field(
        default=7.0,
        ge=0,
        description="How long the upload of a failed job is kept on the disk, so that its failed "
        "shards can be run again.",
    )
    job_idle_seconds: float = Field(
        default=30.0,
        gt=0,
        description="A job worker without work ends after so long and gives its memory back.",
    )
    job_shard_segments: int = Field(
        default=3_000,
        ge=1,
        description="Texts in one shard: what one worker takes, and one commit writes, at once; "
        "a job's last ones are smaller. Claiming and committing take 40 ms a shard, 3,000 "
        "short sentences two seconds.",
    )
    job_max_line_bytes: int = Field(
        default=16 * _MIB, ge=1024, description="Longest line of a backfill upload."
    )
    model_memory_mb: int = Field(
        default=4_096,
        ge=1,
        description="Memory that loaded models and their workers may take together when one more "
        "is loaded; the models unused for longest are unloaded to make room. One may exceed it "
        "alone.",
    )
    worker_max_texts: int = Field(
        default=100_000,
        ge=1,
        description="A parser process is replaced after so many texts, between two batches, so "
        "that a library's leaks stay small.",
    )
    worker_max_growth_mb: int = Field(
        default=512,
        ge=1,
        description="A parser process that has grown by so much since its first batch is "
        "replaced, between two batches; a job worker since its first shard, between two shards.",
    )

    max_body_bytes: int = Field(
        default=16 * _MIB,
        ge=1024,
        description="Largest request body of the interactive routes; 413 beyond. Backfill "
        "uploads are streamed to disk and have no such limit.",
    )
    max_items: int = Field(
        default=1_000,
        ge=1,
        description="Texts in one /parse request, segments in one /features request.",
    )
    max_chars_per_text: int = Field(
        default=200_000, ge=1, description="Longest text, in Unicode code points."
    )
    max_words_per_sentence: int = Field(
        default=1_000,
        ge=1,
        description="Longest sentence, in words. Parsers are quadratic: 1,000 words take UDPipe "
        "half a second, 4,000 eight; they take Stanza six seconds and more.",
    )
    max_matrix_pieces: int = Field(
        default=1_024,
        ge=1,
        description="Longest text, in pieces, whose matrices are answered as JSON.",
    )
    max_matrix_cells: int = Field(
        default=4_000_000,
        ge=1,
        description="Matrix cells in one answer (4 million are about 10 MB of JSON).",
    )
    max_packed_matrix_mb: int = Field(
        default=64,
        ge=0,
        description="Memory for the matrices of one Arrow answer, a byte per cell. They are "
        "answered for texts of up to 4,096 pieces, whatever `max_matrix_pieces` says.",
    )
    max_queued_words: int = Field(
        default=700_000,
        ge=1,
        description="Words waiting for one model's workers; 429 beyond, and 422 for a request "
        "that has more by itself. Larger than what the workers parse within the deadline only "
        "turns 429 into `deadline`.",
    )
    batch_words: int = Field(
        default=350,
        ge=1,
        description="Words handed to a worker at once: enough to hide the round trip "
        "(40 ms of parsing), little enough to spread a request over the workers. Requests take "
        "turns of so many words.",
    )
    batch_wait_seconds: float = Field(
        default=0.0,
        ge=0,
        description="How long a worker with nothing to do waits for a batch to fill. UDPipe gains "
        "nothing by it; Stanza may, under many small requests at once.",
    )
    request_deadline_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Time from arrival to the last parse of a request. A worker still at it is "
        "killed and replaced, and the text fails with `deadline`.",
    )
    model_load_seconds: float = Field(
        default=60.0, gt=0, description="Time a model may take to load before it is given up."
    )
    shutdown_seconds: float = Field(
        default=30.0,
        gt=0,
        description="When told to stop, the service finishes what it has accepted, for at most "
        "so long.",
    )
    ready_answers_mb: int = Field(
        default=64,
        ge=0,
        description="Memory for answers that are kept as ready bytes, for requests that come "
        "again; 0 keeps none.",
    )
    max_loaded_tokenizers: int = Field(
        default=8, ge=1, description="Tokenizers kept in memory (1-300 MB each)."
    )
    hub_timeout_seconds: float = Field(
        default=5.0,
        gt=0,
        description="How long to wait for the Hugging Face hub before a tokenizer name counts as "
        "unknown. With `offline`, or HF_HUB_OFFLINE=1, the hub is never asked.",
    )

    @property
    def is_local_store(self) -> bool:
        """Whether the store is a folder on this machine."""
        return "://" not in self.store


def read_settings(**given: Any) -> Settings:
    """Settings from the environment, overridden by what was given and is not `None`.

    Raises:
        SpecError: A value is not as its field describes.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in error.errors()]
        raise SpecError(f"the settings are wrong: {'; '.join(faults)}") from None


def is_loopback(host: str) -> bool:
    """Whether an address, or ``localhost``, is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _cores() -> int:
    """Cores that this process may use (a container's share, not the machine's)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _default_state_dir(fields: dict[str, Any]) -> Path:
    store = fields.get("store", DEFAULT_STORE)
    return Path("parsebank-state") if "://" in store else Path(store) / "state"
