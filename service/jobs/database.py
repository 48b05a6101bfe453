"""The job tables, and their database: a SQLite file, or PostgreSQL for several replicas.

Both give the same guarantees. SQLite begins every transaction as a writer, so all of them run one
after the other. On PostgreSQL only those do that decide what may run (`taking_turns`); the others
hold the rows that they change.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from sqlalchemy import (
    JSON,
    URL,
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
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.settings import Settings
from syntax.errors import SpecError, WorkError
from syntax.extras import missing_extra

metadata = MetaData()

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("state", String(16), nullable=False),
    # Jobs with one target write to the same partition of one dataset and run in turn.
    Column("target", String(32), nullable=False),
    # Jobs with one source parse the same texts and run in turn.
    Column("source", String(32), nullable=False),
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


BUSY_SECONDS: Final = 30
"""Longest wait of a statement: for a lock, or for a server that does not answer."""

_POSTGRES_DRIVER: Final = "postgresql+pg8000"
_SHORT_FORMS: Final = ("postgresql", "postgres")
_WITH_TIMEOUT: Final = (_POSTGRES_DRIVER, "sqlite", "sqlite+pysqlite")

_TURN: Final = 0x7061727365  # "parse"
"""Key of the advisory lock behind `taking_turns`; the database may have other users."""


class JobDatabaseError(WorkError):
    """The database of the jobs is locked, or does not answer."""


def open_database(url: str) -> Engine:
    """Connect, and create the tables that are missing; replicas may do so at the same time.

    The URL is one of SQLAlchemy, such as ``sqlite:///state/jobs.sqlite`` or
    ``postgresql://user:password@host/database``; with ``?timeout=`` seconds, a statement waits for
    so long instead of `BUSY_SECONDS`.
    """
    engine = _engine(_read_url(url))
    try:
        with transaction(engine) as connection:
            taking_turns(connection)
            metadata.create_all(connection)
    except TypeError as error:  # the driver's own for a parameter that it does not take
        raise SpecError(f"jobs_url: {error}; leave this parameter out") from None
    except JobDatabaseError:
        engine.dispose()
        raise
    return engine


def database_url(settings: Settings) -> str:
    return settings.jobs_url or sqlite_url(settings.state_dir / "jobs.sqlite")


def sqlite_url(path: Path) -> str:
    """URL of a SQLite file, whose folder is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{path}"


_UNWRITABLE: Final = ("readonly database", "unable to open database file")
"""SQLite's messages about a file or folder that it may only read."""


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction that is committed at the end of the block.

    After a `JobDatabaseError` nothing was done, or the answer to the commit was lost.
    """
    try:
        with engine.begin() as connection:
            yield connection
    except (DBAPIError, PoolTimeoutError, OSError) as error:
        place, cause = engine.url.render_as_string(hide_password=True), _cause(error)
        if any(said in cause for said in _UNWRITABLE):
            raise JobDatabaseError(
                f"the job database {place} cannot be written ({cause}); let the service's user "
                "write to its folder, or choose another state_dir (PARSEBANK_STATE_DIR)"
            ) from error
        raise JobDatabaseError(
            f"the job database {place} is locked or does not answer ({cause}); what was accepted "
            "is safe, try again later"
        ) from error


def taking_turns(connection: Connection) -> None:
    """Wait until no other transaction is past this point, until this one ends.

    Adding, claiming and retrying take turns: each looks at several jobs and must not miss what
    another is about to do to them.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_TURN)))


def database_time(connection: Connection) -> float:
    """Seconds since the epoch by the database's clock, which all replicas share."""
    if connection.dialect.name != "postgresql":
        return time.time()
    now = select(func.extract("epoch", func.clock_timestamp()))
    return float(connection.execute(now).scalar_one())


def _cause(error: Exception) -> str:
    """The driver's message; PostgreSQL's is one field of many."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    facts = cause.args[0] if cause is not None and cause.args else None
    return str(facts.get("M")) if isinstance(facts, dict) else str(cause)


def _read_url(url: str) -> URL:
    try:
        read = make_url(url)
    except ArgumentError:
        raise SpecError(
            "jobs_url is not a database URL; expected one such as "
            "postgresql://user:password@host:5432/database"
        ) from None
    return read.set(drivername=_POSTGRES_DRIVER) if read.drivername in _SHORT_FORMS else read


def _engine(url: URL) -> Engine:
    timeout = float(str(url.query.get("timeout", BUSY_SECONDS)))
    try:
        engine = create_engine(
            url.difference_update_query(["timeout"]),
            pool_pre_ping=True,
            connect_args={"timeout": timeout} if url.drivername in _WITH_TIMEOUT else {},
        )
    except (ImportError, ArgumentError) as error:
        raise missing_extra(
            f"the database driver of {url.drivername} is not installed ({error}); begin the URL "
            "with postgresql://, and have its driver",
            "postgres",
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_immediate)
    if url.drivername == _POSTGRES_DRIVER:
        event.listen(engine, "connect", partial(_prepare_postgres, timeout))
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver would begin transactions late and as readers; two of them that then write
    # deadlock. `_begin_immediate` begins every one as a writer instead.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # an acknowledged job survives power loss
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _prepare_postgres(timeout: float, connection: Any, _record: Any) -> None:
    # A process that is stopped, or cut off, in the middle must not hold its locks for ever.
    cursor = connection.cursor()
    for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
        cursor.execute(f"SET {name} = {int(1000 * timeout)}")
    cursor.close()
    connection.commit()
