"""Jobs as they are added, listed, cancelled and tried again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from featurestore import open_store
from service.jobs.ledger import KIND, ReportWriter
from service.jobs.records import Counts, FailedShard, JobFilter, Shard
from syntax.errors import ConflictError, StoreBusyError, UnknownJobError

from .board import OTHER, REQUEST, Board


def test_a_cancelled_job_gives_no_shard_and_tells_its_worker(board: Board) -> None:
    board.add("a", shards=2)
    shard = board.claim()
    assert board.ledger.cancel("a").state == "cancelled"
    assert board.queue.claim("w2") is None
    assert board.ledger.needing_input() == {"a"}  # its worker may still read
    assert board.ledger.needing_input("en") == {"a"}
    assert board.ledger.needing_input("de") == set()
    board.clock.now += 61
    assert board.ledger.needing_input() == set()
    assert board.queue.renew([shard]) == set()
    board.queue.release(shard)
    assert board.queue.owners() == set()
    assert board.ledger.cancel("a").state == "cancelled"


def test_positions_continue_from_job_to_job_of_one_partition(board: Board) -> None:
    board.add("a", shards=2)
    board.add("b", shards=1, request=OTHER)
    board.add("c", shards=1)
    firsts = {}
    while (shard := board.queue.claim("w")) is not None:
        firsts[shard.job] = shard.first_seq
        board.queue.complete(shard, Counts())
    assert firsts == {"a": 0, "b": 0, "c": 20}


def test_the_failed_shards_of_a_failed_job_are_shown_and_run_again_and_no_others(
    board: Board,
) -> None:
    board.add("a", shards=4)
    board.fail("a", 2)
    assert [failure.number for failure in board.ledger.get("a").failures] == [0, 1]
    assert board.complete(Counts(stored=10)) == [2, 3]
    job = board.ledger.get("a")
    error = {"error_type": "store_busy", "message": "full 1", "shard": 1}
    assert (job.state, job.failures[1]) == ("failed", FailedShard(1, 1, error))
    assert board.ledger.list(JobFilter())[0].failures == ()
    job = board.ledger.retry("a")
    assert (job.state, job.shards_done, job.shards_failed) == ("running", 2, 0)
    assert (job.error, job.finished, job.failures) == (None, None, ())
    assert board.complete(Counts(stored=1)) == [0, 1]
    job = board.ledger.get("a")
    assert (job.state, job.counts.stored, job.error) == ("done", 22, None)
    assert job.finished is not None


def test_a_retried_shard_has_all_its_tries_again_and_no_plan(board: Board) -> None:
    board.add("a", shards=1)
    for _ in range(3):
        shard = board.claim()
        board.queue.save_plan(shard, Counts(stored=3))
        board.queue.end_leases("w")
    assert board.queue.fail_exhausted() == 1
    board.ledger.retry("a")
    for tries in (1, 2, 3):
        shard = board.claim()
        assert (shard.tries, shard.plan) == (tries, None)
        board.queue.end_leases("w")


def test_only_a_failed_job_can_be_tried_again(board: Board) -> None:
    board.add("a", shards=1)
    for state in ("queued", "running", "done"):
        with pytest.raises(ConflictError, match=f"job a is {state}"):
            board.ledger.retry("a")
        shard = board.queue.claim("w")
        if state == "running":
            board.queue.end_leases("w")
            board.complete(Counts())
        else:
            assert (shard is None) == (state == "done")
    board.add("b", shards=1)
    board.ledger.cancel("b")
    with pytest.raises(ConflictError, match="cancelled"):
        board.ledger.retry("b")
    with pytest.raises(UnknownJobError):
        board.ledger.retry("x")


def test_a_retried_job_and_a_later_one_for_its_partition_take_turns(board: Board) -> None:
    board.add("a", shards=1)
    board.fail("a", 1)
    board.clock.now += 1
    board.add("b", shards=2)
    later = board.claim("w1")
    assert later.job == "b"
    board.ledger.retry("a")
    assert board.queue.claim("w2") is None  # b still writes, and a comes first
    board.queue.complete(later, Counts())
    assert board.claim("w2").job == "a"


def test_the_input_of_a_failed_job_is_kept_for_a_while(board: Board) -> None:
    board.add("a", shards=1)
    board.fail("a", 1)
    board.clock.now += 99
    assert board.ledger.needing_input() == {"a"}
    board.clock.now += 2
    assert board.ledger.needing_input() == set()


def test_jobs_are_listed_by_state_dataset_and_page(board: Board) -> None:
    other = replace(OTHER, dataset=replace(OTHER.dataset, name="other"))
    for n, request in enumerate([REQUEST, other, REQUEST, REQUEST, other]):
        board.clock.now += n % 2  # some at the same moment
        board.add(f"j{n}", request=request)
    board.ledger.cancel("j0")
    board.ledger.cancel("j1")

    def ids(**wanted: Any) -> list[str]:
        return [job.id for job in board.ledger.list(JobFilter(**wanted))]

    everything = ids()
    assert sorted(everything) == ["j0", "j1", "j2", "j3", "j4"]
    assert set(ids(states=("cancelled",))) == {"j0", "j1"}
    assert set(ids(states=("cancelled", "queued"))) == set(everything)
    assert set(ids(dataset="other")) == {"j1", "j4"}
    assert ids(dataset="other", states=("queued",)) == ["j4"]
    pages = [ids(limit=2)]
    while pages[-1]:
        pages.append(ids(limit=2, before=pages[-1][-1]))
    assert [job for page in pages for job in page] == everything
    for unknown in (lambda: ids(before="x"), lambda: board.ledger.cancel("x")):
        with pytest.raises(UnknownJobError, match="'x'"):
            unknown()


def test_jobs_added_at_once_have_positions_of_their_own(board: Board) -> None:
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(board.add, [f"j{n}" for n in range(12)]))
    firsts = {}
    while (shard := board.queue.claim("w")) is not None:
        firsts[shard.job] = shard.first_seq
        board.queue.complete(shard, Counts())
    assert sorted(firsts.values()) == [30 * n for n in range(12)]


def test_only_one_job_of_a_partition_runs_at_a_time(board: Board) -> None:
    """The first is tried again while the second is at work, and that one then cancelled."""
    board.add("a", shards=8)
    board.clock.now += 1
    board.add("b", shards=8)
    claimants = Claimants(board)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(claimants.work, ["w0", "w1", "w2"]))
    assert claimants.most_jobs_in_hand == 1
    a, b = board.ledger.get("a"), board.ledger.get("b")
    assert (a.state, a.counts.stored, b.state) == ("done", 8, "cancelled")
    assert b.counts.stored == b.shards_done


class Claimants:
    """Workers that note which jobs are in hand at one time, and disturb each other's jobs."""

    def __init__(self, board: Board) -> None:
        self.most_jobs_in_hand = 0
        self._board = board
        self._in_hand: Counter[str] = Counter()
        self._lock = threading.Lock()

    def work(self, name: str) -> None:
        while any(job.is_active for job in self._board.ledger.list(JobFilter())):
            shard = self._board.queue.claim(name)
            if shard is not None:
                self._hold(shard)
                self._settle(shard, name)

    def _hold(self, shard: Shard) -> None:
        with self._lock:
            self._in_hand[shard.job] += 1
            jobs = sum(count > 0 for count in self._in_hand.values())
            self.most_jobs_in_hand = max(self.most_jobs_in_hand, jobs)
        time.sleep(0.01)
        with self._lock:
            self._in_hand[shard.job] -= 1

    def _settle(self, shard: Shard, name: str) -> None:
        self._disturb(shard)
        if (shard.job, shard.number) == ("a", 1) and not self._has_failed():
            self._board.queue.fail(shard, StoreBusyError("full"))
        else:
            self._board.queue.complete(shard, Counts(stored=1))

    def _disturb(self, shard: Shard) -> None:
        if (shard.job, shard.number) == ("b", 1):
            self._board.ledger.retry("a")
        if (shard.job, shard.number) == ("b", 4):
            self._board.ledger.cancel("b")

    def _has_failed(self) -> bool:
        return self._board.ledger.get("b").started is not None


def test_the_report_of_a_cancelled_job_waits_for_its_running_shards(
    board: Board, tmp_path: Path
) -> None:
    with open_store(tmp_path / "store") as store:
        writer = ReportWriter(store, board.ledger)

        def reported() -> dict[str, int]:
            writer.write()
            return {each["job"]: each["stored"] for each in store.fingerprints.all(KIND).values()}

        board.add("a", shards=2)
        shard = board.claim()
        board.ledger.cancel("a")
        assert reported() == {}
        board.clock.now += 30
        board.add("b", shards=1, request=OTHER)
        assert board.complete(Counts(stored=1)) == [0]
        assert reported() == {"b": 1}
        board.queue.complete(shard, Counts(stored=10))
        assert reported() == {"a": 10, "b": 1}
        board.add("c", shards=2)
        assert board.queue.claim("dies") is not None
        board.ledger.cancel("c")
        assert "c" not in reported()
        board.clock.now += 61
        assert reported() == {"a": 10, "b": 1, "c": 0}
