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

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed

CHUNK_PIECES: Final = 262_144
"""Pieces in a chunk, about."""

Order = NDArray[np.int64]


@dataclass(frozen=True)
class OrderPolicy:
    """What the order of an epoch depends on, beside the data.

    Attributes:
        batch_size: Examples in a batch.
        batch_tokens: Instead: positions in a padded batch, at most (an example that is longer is
            a batch of its own).
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
    batch_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "batch_tokens", "pool"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} is {value}; it must be at least 1")


@dataclass(frozen=True)
class EpochOrder:
    """All examples in the order of an epoch.

    Attributes:
        examples: Positions in sequence order. *Shape:* (N,), int64.
        batch_ends: Where each whole batch ends in ``examples``; what is left after the last one
            is too little for a batch. *Shape:* (J,), int64.
        pool_ends: Where each pool ends in ``examples``; readers load one pool at a time.
            *Shape:* (P,), int64.
    """

    examples: Order
    batch_ends: Order
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
    mixed = [_mixed(pool, lengths, policy, index) for index, pool in enumerate(pools)]
    examples = np.concatenate([np.empty(0, np.int64), *(pool for pool, _ in mixed)])
    if policy.batch_tokens is None:
        batch_ends = np.arange(policy.batch_size, len(examples) + 1, policy.batch_size)
    else:
        starts = np.append(0, ends)
        batch_ends = np.concatenate([start + cuts for start, (_, cuts) in zip(starts, mixed)])  # noqa: B905 - no pool begins at the last end
    return EpochOrder(examples, batch_ends.astype(np.int64), ends)


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
    whole = policy.batch_size if policy.batch_tokens is None else 1
    ends = total[pool - 1 :: pool] // whole * whole
    inner = ends[(ends > 0) & (ends < total[-1])]
    return np.append(np.unique(inner), total[-1])


def _mixed(
    pool: Order, lengths: NDArray[np.integer], policy: OrderPolicy, index: int
) -> tuple[Order, Order]:
    """A pool in the order of the epoch, and where its batches end."""
    if not policy.shuffle:
        return pool, _cuts(lengths[pool], policy)
    shuffled = pool[_permutation(len(pool), policy, f"pool {index}")]
    if not policy.bucket:
        return shuffled, _cuts(lengths[shuffled], policy)
    # The odd examples of the last pool stay a random choice, and the last batch.
    whole = len(pool) if policy.batch_tokens else len(pool) // policy.batch_size * policy.batch_size
    full, odd = shuffled[:whole], shuffled[whole:]
    by_length = full[np.argsort(lengths[full], kind="stable")]
    batches = np.split(by_length, _cuts(lengths[by_length], policy)[:-1])
    order = _permutation(len(batches), policy, f"batches {index}")
    ordered = [batches[at] for at in order]
    ends = np.cumsum([len(batch) for batch in ordered], dtype=np.int64)
    return np.concatenate([np.empty(0, np.int64), *ordered, odd]), ends


def _cuts(lengths: NDArray[np.integer], policy: OrderPolicy) -> Order:
    """Where batches end, in examples of these lengths."""
    if policy.batch_tokens is None:
        return np.arange(policy.batch_size, len(lengths) + 1, policy.batch_size)
    ends = [0]
    while ends[-1] < len(lengths):
        ends.append(ends[-1] + _fitting(lengths[ends[-1] :], policy.batch_tokens))
    return np.asarray(ends[1:], np.int64)


def _fitting(lengths: NDArray[np.integer], tokens: int) -> int:
    """How many examples from the first on fit into a padded batch; at least one."""
    most = max(tokens // max(int(lengths[0]), 1), 1)
    padded = np.maximum.accumulate(lengths[:most]) * np.arange(1, len(lengths[:most]) + 1)
    return max(int(np.searchsorted(padded, tokens, side="right")), 1)


def _permutation(size: int, policy: OrderPolicy, purpose: str) -> NDArray[np.intp]:
    """A permutation that depends on seed, epoch and purpose alone."""
    seed = stream_seed(policy.seed, policy.epoch, purpose)
    return np.argsort(splitmix(size, seed), kind="stable")
