from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestore.stream import order as orders
from featurestore.stream.order import EpochOrder, OrderPolicy, drawn_order
from featurestore.stream.turns import Rounds
from featurestore.tables.rows import CHUNK_PIECES, chunk_starts
from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed

policies = st.builds(
    OrderPolicy,
    batch_size=st.integers(1, 9),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
    shuffle=st.booleans(),
    bucket=st.booleans(),
    pool=st.none() | st.integers(1, 3),
    batch_tokens=st.none() | st.sampled_from([1, 12, 70_000]),
)
lengths = st.lists(st.sampled_from([1, 5, 60_000, 200_000]), min_size=1, max_size=60).map(np.array)


def epoch_order(pieces: np.ndarray, lengths: np.ndarray, policy: OrderPolicy) -> EpochOrder:
    return orders.epoch_order(
        chunk_starts(pieces), len(pieces), lambda examples: lengths[examples], policy
    )


def permuted(items: list, policy: OrderPolicy, purpose: str) -> list:
    draws = splitmix(len(items), stream_seed(policy.seed, policy.epoch, purpose)).tolist()
    return [item for _, item in sorted(zip(draws, items, strict=True), key=lambda pair: pair[0])]


def batched(examples: list[int], pieces: np.ndarray, policy: OrderPolicy) -> list[list[int]]:
    batches: list[list[int]] = []
    for example in examples:
        own = [*(batches[-1] if batches else ()), example]
        size = len(own) * max(pieces[one] for one in own)
        fits = size <= policy.batch_tokens if policy.batch_tokens else len(own) <= policy.batch_size
        batches[len(batches) - bool(batches and fits) :] = [own if fits else [example]]
    return batches


def mixed(pool: list[int], index: int, pieces: np.ndarray, policy: OrderPolicy) -> list[list[int]]:
    """The batches of one pool."""
    if not policy.shuffle:
        return batched(pool, pieces, policy)
    shuffled = permuted(pool, policy, f"pool {index}")
    if not policy.bucket:
        return batched(shuffled, pieces, policy)
    odd = 0 if policy.batch_tokens else len(pool) % policy.batch_size
    full = sorted(shuffled[: len(pool) - odd], key=lambda example: pieces[example])
    batches = permuted(batched(full, pieces, policy), policy, f"batches {index}")
    return [*batches, shuffled[len(pool) - odd :]] if odd else batches


