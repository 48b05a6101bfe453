"""Leases that a timer renews, whatever the worker is doing."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path
from threading import Event, Timer

import pytest
from sqlalchemy import select

from service.jobs.database import open_database, shards, sqlite_url
from service.jobs.ledger import JobLedger
from service.jobs.queue import Claims, JobQueue, LeaseLostError
from service.jobs.records import Counts
from service.jobs.worker import InFlightLog, RunningShard, StepTimer

from .board import REQUEST, Board
from .servers import wait_for


def lease_ends(board: Board) -> list[float]:
    with board.engine.connect() as connection:
        return list(connection.execute(select(shards.c.lease_until)).scalars())


def claims_of(board: Board) -> Claims:
    queue = JobQueue(board.engine, lease_seconds=1, max_tries=3, clock=board.clock)
    return Claims("w", queue, Event())


def test_leases_are_renewed_until_they_are_dropped_or_lost(board: Board) -> None:
    board.add("a", shards=2)
    with claims_of(board) as claims:
        first, second = claims.claim(), claims.claim()
        assert first is not None
        assert second is not None
        board.clock.now += 100
        wait_for(lambda: lease_ends(board) == [1101, 1101])
        claims.check(first)
        claims.drop(second)
        board.clock.now += 100
        wait_for(lambda: 1201 in lease_ends(board))
        assert sorted(lease_ends(board)) == [1101, 1201]
        board.ledger.cancel("a")
        wait_for(lambda: claims.is_lost(first))
        with pytest.raises(LeaseLostError):
            claims.check(first)


def test_a_shard_that_its_owner_claims_again_is_another_claim(board: Board) -> None:
    """As after the database was away for longer than the lease: the old run is still out."""
    board.add("a", shards=1)
    claims = claims_of(board)
    old = claims.claim()
    board.clock.now += 2
    new = claims.claim()
    assert old is not None
    assert new is not None
    assert (old.id, old.tries, new.tries) == (new.id, 1, 2)
    with claims:
        wait_for(lambda: claims.is_lost(old))
        for settle in (claims.save_plan, claims.complete):
            with pytest.raises(LeaseLostError):
                settle(old, Counts())
        claims.release(old)
        claims.drop(old)
        claims.check(new)
        assert not claims.is_lost(new)
        claims.complete(new, Counts(examples=10))
    assert board.ledger.get("a").counts == Counts(examples=10)


@pytest.mark.slow
def test_a_step_that_waits_for_the_database_may_take_longer(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "jobs.sqlite")
    engine = open_database(f"{url}?timeout=0.1")
    JobLedger(engine, retry_seconds=1).add("a", REQUEST, examples=1, shard_count=1)
    claims = Claims("w", JobQueue(engine, lease_seconds=60, max_tries=3), Event())
    shard = claims.claim()
    assert shard is not None
    alarms: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: alarms.append(number))
    other = sqlite3.connect(tmp_path / "jobs.sqlite", check_same_thread=False)
    try:
        with InFlightLog(tmp_path, 0, 1) as in_flight, StepTimer(1) as timer:
            running = RunningShard(shard, claims, in_flight, timer, Event())
            for tell in (running.announce, running.complete):
                other.execute("BEGIN EXCLUSIVE")
                Timer(2, other.rollback).start()
                tell(Counts())
    finally:
        signal.signal(signal.SIGALRM, before)
        other.close()
        engine.dispose()
    assert not alarms
