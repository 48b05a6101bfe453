"""Leases: one shard, one worker, and every shard settled exactly once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from service.jobs.queue import LeaseLostError
from service.jobs.records import Counts
from service.jobs.worker import TaskError
from syntax.errors import StoreBusyError
from syntax.fingerprint import fingerprint

from .board import OTHER, REQUEST, Board


def test_shards_are_claimed_in_order_and_once(board: Board) -> None:
    board.add("a")
    shards = [board.queue.claim(f"w{n}") for n in range(4)]
    assert [shard and shard.number for shard in shards] == [0, 1, 2, None]
    assert board.ledger.get("a").state == "running"
    assert shards[0] is not None
    assert shards[0].request == REQUEST


def test_a_job_is_done_with_its_last_shard_and_its_counts_add_up(board: Board) -> None:
    board.add("a", shards=2)
    for n in range(2):
        shard = board.claim()
        counts = Counts(examples=10, stored=7 + n, dropped={"cycle": 1, f"r{n}": 1}, parsed=5)
        board.queue.complete(shard, counts)
    job = board.ledger.get("a")
    assert (job.state, job.shards_done, job.finished is not None) == ("done", 2, True)
    assert job.counts == Counts(
        examples=20, stored=15, dropped={"cycle": 2, "r0": 1, "r1": 1}, parsed=10
    )


def test_an_expired_lease_passes_to_another_worker_and_the_first_cannot_settle(
    board: Board,
) -> None:
    board.add("a", shards=1)
    first = board.claim("w1")
    board.clock.now += 61
    assert board.queue.overdue_owners() == {"w1"}
    second = board.claim("w2")
    assert (second.number, second.tries) == (0, 2)
    for action in (
        lambda: board.queue.complete(first, Counts()),
        lambda: board.queue.save_plan(first, Counts()),
    ):
        with pytest.raises(LeaseLostError):
            action()
    board.queue.fail(first, ValueError("late"))
    board.queue.release(first, ValueError("late"))
    board.queue.complete(second, Counts(stored=1))
    assert board.ledger.get("a").counts.stored == 1


def test_a_dead_workers_shard_is_free_and_keeps_its_plan(board: Board) -> None:
    board.add("a", shards=1)
    shard = board.claim("w1")
    assert shard.plan is None
    plan = Counts(examples=4, stored=3, dropped={"cycle": 1}, parsed=2, reused=4)
    board.queue.save_plan(shard, plan)
    assert board.queue.owners() == {"w1"}
    board.queue.end_leases("w1")
    again = board.claim("w2")
    assert (again.tries, again.plan) == (2, plan)


def test_an_error_delays_the_next_try_and_the_last_one_fails_the_job(board: Board) -> None:
    board.add("a", shards=2)
    good = board.queue.claim("v")
    for tries in (1, 2, 3):
        bad = board.claim()
        assert (bad.number, bad.tries) == (1, tries)
        board.queue.release(bad, StoreBusyError("full"), delay=5)
        assert board.queue.free(limit=1) == 0
        board.clock.now += 5
    job = board.ledger.get("a")
    assert (job.state, job.shards_failed) == ("running", 1)
    assert job.error == {"error_type": "store_busy", "message": "full", "shard": 1}
    assert good is not None
    board.queue.complete(good, Counts(stored=10))
    job = board.ledger.get("a")
    assert (job.state, job.shards_done, job.counts.stored) == ("failed", 1, 10)


def test_released_try_without_error_does_not_count(board: Board) -> None:
    board.add("a", shards=1)
    for _ in range(5):
        shard = board.claim()
        assert shard.tries == 1
        board.queue.release(shard)


def test_shards_of_a_worker_that_was_ended_are_free_and_their_tries_do_not_count(
    board: Board,
) -> None:
    board.add("a", shards=2)
    held = [board.queue.claim(owner) for owner in ("ended", "other")]
    board.queue.release_all("ended")
    again = board.queue.claim("w")
    assert held[0] is not None
    assert again == replace(held[0], owner="w")
    assert board.queue.owners() == {"w", "other"}
    assert board.queue.claim("w") is None


def test_a_shard_that_kills_every_worker_fails_by_name(board: Board) -> None:
    board.add("a", shards=1)
    for _ in range(3):
        assert board.queue.claim("w") is not None
        assert board.queue.fail_exhausted() == 0
        board.queue.end_leases("w", "worker 7 was killed")
    assert board.queue.claim("w") is None
    assert board.queue.fail_exhausted() == 1
    job = board.ledger.get("a")
    assert job.state == "failed"
    assert job.error is not None
    assert job.error["error_type"] == "worker_died"
    assert job.error["message"] == (
        "3 workers in turn died or stopped answering on shard 0; last: worker 7 was killed"
    )


def test_jobs_for_one_partition_take_turns_and_others_do_not_wait(board: Board) -> None:
    board.add("a", shards=2)
    board.add("b", shards=1)
    board.add("c", shards=1, request=OTHER)
    claimed = [board.queue.claim(f"w{n}") for n in range(4)]
    assert [(s.job, s.number) if s else None for s in claimed] == [
        *(("a", 0), ("a", 1), ("c", 0)),
        None,
    ]
    for shard in claimed[:2]:
        assert shard is not None
        board.queue.complete(shard, Counts())
    assert board.claim("w3").job == "b"


def test_jobs_over_the_same_texts_take_turns_and_other_texts_do_not_wait(board: Board) -> None:
    again = replace(REQUEST, tokenizer_fingerprint=fingerprint("another tokenizer"))
    others = {
        "mode": replace(again, dataset=replace(again.dataset, mode="sentence")),
        "parser": replace(again, parser_fingerprint=fingerprint("another parser")),
        "name": replace(again, dataset=replace(again.dataset, name="other")),
    }
    board.add("first", shards=2)
    board.add("second", shards=1, request=again)
    for name, request in others.items():
        board.add(name, shards=1, request=replace(request, tokenizer_fingerprint=fingerprint(name)))
    claimed = [board.queue.claim(f"w{n}") for n in range(6)]
    jobs = [shard.job for shard in claimed if shard is not None]
    assert (jobs[:2], sorted(jobs[2:])) == (["first", "first"], sorted(others))
    for shard in claimed[:2]:
        assert shard is not None
        board.queue.complete(shard, Counts())
    assert board.claim("w5").job == "second"


@pytest.mark.parametrize("end", ["cancelled", "failed"])
def test_queue_skips_jobs_that_have_ended(board: Board, end: str) -> None:
    board.add("first", shards=1)
    board.add("second", shards=1, request=replace(REQUEST, tokenizer_fingerprint=fingerprint("2")))
    shard = board.claim()
    assert board.queue.claim("v") is None
    if end == "failed":
        board.queue.fail(shard, ValueError("bad"))
    else:
        board.ledger.cancel("first")
    assert board.claim("v").job == "second"
    if end == "failed":  # the first goes on, with the second in hand
        board.ledger.retry("first")
        assert board.queue.claim("w") is not None


def test_a_cancelled_jobs_worker_is_waited_for(board: Board) -> None:
    board.add("a", shards=1)
    shard = board.claim("w1")
    board.add("b", shards=1)
    board.ledger.cancel("a")
    assert board.queue.claim("w2") is None
    board.queue.release(shard)
    assert board.claim("w2").job == "b"


def test_free_shards_are_counted_up_to_a_limit(board: Board) -> None:
    assert board.queue.free(limit=5) == 0
    board.add("a", shards=3)
    board.add("b", shards=3)  # waits for a
    assert (board.queue.free(limit=2), board.queue.free(limit=5)) == (2, 3)
    board.queue.claim("w")
    assert board.queue.free(limit=5) == 2


def test_many_claimants_share_the_shards_without_overlap(board: Board) -> None:
    board.add("a", shards=40)
    taken: list[int] = []

    def work(name: str) -> None:
        while (shard := board.queue.claim(name)) is not None:
            taken.append(shard.number)
            board.queue.complete(shard, Counts(stored=1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, ["w0", "w1", "w2", "w3"]))
    assert sorted(taken) == list(range(40))
    job = board.ledger.get("a")
    assert (job.state, job.counts.stored) == ("done", 40)


def test_many_leases_are_renewed_at_once_and_lost_ones_are_named(board: Board) -> None:
    board.add("a", shards=3)
    board.add("b", shards=1, request=OTHER)
    claimed = [shard for _ in range(4) if (shard := board.queue.claim("w")) is not None]
    assert [shard.job for shard in claimed] == ["a", "a", "a", "b"]
    board.queue.complete(claimed[0], Counts())
    board.ledger.cancel("b")
    board.clock.now += 50
    kept = board.queue.renew(claimed)
    assert kept == {claimed[1].claim, claimed[2].claim}
    assert board.queue.renew([replace(shard, owner="somebody else") for shard in claimed]) == set()
    assert board.queue.renew([]) == set()
    board.clock.now += 50
    assert board.queue.claim("v") is None
    assert board.queue.renew(claimed[:2]) == {claimed[1].claim}


def test_a_failure_that_was_told_from_elsewhere_is_kept_as_it_was_told(board: Board) -> None:
    board.add("a", shards=1)
    shard = board.claim()
    board.queue.fail(shard, TaskError("disk", "full (on tcp://host:1)"))
    job = board.ledger.get("a")
    assert job.error == {"error_type": "disk", "message": "full (on tcp://host:1)", "shard": 0}