def whole_epoch(pieces: np.ndarray, policy: OrderPolicy) -> list[list[int]]:
    """The batches of an epoch, of all examples at once: the slow twin of `epoch_order`."""
    chunks: dict[int, list[int]] = {}
    for example, before in enumerate((np.cumsum(pieces) - pieces).tolist()):
        chunks.setdefault(before // CHUNK_PIECES, []).append(example)
    ordered = list(chunks.values())
    ordered = permuted(ordered, policy, "chunks") if policy.shuffle else ordered
    sequence = [example for chunk in ordered for example in chunk]
    step, whole = policy.pool or len(ordered) + 1, 1 if policy.batch_tokens else policy.batch_size
    passed = np.cumsum([len(chunk) for chunk in ordered])[step - 1 :: step].tolist()
    ends = sorted({0, *(end // whole * whole for end in passed), len(sequence)})
    pools = [sequence[start:end] for start, end in pairwise(ends)]
    batches = [mixed(pool, index, pieces, policy) for index, pool in enumerate(pools)]
    return [batch for own in batches for batch in own]


@given(lengths, policies)
def test_pools_worked_out_one_by_one_give_the_order_of_the_whole_epoch(pieces, policy) -> None:
    order = epoch_order(pieces, pieces, policy)
    batches = whole_epoch(pieces, policy)
    assert order.examples.tolist() == [example for batch in batches for example in batch]
    is_whole = policy.batch_tokens or len(batches[-1]) == policy.batch_size
    sizes = [len(batch) for batch in (batches if is_whole else batches[:-1])]
    assert order.batch_ends.tolist() == np.cumsum(sizes, dtype=np.int64).tolist()


@given(lengths, policies, st.data())
def test_a_part_of_an_order_is_that_part_of_the_whole(pieces, policy, data) -> None:
    order = epoch_order(pieces, pieces, policy)
    whole = len(pieces)
    at_pools = {at for end in order.pool_ends for at in (end - 1, end, end + 1) if at <= whole}
    bounds = st.sampled_from(sorted(at_pools)) | st.integers(0, whole)
    start, end = sorted(data.draw(st.tuples(bounds, bounds)))
    assert order.between(start, end).tolist() == order.examples[start:end].tolist()


@given(lengths)
def test_a_chunk_starts_wherever_its_pieces_have_been_passed(pieces) -> None:
    numbers = (np.cumsum(pieces) - pieces) // CHUNK_PIECES
    changes = [at for at in range(1, len(pieces)) if numbers[at] != numbers[at - 1]]
    assert chunk_starts(pieces).tolist() == [0, *changes]


@given(lengths, policies)
def test_every_example_comes_once(pieces, policy) -> None:
    order = epoch_order(pieces, pieces, policy)
    assert sorted(order.examples.tolist()) == list(range(len(pieces)))


@given(lengths, policies)
def test_pools_end_at_whole_batches(pieces, policy) -> None:
    ends = epoch_order(pieces, pieces, policy).pool_ends
    assert ends[-1] == len(pieces)
    assert (np.diff(ends) > 0).all()
    batch_ends = epoch_order(pieces, pieces, policy).batch_ends
    assert set(ends[:-1]) <= set(batch_ends)


@given(lengths, policies)
def test_batches_have_the_size_or_the_tokens_that_were_asked_for(pieces, policy) -> None:
    order = epoch_order(pieces, pieces, policy)
    batches = np.split(pieces[order.examples], order.batch_ends)
    whole, rest = batches[:-1], batches[-1]
    if policy.batch_tokens is None:
        assert {len(batch) for batch in whole} <= {policy.batch_size}
        assert len(rest) < policy.batch_size
    else:
        assert all(
            len(batch) == 1 or len(batch) * batch.max() <= policy.batch_tokens for batch in whole
        )
        assert len(rest) == 0
        assert len(whole) == 0 or min(map(len, whole)) > 0


def test_a_token_budget_is_used_up() -> None:
    pieces = np.random.default_rng(1).integers(5, 100, 3000)
    order = epoch_order(pieces, pieces, OrderPolicy(batch_tokens=2048))
    batches = np.split(pieces[order.examples], order.batch_ends)[:-1]
    used = np.array([len(batch) * batch.max() for batch in batches])
    assert used.max() <= 2048
    assert np.median(used) > 0.95 * 2048
    assert pieces.sum() / used.sum() > 0.95


@given(lengths, policies)
def test_the_order_is_a_function_of_its_arguments(pieces, policy) -> None:
    first, second = (epoch_order(pieces, pieces, policy).examples for _ in range(2))
    assert (first == second).all()


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


worlds = st.integers(1, 7)


def rounds(total: int, size: int, world: int, drop_last: bool) -> Rounds:
    return Rounds(total, np.arange(size, total + 1, size), world, drop_last)


def turns(of: Rounds, consumed: int, rank: int):
    while turn := of.turn(consumed, rank):
        yield turn
        consumed = turn.after


def batches_of(of: Rounds, consumed: int = 0) -> list[list[tuple[int, int]]]:
    """Of each rank, where its batches start and end."""
    ranks = range(of.world_size)
    return [[(turn.start, turn.end) for turn in turns(of, consumed, rank)] for rank in ranks]


def seen(by_rank: list[list[tuple[int, int]]]) -> list[int]:
    """All positions, round after round."""
    given = zip(*by_rank, strict=True)
    return [at for one in given for start, end in one for at in range(start, end)]


sizes_of_batches = st.one_of(
    st.lists(st.integers(1, 9), max_size=30),
    st.lists(st.sampled_from([1, 1, 1, 1, 1, 2, 8]), max_size=30),
)


@given(sizes_of_batches, worlds, st.integers(0, 200))
def test_batches_are_split_and_never_joined(sizes, world, start) -> None:
    ends = np.cumsum(sizes, dtype=np.int64)
    total = int(sum(sizes))
    of, start = Rounds(total, ends, world, drop_last=False, joins=False), min(start, total)
    batches = sum(int(end) > start for end in ends)
    if (total - start) // world * world < batches:  # no number of rounds is large enough
        with pytest.raises(SpecError, match="cannot be shared"):
            of.left(start)
        return
    by_rank = batches_of(of, start)
    assert {len(rank) for rank in by_rank} == {of.left(start)} == {-(-batches // world)}
    assert seen(by_rank) == list(range(start, total))
    given = [one for rank in by_rank for one in rank]
    assert not [one for one in given for end in ends if one[0] < end < one[1]]
    assert all(first < end for first, end in given)


@given(sizes_of_batches, worlds, st.data())
def test_a_round_depends_on_its_start_alone(sizes, world, data) -> None:
    of = Rounds(int(sum(sizes)), np.cumsum(sizes, dtype=np.int64), world, drop_last=False)
    if of.total < world:
        return
    whole = list(turns(of, 0, 0))
    done = data.draw(st.integers(1, len(whole)))
    after = whole[done - 1].after
    assert list(turns(of, after, 0)) == whole[done:]
    assert of.left(after) == len(whole) - done


@pytest.mark.slow
@given(st.lists(st.integers(1, 5), max_size=30), worlds)
def test_drop_last_leaves_only_whole_rounds(sizes, world) -> None:
    ends = np.cumsum(sizes, dtype=np.int64)
    of = Rounds(int(sum(sizes)) + 3, ends, world, drop_last=True)
    kept = ([0, *ends.tolist()])[len(ends) // world * world]
    assert seen(batches_of(of)) == list(range(kept))
    assert of.left(0) == len(ends) // world


def test_round_leaves_one_example_per_rank_for_the_next() -> None:
    of = Rounds(33, np.array([8, 16, 24, 32, 33]), 4, drop_last=False)
    ends = [[turn.end for turn in turns(of, 0, rank)] for rank in range(4)]
    assert ends == [[8, 30], [16, 31], [24, 32], [29, 33]]


def test_batches_of_one_example_are_joined_only_where_nothing_else_is_left() -> None:
    singles = np.arange(1, 11)
    of = Rounds(10, singles, 4, drop_last=False)
    sizes = [[end - start for start, end in rank] for rank in batches_of(of)]
    assert sorted(sizes) == [[1, 1], [1, 1], [1, 2], [1, 2]]
    with pytest.raises(SpecError, match=r"10 examples in 10 batches of batch_tokens.*drop_last"):
        Rounds(10, singles, 4, drop_last=False, joins=False).left(0)


@given(st.integers(0, 200), st.integers(1, 6), worlds, st.booleans())
def test_ranks_share_an_epoch_without_loss_or_repetition(total, size, world, drop_last) -> None:
    of = rounds(total, size, world, drop_last)
    if 0 < total < world and not drop_last:
        with pytest.raises(SpecError, match="use fewer ranks"):
            of.turn(0, 0)
        return
    by_rank = batches_of(of)
    kept = total // (size * world) * size * world if drop_last else total
    assert seen(by_rank) == list(range(kept))
    assert {len(rank) for rank in by_rank} == {of.left(0)}
    sizes = [end - start for rank in by_rank for start, end in rank]
    assert all(1 <= one <= max(size, 2 if world > 1 else 1) for one in sizes)


@given(st.integers(1, 200), st.integers(1, 6), worlds, worlds, st.integers(0, 30))
def test_another_world_size_takes_over_in_mid_epoch(total, size, before, after, stop) -> None:
    if total < before:
        return
    first = [
        list(turns(rounds(total, size, before, False), 0, rank))[:stop] for rank in range(before)
    ]
    consumed = first[0][-1].after if first[0] else 0
    if 0 < total - consumed < after:
        return
    rest = [list(turns(rounds(total, size, after, False), consumed, rank)) for rank in range(after)]
    seen = [at for rank in (*first, *rest) for turn in rank for at in range(turn.start, turn.end)]
    assert sorted(seen) == list(range(total))
    assert {len(rank) for rank in rest} == {rounds(total, size, after, False).left(consumed)}


def test_full_rounds_do_not_depend_on_the_world_size() -> None:
    batches = {}
    for world in (1, 2, 3):
        taken = [t for rank in range(world) for t in turns(rounds(60, 5, world, False), 0, rank)]
        batches[world] = {(turn.start, turn.end) for turn in taken}
    assert batches[1] == batches[2] == batches[3]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=60).map(np.array),
    st.integers(1, 9),
    st.integers(0, 3),
)
def test_a_drawn_batch_has_each_sentence_of_a_bucket_once_at_most(words, size, epoch) -> None:
    policy = OrderPolicy(batch_size=size, epoch=epoch, buckets=(5, 10, 30))
    order = drawn_order(words, policy)
    batches = np.split(order.examples, order.batch_ends[:-1])
    assert len(batches) == len(words) // size + 1
    for batch in batches:
        owner = set(np.searchsorted(policy.buckets, words[batch]).tolist())
        (bucket,) = owner
        members = int((np.searchsorted(policy.buckets, words) == bucket).sum())
        assert len(set(batch.tolist())) == len(batch) == min(size, members)
    assert order.pool_ends[-1] == len(order.examples)
    assert set(order.pool_ends) <= set(order.batch_ends)
    again = drawn_order(words, policy)
    assert again.examples.tolist() == order.examples.tolist()


def drawn_epoch(words: np.ndarray, policy: OrderPolicy) -> list[list[int]]:
    """The batches of an epoch, each the start of a whole permutation: the twin of `drawn_order`."""
    owner = np.searchsorted(policy.buckets, words)
    members = [np.flatnonzero(owner == bucket).tolist() for bucket in range(len(policy.buckets))]
    ends = np.cumsum([len(own) for own in members])
    count = int(ends[-1]) // policy.batch_size + 1
    points = splitmix(count, stream_seed(policy.seed, policy.epoch, "buckets"))
    buckets = np.searchsorted(ends, points % np.uint64(ends[-1]), side="right")
    return [
        permuted(members[bucket], policy, f"drawn {number}")[: policy.batch_size]
        for number, bucket in enumerate(buckets)
    ]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=60).map(np.array),
    st.integers(1, 9),
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_batches_drawn_when_they_are_reached_are_those_of_the_whole_epoch(
    words, size, epoch, together
) -> None:
    policy = OrderPolicy(batch_size=size, epoch=epoch, buckets=(5, 10, 30))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "_DRAWN_TOGETHER", together)
        order = drawn_order(words, policy)
        expected = drawn_epoch(words, policy)
        assert order.examples.tolist() == [example for batch in expected for example in batch]
    assert order.batch_ends.tolist() == np.cumsum([len(batch) for batch in expected]).tolist()


def test_every_short_sentence_is_drawn_about_as_often_and_longer_ones_never() -> None:
    words = np.array([3] * 30 + [8] * 10 + [40])
    counts = np.zeros(len(words))
    for epoch in range(400):
        order = drawn_order(words, OrderPolicy(batch_size=5, epoch=epoch, buckets=(5, 10)))
        np.add.at(counts, order.examples, 1)
    assert counts[-1] == 0
    mean = counts[:-1].mean()
    assert np.abs(counts[:-1] / mean - 1).max() < 0.3
    assert abs(counts[30:40].mean() / counts[:30].mean() - 1) < 0.1


def test_buckets_rise_and_hold_something() -> None:
    with pytest.raises(SpecError, match="rising"):
        OrderPolicy(buckets=(5, 5))
    with pytest.raises(SpecError, match="leave out one of them"):
        OrderPolicy(buckets=(5, 9), batch_tokens=50)
    with pytest.raises(SpecError, match="no sentence has at most 5 words"):
        drawn_order(np.array([9]), OrderPolicy(buckets=(5,)))
