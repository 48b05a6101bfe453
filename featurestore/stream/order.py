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
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed
from syntax.options import Option, check_options

CHUNK_PIECES: Final = 262_144
"""Pieces in a chunk, about."""

Positions = NDArray[np.int64]
"""Positions of examples in sequence order, or of batches and pools among the ordered examples."""


@dataclass(frozen=True, slots=True)
class OrderPolicy:
    """What the order of an epoch and its batches depend on, beside the data.

    Raises:
        SpecError: An option is of another type, or a number is too small.
    """

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
            "and need more memory. `None` shuffles everything exactly and holds the epoch in "
            "memory.",
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
            "a bucket that is chosen by its size. Longer sentences are in none."
        ),
    ] = ()

    def __post_init__(self) -> None:
        check_options(self)
        if list(self.buckets) != sorted(set(self.buckets)):
            raise SpecError(f"buckets is {self.buckets}; give rising numbers of words")


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

    examples: Positions
    batch_ends: Positions
    pool_ends: Positions

    def pool_of(self, position: int) -> int:
        """The pool of a position of ``examples``."""
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


def drawn_order(lengths: NDArray[np.integer], policy: OrderPolicy) -> EpochOrder:
    """An epoch of batches that are drawn with replacement (Ahmad et al. 2019, released code).

    A batch is a random part of one bucket, all of it where it is smaller than a batch. Examples may
    be in several batches or in none.

    Args:
        lengths: Words of each example, ROOT included. *Shape:* (N,).
        policy: With ``buckets``.

    Raises:
        SpecError: No example is short enough for a bucket.
    """
    owner = np.searchsorted(policy.buckets, lengths)
    members = [np.flatnonzero(owner == bucket) for bucket in range(len(policy.buckets))]
    ends = np.cumsum([len(own) for own in members])
    if not ends[-1]:
        raise SpecError(
            f"no sentence has at most {policy.buckets[-1]} words, ROOT included; give longer "
            "buckets"
        )
    count = int(ends[-1]) // policy.batch_size + 1
    seed = stream_seed(policy.seed, policy.epoch, "buckets")
    points = splitmix(count, seed) % np.uint64(ends[-1])
    drawn = [
        members[bucket][_permutation(len(members[bucket]), policy, f"drawn {number}")]
        for number, bucket in enumerate(np.searchsorted(ends, points, side="right").tolist())
    ]
    batches = [one[: policy.batch_size] for one in drawn]
    batch_ends = np.cumsum([len(batch) for batch in batches], dtype=np.int64)
    pools = np.append(batch_ends[_DRAWN_TOGETHER - 1 : -1 : _DRAWN_TOGETHER], batch_ends[-1])
    return EpochOrder(np.concatenate(batches).astype(np.int64), batch_ends, pools)


_DRAWN_TOGETHER: Final = 64
"""Drawn batches that are read together."""


def _chunks(pieces: NDArray[np.integer]) -> list[Positions]:
    """Cut the sequence wherever another `CHUNK_PIECES` have been passed."""
    before = np.cumsum(pieces, dtype=np.int64) - pieces
    numbers = before // CHUNK_PIECES
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    return np.split(np.arange(len(pieces), dtype=np.int64), cuts)


def _pool_ends(sizes: list[int], policy: OrderPolicy) -> Positions:
    """Ends of the pools, at whole batches so that no batch needs two pools."""
    total = np.cumsum(sizes, dtype=np.int64)
    pool = policy.pool or len(total) + 1
    whole = policy.batch_size if policy.batch_tokens is None else 1
    ends = total[pool - 1 :: pool] // whole * whole
    inner = ends[(ends > 0) & (ends < total[-1])]
    return np.append(np.unique(inner), total[-1])


def _mixed(
    pool: Positions, lengths: NDArray[np.integer], policy: OrderPolicy, index: int
) -> tuple[Positions, Positions]:
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


def _cuts(lengths: NDArray[np.integer], policy: OrderPolicy) -> Positions:
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
