"""Leases that a timer renews, whatever the worker is doing."""

from __future__ import annotations

from threading import Event

import pytest
from sqlalchemy import select

from service.jobs.desk import Desk
from service.jobs.leases import Leases
from service.jobs.queue import JobQueue, LeaseLostError
from service.jobs.records import Counts
from service.jobs.tables import shards

from .board import Board
from .servers import wait_for


def lease_ends(board: Board) -> list[float]:
    with board.engine.connect() as connection:
        return list(connection.execute(select(shards.c.lease_until)).scalars())


def test_leases_are_renewed_until_they_are_dropped_or_lost(board: Board) -> None:
    board.add("a", shards=2)
    queue = JobQueue(board.engine, lease_seconds=1, max_tries=3, clock=board.clock)
    desk = Desk("w", queue, Event())
    with Leases(desk) as leases:
        first, second = desk.claim(), desk.claim()
        assert first is not None
        assert second is not None
        leases.keep(first)
        leases.keep(second)
        board.clock.now += 100
        wait_for(lambda: lease_ends(board) == [1101, 1101])
        leases.check(first)
        leases.drop(second)
        board.clock.now += 100
        wait_for(lambda: 1201 in lease_ends(board))
        assert sorted(lease_ends(board)) == [1101, 1201]
        board.ledger.cancel("a")
        wait_for(lambda: leases.is_lost(first))
        with pytest.raises(LeaseLostError):
            leases.check(first)


def test_a_shard_that_its_owner_claims_again_is_another_claim(board: Board) -> None:
    """As after the database was away for longer than the lease: the old run is still out."""
    board.add("a", shards=1)
    queue = JobQueue(board.engine, lease_seconds=1, max_tries=3, clock=board.clock)
    desk = Desk("w", queue, Event())
    old = desk.claim()
    board.clock.now += 2
    new = desk.claim()
    assert old is not None
    assert new is not None
    assert (old.id, old.tries, new.tries) == (new.id, 1, 2)
    with Leases(desk) as leases:
        leases.keep(old)
        leases.keep(new)
        wait_for(lambda: leases.is_lost(old))
        with pytest.raises(LeaseLostError):
            desk.save_plan(old, Counts())
        with pytest.raises(LeaseLostError):
            desk.complete(old, Counts())
        desk.release(old)
        leases.drop(old)
        leases.check(new)
        assert not leases.is_lost(new)
        desk.complete(new, Counts(examples=10))
    assert board.ledger.get("a").counts == Counts(examples=10)
