from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestore.stream.order import (
    CHUNK_PIECES,
    OrderPolicy,
    epoch_order,
    next_turn,
    turns_left,
)
from syntax.errors import SpecError

policies = st.builds(
    OrderPolicy,
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
    shuffle=st.booleans(),
    bucket=st.booleans(),
    pool=st.integers(1, 3),
)
lengths = st.lists(st.sampled_from([1, 5, 60_000, 200_000]), min_size=1, max_size=60).map(np.array)


@given(lengths, policies)
def test_every_example_comes_once(pieces, policy) -> None:
    order = epoch_order(pieces, pieces, policy)
    assert sorted(order.examples.tolist()) == list(range(len(pieces)))


@given(lengths, policies)
def test_pools_end_at_whole_batches(pieces, policy) -> None:
    ends = epoch_order(pieces, pieces, policy).pool_ends
    assert ends[-1] == len(pieces)
    assert (ends[:-1] % policy.batch_size == 0).all()
    assert (np.diff(ends) > 0).all()


@given(lengths, policies)
def test_the_order_is_a_function_of_its_arguments(pieces, policy) -> None:
    first, second = (epoch_order(pieces, pieces, policy).examples for _ in range(2))
    assert (first == second).all()


def test_unshuffled_order_is_sequence_order() -> None:
    pieces = np.full(1000, 700)
    order = epoch_order(pieces, pieces, OrderPolicy(shuffle=False))
    assert order.examples.tolist() == list(range(1000))


def test_seed_and_epoch_change_the_order() -> None:
    pieces = np.full(500, 10)
    orders = {
        tuple(epoch_order(pieces, pieces, OrderPolicy(seed=seed, epoch=epoch)).examples)
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(orders) == 9


def test_the_order_of_old_runs_does_not_change() -> None:
    pieces = np.arange(20) % 7 + 1
    order = epoch_order(pieces, pieces, OrderPolicy(batch_size=4, seed=1, epoch=2))
    expected = [12, 5, 6, 13, 8, 1, 2, 9, 4, 18, 11, 19, 0, 14, 7, 15, 16, 3, 17, 10]
    assert order.examples.tolist() == expected


def test_buckets_hold_examples_of_like_length() -> None:
    rng = np.random.default_rng(0)
    pieces = rng.integers(5, 100, 2000)
    bucketed = epoch_order(pieces, pieces, OrderPolicy(bucket=True)).examples
    mixed = epoch_order(pieces, pieces, OrderPolicy(bucket=False)).examples

    def padding(order: np.ndarray) -> float:
        batches = [pieces[order[at : at + 32]] for at in range(0, 2000, 32)]
        return sum(batch.max() * len(batch) for batch in batches) / pieces.sum()

    assert padding(bucketed) < 1.05 < 1.5 < padding(mixed)


def test_bucketed_batches_are_not_sorted_by_length() -> None:
    pieces = np.arange(3200) // 40
    order = epoch_order(pieces, pieces, OrderPolicy(batch_size=32)).examples
    means = order.reshape(-1, 32).mean(1)
    assert abs(np.corrcoef(means, np.arange(100))[0, 1]) < 0.35


def test_a_pool_mixes_a_bounded_number_of_chunks() -> None:
    pieces = np.full(64, CHUNK_PIECES // 4)
    order = epoch_order(pieces, pieces, OrderPolicy(batch_size=1, pool=2))
    pools = np.split(order.examples, order.pool_ends[:-1])
    assert len(pools) == 8
    assert all(len({example // 4 for example in pool.tolist()}) == 2 for pool in pools)


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SpecError, match="batch_size is 0"):
        OrderPolicy(batch_size=0)


worlds = st.integers(1, 7)


def turns(total: int, consumed: int, size: int, rank: int, world: int, drop_last: bool):
    while turn := next_turn(total, consumed, size, rank, world, drop_last):
        yield turn
        consumed = turn.after


@given(st.integers(0, 200), st.integers(1, 6), worlds, st.booleans())
def test_ranks_share_an_epoch_without_loss_or_repetition(total, size, world, drop_last) -> None:
    if 0 < total < world and not drop_last:
        with pytest.raises(SpecError, match="use fewer ranks"):
            next_turn(total, 0, size, 0, world, drop_last)
        return
    by_rank = [list(turns(total, 0, size, rank, world, drop_last)) for rank in range(world)]
    seen = sorted(at for rank in by_rank for turn in rank for at in range(turn.start, turn.end))
    kept = total // (size * world) * size * world if drop_last else total
    assert seen == list(range(kept))
    assert {len(rank) for rank in by_rank} == {turns_left(total, 0, size, world, drop_last)}
    sizes = [turn.end - turn.start for rank in by_rank for turn in rank]
    assert all(1 <= one <= size + 1 for one in sizes)


@given(st.integers(1, 200), st.integers(1, 6), worlds, worlds, st.integers(0, 30))
def test_another_world_size_takes_over_in_mid_epoch(total, size, before, after, rounds) -> None:
    if total < before:
        return
    first = [list(turns(total, 0, size, rank, before, False))[:rounds] for rank in range(before)]
    consumed = first[0][-1].after if first[0] else 0
    if 0 < total - consumed < after:
        return
    rest = [list(turns(total, consumed, size, rank, after, False)) for rank in range(after)]
    seen = [at for rank in (*first, *rest) for turn in rank for at in range(turn.start, turn.end)]
    assert sorted(seen) == list(range(total))
    assert {len(rank) for rank in rest} == {turns_left(total, consumed, size, after, False)}


def test_full_rounds_do_not_depend_on_the_world_size() -> None:
    batches = {}
    for world in (1, 2, 3):
        taken = [t for rank in range(world) for t in turns(60, 0, 5, rank, world, False)]
        batches[world] = {(turn.start, turn.end) for turn in taken}
    assert batches[1] == batches[2] == batches[3]


def test_without_pools_everything_is_mixed() -> None:
    pieces = np.full(64, CHUNK_PIECES // 4)
    order = epoch_order(pieces, pieces, OrderPolicy(batch_size=1, pool=None))
    assert order.pool_ends.tolist() == [64]
    assert sorted(order.examples.tolist()) == list(range(64))
    assert len({example // 4 for example in order.examples[:8].tolist()}) > 2
