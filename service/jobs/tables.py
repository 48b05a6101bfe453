"""Job and shard rows in SQL: the truth about what has been accepted and what is done."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("state", String(16), nullable=False),
    # Jobs with one target write to the same partition of one dataset and run in turn.
    Column("target", String(32), nullable=False),
    # Jobs with one source parse the same texts and run in turn. Null in rows of before it.
    Column("source", String(32)),
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
    Index("jobs_by_source", "source", "state", "created"),
)

shards = Table(
    "shards",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job", String(32), ForeignKey("jobs.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", String(16), nullable=False),  # open, done, failed
    Column("owner", String(128)),  # of an open shard that is being worked on
    # No worker, or only the owner, may claim an open shard before this time.
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
