"""Several processes write at once, and some of them die."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from featurestore import open_store
from syntax import fingerprint

from .writers import PROGRAM, assert_kept_at, raw_parses, wait_for


def test_racing_processes_apply_a_transaction_once(tmp_path, writers) -> None:
    started = [writers.start("same", tmp_path, "shard", 6, 5) for _ in range(4)]
    acknowledged = [key for writer in started for key in writer.finish()]
    assert sorted(acknowledged) == sorted(
        fingerprint(["shard", number, row]) for number in range(6) for row in range(5)
    )
    with open_store(tmp_path) as store:
        assert raw_parses(store) == 30


def test_buffered_writers_share_a_table(tmp_path, writers) -> None:
    started = [writers.start("put", tmp_path, f"w{n}", 3, 40) for n in range(2)]
    acknowledged = [key for writer in started for key in writer.finish()]
    assert len(acknowledged) == 2 * 3 * 40
    assert_kept_at(tmp_path, acknowledged)


@pytest.mark.slow_cases
@pytest.mark.parametrize("delay", [0.05, 0.2])
@pytest.mark.parametrize("mode", ["append", "durable"])
def test_killed_writers_lose_nothing_they_acknowledged(tmp_path, writers, mode, delay) -> None:
    started = [writers.start(mode, tmp_path, f"{mode}-{n}", 100_000, 7) for n in range(2)]
    wait_for(lambda: started[0].acknowledged)
    time.sleep(delay)
    for writer in started:
        writer.kill()
    acknowledged = [key for writer in started for key in writer.finish()]
    assert acknowledged
    assert_kept_at(tmp_path, acknowledged)


def test_compaction_runs_among_writers(tmp_path, writers) -> None:
    started = [writers.start("append", tmp_path, f"w{n}", 10, 5) for n in range(2)]
    with open_store(tmp_path) as store:
        while any(writer.status is None for writer in started):
            store.compact()
            time.sleep(0.05)
    acknowledged = [key for writer in started for key in writer.finish()]
    assert len(acknowledged) == 2 * 10 * 5
    assert_kept_at(tmp_path, acknowledged)


def test_an_ordinary_exit_flushes_what_was_buffered(tmp_path) -> None:
    out = tmp_path / "keys"
    arguments = ["forget", str(tmp_path / "store"), "w", "1", "30", str(out)]
    subprocess.run([sys.executable, str(PROGRAM), *arguments], check=True, timeout=120)
    acknowledged = out.read_text().split()
    assert len(acknowledged) == 30
    assert_kept_at(tmp_path / "store", acknowledged)
