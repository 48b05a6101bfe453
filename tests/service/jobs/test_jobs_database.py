"""The database of the jobs: several at once, restarted, locked, or not there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service.jobs.database import (
    JobDatabaseError,
    database_time,
    open_database,
    taking_turns,
    transaction,
)
from service.jobs.ledger import JobLedger
from service.jobs.queue import JobQueue
from service.jobs.records import Counts, JobFilter
from syntax.errors import MissingExtraError, SpecError

from .board import REQUEST, Board
from .postgres import PostgresServer, postgres_server


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A PostgreSQL that the test may stop."""
    with postgres_server() as server:
        yield server


def test_replicas_that_start_at_once_make_the_tables_once(new_database: str) -> None:
    together = threading.Barrier(6)

    def start() -> Engine:
        together.wait()
        return open_database(new_database)

    with ThreadPoolExecutor(6) as threads:
        engines = [started.result() for started in [threads.submit(start) for _ in range(6)]]
    for engine in engines:
        assert JobLedger(engine).list(JobFilter()) == []
        engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_after_a_restart_of_the_server_everything_goes_on(
    own_server: PostgresServer, mode: str
) -> None:
    engine = open_database(own_server.create("jobs"))
    ledger = JobLedger(engine)
    queue = JobQueue(engine, lease_seconds=60, max_tries=3)
    ledger.add("a", REQUEST, examples=2, shard_count=2)
    shard = queue.claim("w")
    assert shard is not None
    own_server.stop(mode)
    with pytest.raises(JobDatabaseError, match=r"127\.0\.0\.1.*does not answer"):
        ledger.get("a")
    with pytest.raises(JobDatabaseError):
        queue.claim("w")
    own_server.start()
    queue.complete(shard, Counts(stored=1))
    assert [job.shards_done for job in ledger.list(JobFilter())] == [1]
    engine.dispose()


def test_closed_database_connection_is_replaced(
    own_server: PostgresServer,
) -> None:
    engine = open_database(own_server.create("jobs"))
    ledger = JobLedger(engine)
    ledger.add("a", REQUEST, examples=1, shard_count=1)
    own_server.stop()
    own_server.start()
    assert ledger.get("a").state == "queued"
    engine.dispose()


@pytest.mark.parametrize("action", ["add", "claim", "cancel", "retry"])
def test_what_looks_at_several_jobs_waits_for_its_turn(board: Board, action: str) -> None:
    board.add("a", shards=1)
    if action == "retry":
        board.fail("a", 1)
    actions = {
        "add": lambda: board.add("b"),
        "claim": lambda: board.queue.claim("w"),
        "cancel": lambda: board.ledger.cancel("a"),
        "retry": lambda: board.ledger.retry("a"),
    }
    before = board.ledger.list(JobFilter())
    thread = threading.Thread(target=actions[action])
    with transaction(board.engine) as connection:
        taking_turns(connection)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
    thread.join()
    assert board.ledger.list(JobFilter()) != before


def test_clock_is_the_databases_and_monotonic(database: str) -> None:
    engine = open_database(database)
    with transaction(engine) as connection:
        first, second = database_time(connection), database_time(connection)
    assert 1.7e9 < first <= second < 1e10
    engine.dispose()


def test_a_locked_file_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite"
    engine = open_database(f"sqlite:///{path}?timeout=0.1")
    patient = open_database(f"sqlite:///{path}")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JobDatabaseError, match=r"jobs\.sqlite is locked .*try again"):
            JobLedger(engine).list(JobFilter())
        waiting = threading.Thread(
            target=JobLedger(patient).add,
            args=("a", REQUEST),
            kwargs={"examples": 1, "shard_count": 1},
        )
        waiting.start()
        waiting.join(0.2)
        other.execute("COMMIT")
        waiting.join()
    assert [job.id for job in JobLedger(engine).list(JobFilter())] == ["a"]
    for used in (engine, patient):
        used.dispose()


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("not a url", SpecError, "expected one such as postgresql://"),
        ("oracle://scott@host/db", MissingExtraError, r"pip install .*\[postgres\]'"),
        ("postgresql://u:secret@127.0.0.1:9/db", JobDatabaseError, r"u:\*\*\*@127\.0\.0\.1:9"),
        ("postgresql://u@127.0.0.1:9/db?colour=red", SpecError, "colour"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(
    url: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        open_database(url)
    assert "secret" not in str(raised.value)


def test_database_error_quotes_the_server(postgres: PostgresServer) -> None:
    with pytest.raises(JobDatabaseError, match=r'\(database "nowhere" does not exist\)'):
        open_database(f"postgresql://{postgres.address}/nowhere")


def test_without_the_driver_the_line_that_installs_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "pg8000.py").write_text("raise ImportError('not here')")
    code = "from service.jobs.database import open_database; open_database('postgresql://h/d')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "[postgres]'" in done.stderr
