"""The order of an epoch: pure functions, the same on every machine and for every world size.

Examples lie in *sequence order* (split, language, ``seq``). That sequence is cut into chunks of
about 256k pieces, which is what a row group holds; chunks are shuffled, a pool of a few chunks is
shuffled example by example, and sorted into batches of like length that are shuffled again. The
files of the table play no part, so neither a compaction nor the race of the workers that wrote
the table changes the order.

Nothing is drawn from a library's generator: permutations sort the output of SplitMix64, whose
definition is fixed (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
generators"), so a newer NumPy cannot change the order of an old run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.fingerprint import fingerprint

CHUNK_PIECES: Final = 262_144
"""Pieces in a chunk, about."""

Order = NDArray[np.int64]


@dataclass(frozen=True)
class OrderPolicy:
    """What the order of an epoch depends on, beside the data.

    Attributes:
        batch_size: Examples in a batch.
        seed, epoch: Choose the permutation.
        shuffle: ``False`` keeps sequence order, and ``bucket`` has no effect then.
        bucket: Batch examples of like length.
        pool: Chunks that are shuffled together; more mixes better and needs more memory. ``None``:
            all of them.

    Raises:
        SpecError: A number is not positive.
    """

    batch_size: int = 32
    seed: int = 0
    epoch: int = 0
    shuffle: bool = True
    bucket: bool = True
    pool: int | None = 8

    def __post_init__(self) -> None:
        for name in ("batch_size", "pool"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} is {value}; it must be at least 1")


@dataclass(frozen=True)
class EpochOrder:
    """All examples in the order of an epoch.

    Attributes:
        examples: Positions in sequence order. Batch ``j`` is the ``j``-th ``batch_size`` of
            them; only the last batch may be smaller. *Shape:* (N,), int64.
        pool_ends: Where each pool ends in ``examples``; readers load one pool at a time.
            *Shape:* (P,), int64.
    """

    examples: Order
    pool_ends: Order

    def pool_of(self, position: int) -> int:
        """The pool in which a position of ``examples`` lies."""
        return int(np.searchsorted(self.pool_ends, position, side="right"))


def epoch_order(
    pieces: NDArray[np.integer], lengths: NDArray[np.integer], policy: OrderPolicy
) -> EpochOrder:
    """The order of one epoch.

    Args:
        pieces: Stored pieces of each example, in sequence order; they set the chunks.
            *Shape:* (N,).
        lengths: Assembled length of each example; buckets are made by it. *Shape:* (N,).
        policy: What else the order depends on.
    """
    chunks = _chunks(pieces)
    if policy.shuffle:
        chunks = [chunks[index] for index in _permutation(len(chunks), policy, "chunks")]
    ends = _pool_ends([len(chunk) for chunk in chunks], policy)
    sequence = np.concatenate([np.empty(0, np.int64), *chunks])
    pools = np.split(sequence, ends[:-1])
    if policy.shuffle:
        pools = [_mixed(pool, lengths, policy, index) for index, pool in enumerate(pools)]
    return EpochOrder(np.concatenate([np.empty(0, np.int64), *pools]), ends)


def _chunks(pieces: NDArray[np.integer]) -> list[Order]:
    """Cut the sequence wherever another `CHUNK_PIECES` have been passed."""
    before = np.cumsum(pieces, dtype=np.int64) - pieces
    numbers = before // CHUNK_PIECES
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    return np.split(np.arange(len(pieces), dtype=np.int64), cuts)


def _pool_ends(sizes: list[int], policy: OrderPolicy) -> Order:
    """Ends of the pools, at whole batches so that no batch needs two pools."""
    total = np.cumsum(sizes, dtype=np.int64)
    pool = policy.pool or len(total) + 1
    ends = total[pool - 1 :: pool] // policy.batch_size * policy.batch_size
    inner = ends[(ends > 0) & (ends < total[-1])]
    return np.append(np.unique(inner), total[-1])


def _mixed(pool: Order, lengths: NDArray[np.integer], policy: OrderPolicy, index: int) -> Order:
    """A pool shuffled; in batches of like length, if the policy says so."""
    shuffled = pool[_permutation(len(pool), policy, f"pool {index}")]
    if not policy.bucket:
        return shuffled
    # The odd examples of the last pool stay a random choice, and the last batch.
    whole = len(pool) // policy.batch_size * policy.batch_size
    full, odd = shuffled[:whole], shuffled[whole:]
    by_length = full[np.argsort(lengths[full], kind="stable")]
    batches = by_length.reshape(-1, policy.batch_size)
    order = _permutation(len(batches), policy, f"batches {index}")
    return np.concatenate([batches[order].reshape(-1), odd])


def _permutation(size: int, policy: OrderPolicy, purpose: str) -> NDArray[np.intp]:
    """A permutation that depends on seed, epoch and purpose alone."""
    stream = int(fingerprint([policy.seed, policy.epoch, purpose])[:16], 16)
    return np.argsort(_splitmix(size, stream), kind="stable")


def _splitmix(size: int, seed: int) -> NDArray[np.uint64]:
    """The first outputs of SplitMix64 from a seed. *Shape:* (size,)."""
    steps = np.arange(1, size + 1, dtype=np.uint64)
    state = np.uint64(seed) + steps * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@dataclass(frozen=True)
class Turn:
    """What one rank reads in one round, and where the next round starts.

    Attributes:
        start, end: The rank's batch, as positions in `EpochOrder.examples`.
        after: Examples that all ranks together have consumed after this round.
    """

    start: int
    end: int
    after: int


def next_turn(
    total: int, consumed: int, batch_size: int, rank: int, world_size: int, drop_last: bool
) -> Turn | None:
    """The batch of a rank in the round that starts when ``consumed`` examples are done.

    A full round gives each rank one batch. What is left in the end is dealt out in near-equal
    parts, so that every rank has the same number of batches, and nothing is lost or repeated;
    when fewer than ``world_size`` examples would be left for a round of their own, the round
    before takes them in, and some batches have one example more than ``batch_size``.

    Args:
        total: Examples in the epoch.
        consumed: Examples that all ranks together have consumed.
        batch_size: Examples in a batch.
        rank: This rank.
        world_size: Number of ranks.
        drop_last: Leave out the examples that do not fill a round.

    Returns:
        The turn; ``None`` at the end of the epoch.

    Raises:
        SpecError: There are fewer examples than ranks.
    """
    left, full = total - consumed, batch_size * world_size
    if left >= full + (0 if drop_last else world_size) or left == full:
        start = consumed + rank * batch_size
        return Turn(start, start + batch_size, consumed + full)
    if left == 0 or drop_last:
        return None
    if left < world_size:
        raise SpecError(f"{left} examples cannot be shared by {world_size} ranks; use fewer ranks")
    size, more = divmod(left, world_size)
    start = consumed + rank * size + min(rank, more)
    return Turn(start, start + size + (rank < more), total)


def turns_left(total: int, consumed: int, batch_size: int, world_size: int, drop_last: bool) -> int:
    """Number of rounds, which is each rank's number of batches, from ``consumed`` on."""
    left, full = total - consumed, batch_size * world_size
    rounds, rest = divmod(left, full)
    if drop_last or not rest:
        return rounds
    return max(rounds, 1) if rest < world_size else rounds + 1
