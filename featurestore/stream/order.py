"""The order of an epoch: pure functions, the same on every machine and for every world size.

Examples lie in *sequence order* (split, language, ``seq``). That sequence is cut into chunks of
about 256k pieces, four row groups; chunks are shuffled, a pool of a few chunks is
shuffled example by example, and sorted into batches of like length that are shuffled again. The
files of the table play no part, so neither a compaction nor the race of the workers that wrote
the table changes the order.

Nothing is drawn from a library's generator: permutations sort the output of SplitMix64
(`syntax.mixing`), so a newer NumPy cannot change the order of an old run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed
from syntax.options import Option, check_options

Positions = NDArray[np.int64]
"""Positions of examples in sequence order, or of batches and pools among the ordered examples."""

_Kept = NDArray[np.int32] | NDArray[np.int64]
"""Positions while an order is worked out, in half the memory where there are few enough."""

Lengths = Callable[[NDArray[np.integer]], NDArray[np.integer]]
"""Lengths of examples by their positions. *Shape:* (N,) to (N,)."""


@dataclass(frozen=True, slots=True)
class OrderPolicy:
    """Choices that determine the order of an epoch and its batches, beside the data."""

    batch_size: Annotated[int, Option("Examples in a batch.", low=1)] = 32
    seed: Annotated[
        int,
        Option("With `epoch`, determines the permutation, which is the same for every world size."),
    ] = 0
    epoch: Annotated[int, Option("Number of the epoch.")] = 0
    shuffle: Annotated[
        bool, Option("`False` keeps sequence order (`seq`); `bucket` has no effect then.")
    ] = True
    bucket: Annotated[bool, Option("Batch examples of similar length.")] = True
    pool: Annotated[
        int | None,
        Option(
            "Number of chunks of about 262,144 pieces that are shuffled together: more mix better "
            "and need more memory, up to 24. `None` shuffles everything exactly, and reads all "
            "files once for each 24 chunks.",
            low=1,
        ),
    ] = 8
    batch_tokens: Annotated[
        int | None,
        Option(
            "Instead of `batch_size`: most positions of a padded batch, before "
            "`pad_to_multiple_of`. Batches of short examples then have more examples; an example "
            "that exceeds the limit is a batch of its own.",
            low=1,
        ),
    ] = None
    drop_last: Annotated[
        bool, Option("Leave out the examples that do not fill a batch on every rank.")
    ] = False
    buckets: Annotated[
        tuple[int, ...],
        Option(
            "Instead of a pass over the examples: the most words, ROOT included, of the sentences "
            "of each bucket. An epoch is one batch more than fit into the data; each is drawn from "
            "a bucket that is chosen by its size. Longer sentences are in none. Not together with "
            "`batch_tokens`."
        ),
    ] = ()

    def __post_init__(self) -> None:
        check_options(self)
        if list(self.buckets) != sorted(set(self.buckets)):
            raise SpecError(f"buckets is {self.buckets}; give rising numbers of words")
        if self.buckets and self.batch_tokens is not None:
            raise SpecError(
                "buckets draws batches of batch_size examples, and batch_tokens bounds positions "
                "instead; leave out one of them"
            )


class EpochOrder:
    """All examples in the order of an epoch, worked out pool by pool when they are asked for.

    Args:
        batch_ends: End of each whole batch in the order; what is left after the last one is too
            little for a batch. *Shape:* (J,), int64.
        pool_ends: End of each pool in the order; readers load one pool at a time.
            *Shape:* (P,), int64.
        pool: Gives the examples of a pool, as positions in sequence order.
    """

    def __init__(
        self, batch_ends: Positions, pool_ends: Positions, pool: Callable[[int], _Kept]
    ) -> None:
        self.batch_ends = batch_ends
        self.pool_ends = pool_ends
        self._pool = lru_cache(maxsize=2)(pool)

    def __len__(self) -> int:
        return int(self.pool_ends[-1])

    @property
    def examples(self) -> Positions:
        """All of them, as positions in sequence order. *Shape:* (N,), int64."""
        return self.between(0, len(self))

    def between(self, start: int, end: int) -> Positions:
        """Some of them. *Shape:* (end - start,), int64."""
        found: list[NDArray[Any]] = [np.empty(0, np.int64)]
        while start < min(end, len(self)):
            index = self.pool_of(start)
            before = int(self.pool_ends[index - 1]) if index else 0
            found.append(self._pool(index)[start - before : end - before])
            start = int(self.pool_ends[index])
        return np.concatenate(found)

    def pool_of(self, position: int) -> int:
        return int(self.pool_ends.searchsorted(position, side="right"))


def epoch_order(starts: Positions, total: int, lengths: Lengths, policy: OrderPolicy) -> EpochOrder:
    """The order of one epoch.

    Batches of ``batch_tokens`` end where the lengths say, so that every pool is worked out once.
    ``starts`` (C,) are the first examples of the chunks, ``lengths`` are those after assembly.
    """
    chunks = np.arange(len(starts))
    if policy.shuffle:
        chunks = _permutation(len(starts), policy, "chunks")
    sizes = np.diff(starts, append=total)[chunks]
    ends = _pool_ends(sizes, policy)
    pools = _Pools(starts[chunks], sizes, ends, lengths, policy)
    if policy.batch_tokens is None:
        batch_ends = np.arange(policy.batch_size, total + 1, policy.batch_size)
    else:
        cuts = [before + pools.mixed(index)[1] for index, before in enumerate([0, *ends[:-1]])]
        batch_ends = np.concatenate(cuts)
    return EpochOrder(batch_ends.astype(np.int64), ends, lambda index: pools.mixed(index)[0])


@dataclass(frozen=True)
class _Pools:
    """The pools of an epoch: consecutive parts of the chunks, one after the other.

    Attributes:
        starts: First example of each chunk, in the order of the epoch. *Shape:* (C,).
        sizes: Examples of each chunk. *Shape:* (C,).
        ends: End of each pool. *Shape:* (P,).
    """

    starts: Positions
    sizes: Positions
    ends: Positions
    lengths: Lengths
    policy: OrderPolicy

    def mixed(self, index: int) -> tuple[_Kept, Positions]:
        start, end = int(self.ends[index - 1]) if index else 0, int(self.ends[index])
        return _mixed(self._chunked(start, end), self.lengths, self.policy, index)

    def _chunked(self, start: int, end: int) -> _Kept:
        dtype = _kept_type(int(self.ends[-1]))
        ends = np.cumsum(self.sizes)
        first, last = np.searchsorted(ends, (start, end), side="right").tolist()
        here = slice(first, last + 1)
        chunks = zip(self.starts[here], self.sizes[here], ends[here], strict=True)
        parts = [
            np.arange(
                max(at, at + start - z + size), min(at + size, at + end - z + size), dtype=dtype
            )
            for at, size, z in chunks
        ]
        return np.concatenate([np.empty(0, dtype), *parts])


def drawn_order(lengths: NDArray[np.integer], policy: OrderPolicy) -> EpochOrder:
    """An epoch of batches that are drawn with replacement (Ahmad et al. 2019, released code).

    A batch is a random part of one bucket, all of it where it is smaller than a batch. Examples may
    be in several batches or in none. ``lengths`` are the words of each example, ROOT included, of
    shape (N,).
    """
    owner = np.searchsorted(policy.buckets, lengths).astype(np.int16)
    dtype = _kept_type(len(owner))
    members = [
        np.flatnonzero(owner == bucket).astype(dtype) for bucket in range(len(policy.buckets))
    ]
    ends = np.cumsum([len(own) for own in members])
    if not ends[-1]:
        raise SpecError(
            f"no sentence has at most {policy.buckets[-1]} words, ROOT included; give longer "
            "buckets"
        )
    count = int(ends[-1]) // policy.batch_size + 1
    seed = stream_seed(policy.seed, policy.epoch, "buckets")
    points = splitmix(count, seed) % np.uint64(ends[-1])
    buckets = np.searchsorted(ends, points, side="right")
    sizes = np.minimum([len(own) for own in members], policy.batch_size)
    batch_ends = np.cumsum(sizes[buckets], dtype=np.int64)
    pools = np.append(batch_ends[_DRAWN_TOGETHER - 1 : -1 : _DRAWN_TOGETHER], batch_ends[-1])

    def drawn(pool: int) -> _Kept:
        first = pool * _DRAWN_TOGETHER
        numbers = enumerate(buckets[first : first + _DRAWN_TOGETHER].tolist(), first)
        return np.concatenate([_drawn(members[own], policy, number) for number, own in numbers])

    return EpochOrder(batch_ends, pools, drawn)


def _drawn(members: _Kept, policy: OrderPolicy, number: int) -> _Kept:
    """The first examples of a permutation of a bucket, which is not worked out whole."""
    draws = splitmix(len(members), stream_seed(policy.seed, policy.epoch, f"drawn {number}"))
    size = min(len(members), policy.batch_size)
    # No two outputs of SplitMix64 are equal, and the smallest are almost surely below this.
    bound = np.uint64(min(8 * size * 2**64 // len(members), 2**64 - 1))
    few = np.flatnonzero(draws <= bound)
    few = few if len(few) >= size else np.arange(len(members))
    return members[few[np.argsort(draws[few])[:size]]]


_DRAWN_TOGETHER: Final = 512
"""Drawn batches that are read together: each reading goes through all files."""


def _pool_ends(sizes: Positions, policy: OrderPolicy) -> Positions:
    """Ends of the pools, at whole batches so that no batch needs two pools."""
    total = np.cumsum(sizes, dtype=np.int64)
    pool = policy.pool or len(total) + 1
    whole = policy.batch_size if policy.batch_tokens is None else 1
    ends = total[pool - 1 :: pool] // whole * whole
    inner = ends[(ends > 0) & (ends < total[-1])]
    return np.append(np.unique(inner), total[-1])


def _kept_type(total: int) -> type[np.int32] | type[np.int64]:
    return np.int32 if total <= np.iinfo(np.int32).max else np.int64


def _mixed(
    pool: _Kept, lengths: Lengths, policy: OrderPolicy, index: int
) -> tuple[_Kept, Positions]:
    """A pool, which may be all examples, in the order of the epoch, and the ends of its batches."""
    if not policy.shuffle:
        return pool, _cuts(lengths(pool), policy)
    pool = pool[_permutation(len(pool), policy, f"pool {index}")]
    if not policy.bucket:
        return pool, _cuts(lengths(pool), policy)
    # The odd examples of the last pool stay a random choice, and the last batch.
    whole = len(pool) if policy.batch_tokens else len(pool) // policy.batch_size * policy.batch_size
    of_whole = lengths(pool[:whole])
    ascending = np.argsort(of_whole, kind="stable")
    cuts = _cuts(of_whole[ascending], policy)
    del of_whole
    pool[:whole] = pool[ascending]
    del ascending
    sizes = np.diff(cuts, prepend=0)
    order = _permutation(len(cuts), policy, f"batches {index}")
    ends = np.cumsum(sizes[order], dtype=np.int64)
    # How far each batch moves: from where it ends by length to where it ends in the epoch.
    places = np.repeat((cuts[order] - ends).astype(pool.dtype), sizes[order])
    places += np.arange(whole, dtype=pool.dtype)
    pool[:whole] = pool[places]
    return pool, ends


def _cuts(lengths: NDArray[np.integer], policy: OrderPolicy) -> Positions:
    if policy.batch_tokens is None:
        return np.arange(policy.batch_size, len(lengths) + 1, policy.batch_size)
    ends = [0]
    while ends[-1] < len(lengths):
        ends.append(ends[-1] + _fitting(lengths[ends[-1] :], policy.batch_tokens))
    return np.asarray(ends[1:], np.int64)


def _fitting(lengths: NDArray[np.integer], tokens: int) -> int:
    """Number of examples from the first on that fit into a padded batch; at least one."""
    most = max(tokens // max(int(lengths[0]), 1), 1)
    padded = np.maximum.accumulate(lengths[:most]) * np.arange(1, len(lengths[:most]) + 1)
    return max(int(np.searchsorted(padded, tokens, side="right")), 1)


def _permutation(size: int, policy: OrderPolicy, purpose: str) -> NDArray[np.intp]:
    """A permutation that depends on seed, epoch and purpose alone."""
    seed = stream_seed(policy.seed, policy.epoch, purpose)
    return np.argsort(splitmix(size, seed), kind="stable")
