"""Job and shard rows in SQL: the truth about what has been accepted and what is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
)

SQLITE_BUSY_SECONDS = 30

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("state", String(16), nullable=False),
    # Jobs with one target write to the same partition of one dataset and run in turn.
    Column("target", String(32), nullable=False),
    Column("request", JSON, nullable=False),
    Column("examples", BigInteger, nullable=False),
    Column("first_seq", BigInteger, nullable=False),
    Column("shards", Integer, nullable=False),
    Column("shards_done", Integer, nullable=False, default=0),
    Column("shards_failed", Integer, nullable=False, default=0),
    Column("counts", JSON, nullable=False),
    Column("created", Float, nullable=False),
    Column("started", Float),
    Column("finished", Float),
    Column("error", JSON),
    Index("jobs_by_state", "state", "created"),
    Index("jobs_by_target", "target", "created"),
)

shards = Table(
    "shards",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job", String(32), ForeignKey("jobs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", String(16), nullable=False),  # open, done, failed
    Column("owner", String(128)),  # of an open shard that is being worked on
    # Nobody, or nobody but the owner, may take an open shard before this time.
    Column("lease_until", Float, nullable=False, default=0.0),
    Column("tries", Integer, nullable=False, default=0),
    Column("plan", JSON),
    Column("counts", JSON),
    Column("error", JSON),
    UniqueConstraint("job", "number"),
    # In the order of claims, so that a claim reads one row of many thousand.
    Index("shards_to_claim", "job", "state", "lease_until", "number"),
    Index("shards_by_owner", "state", "owner"),
)


def open_database(url: str) -> Engine:
    """Connect, and create the tables that are missing.

    Args:
        url: SQLAlchemy URL, such as ``sqlite:///state/jobs.sqlite`` or ``postgresql://...``.
    """
    engine = create_engine(url, pool_pre_ping=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    metadata.create_all(engine)
    return engine


def sqlite_url(path: Path) -> str:
    """URL of a SQLite file, whose folder is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{path}"


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver would begin transactions late and as readers; two of them that then write
    # deadlock. `_begin_immediate` begins every one as a writer instead.
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_SECONDS * 1000}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # an acknowledged job survives power loss
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
