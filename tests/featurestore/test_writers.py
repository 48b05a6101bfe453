"""Several processes write at once, and some of them die."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from featurestore import open_store
from syntax import fingerprint

WORKER = Path(__file__).parent / "writer_process.py"


def start(mode: str, store: Path, name: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), mode, str(store), name, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[str]:
    """The keys that a writer acknowledged; it must have ended well, or by our hand."""
    output, errors = process.communicate(timeout=120)
    assert process.returncode in (0, -signal.SIGKILL), errors
    lines = output.split("\n")
    return [line for line in lines[:-1] if line]


def assert_kept(path: Path, acknowledged: list[str]) -> None:
    """Every acknowledged record is there, complete, once to every reader."""
    with open_store(path) as store:
        found = store.parses.get_many(acknowledged)
        assert set(found) == set(acknowledged)
        assert all(record.parse.text == f"{key} ." for key, record in found.items())
        query = "select count(*), count(distinct key) from parses"
        ((rows, keys),) = store.sql(query).fetchall()
        assert rows == keys >= len(set(acknowledged))


def test_four_processes_append_without_losing_a_row(tmp_path) -> None:
    writers = [start("append", tmp_path, f"w{n}", 6, 20) for n in range(4)]
    acknowledged = [key for writer in writers for key in finish(writer)]
    assert len(acknowledged) == 4 * 6 * 20
    assert_kept(tmp_path, acknowledged)


def test_racing_processes_land_a_transaction_once(tmp_path) -> None:
    writers = [start("same", tmp_path, "shard", 6, 5) for _ in range(4)]
    acknowledged = [key for writer in writers for key in finish(writer)]
    assert sorted(acknowledged) == sorted(
        fingerprint(["shard", number, row]) for number in range(6) for row in range(5)
    )
    with open_store(tmp_path) as store:
        files = store.parses.table.snapshot().files
        assert sum(file.rows for file in files) == 30


def test_buffered_writers_share_a_table(tmp_path) -> None:
    writers = [start("put", tmp_path, f"w{n}", 3, 40) for n in range(2)]
    acknowledged = [key for writer in writers for key in finish(writer)]
    assert len(acknowledged) == 2 * 3 * 40
    assert_kept(tmp_path, acknowledged)


def kill_once(tmp_path: Path, mode: str, delay: float) -> int:
    """Kill two writers at a moment; the number of records they had acknowledged."""
    writers = [start(mode, tmp_path, f"{mode}-{n}", 100_000, 7) for n in range(2)]
    deadline = time.monotonic() + 30
    first_commits = tmp_path / "parses" / "_delta_log" / f"{2:020}.json"
    while not first_commits.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    acknowledged = [key for writer in writers for key in finish(writer)]
    assert_kept(tmp_path, acknowledged)
    return len(acknowledged)


@pytest.mark.parametrize("mode", ["append", "durable"])
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path, mode) -> None:
    kept = sum(kill_once(tmp_path / str(trial), mode, 0.2 + 0.15 * trial) for trial in range(2))
    assert kept > 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "durable"])
def test_many_killed_writers_lose_nothing_they_acknowledged(tmp_path, mode) -> None:
    random.seed(20)
    kept = sum(kill_once(tmp_path / str(n), mode, random.uniform(0, 1.5)) for n in range(40))
    assert kept > 0


def test_compaction_runs_among_writers(tmp_path) -> None:
    writers = [start("append", tmp_path, f"w{n}", 10, 5) for n in range(2)]
    with open_store(tmp_path) as store:
        while any(writer.poll() is None for writer in writers):
            store.compact()
            time.sleep(0.05)
    acknowledged = [key for writer in writers for key in finish(writer)]
    assert len(acknowledged) == 2 * 10 * 5
    assert_kept(tmp_path, acknowledged)


def test_an_ordinary_exit_flushes_what_was_buffered(tmp_path) -> None:
    acknowledged = finish(start("forget", tmp_path, "w", 1, 30))
    assert len(acknowledged) == 30
    assert_kept(tmp_path, acknowledged)
