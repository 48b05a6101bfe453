"""Turns of ranks over one global sequence of batches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError

Ends = NDArray[np.int64]
"""Ends of batches, as positions in the order of the epoch. *Shape:* (J,)."""


@dataclass(frozen=True)
class Turn:
    """One rank's batch in one round, and the start of the next round.

    Attributes:
        start, end: The rank's batch, as positions in the order of the epoch.
        after: Examples that all ranks together have consumed after this round.
    """

    start: int
    end: int
    after: int


@dataclass(frozen=True)
class Rounds:
    """The rounds of an epoch.

    A full round gives each rank one batch. Where the batches in the end are too few for a round,
    some of them are split, so that every rank has the same number of batches, and nothing is lost
    or repeated; if these have fewer examples than there are ranks, the round before leaves as many
    of its own as are needed. No batch is larger than planned, but where almost every batch is a
    single example: then some of the last round have two, if ``joins``.

    A round depends on its start alone, so a stream may continue at the start of any.

    Attributes:
        batch_ends: End of each whole batch. *Shape:* (J,), int64.
        drop_last: Leave out the examples that do not fill a round.
    """

    total: int
    batch_ends: Ends
    world_size: int
    drop_last: bool
    joins: bool = True

    def turn(self, consumed: int, rank: int) -> Turn | None:
        """The batch of a rank in the round that starts when ``consumed`` examples are done."""
        left = self.left(consumed)
        if not left:
            return None
        ends = self._round(consumed, left)
        start = consumed if rank == 0 else int(ends[rank - 1])
        return Turn(start, int(ends[rank]), int(ends[-1]))

    def left(self, consumed: int) -> int:
        """Number of rounds, which is each rank's number of batches, from ``consumed`` on."""
        batches, world = len(self._ends) - self._before(consumed), self.world_size
        if self.drop_last:
            return batches // world
        examples, rounds = self.total - consumed, -(-batches // world)
        if rounds * world <= examples:
            return rounds
        if examples < world:
            raise SpecError(
                f"{examples} examples cannot be shared by {world} ranks; use fewer ranks"
            )
        if not self.joins:
            raise SpecError(
                f"{examples} examples in {batches} batches of batch_tokens cannot be shared "
                f"equally by {world} ranks; raise batch_tokens, use fewer ranks, or give "
                "`drop_last=True`"
            )
        return examples // world

    @cached_property
    def _ends(self) -> Ends:
        """Ends of batches that may be given: with the rest, if it is not dropped."""
        rest = not self.drop_last and self.total > int(self.batch_ends[-1:].sum())
        return np.append(self.batch_ends, self.total) if rest else self.batch_ends

    def _before(self, consumed: int) -> int:
        return int(self._ends.searchsorted(consumed, side="right"))

    def _round(self, consumed: int, left: int) -> Ends:
        """End of each rank's batch. *Shape:* (world_size,)."""
        before = self._before(consumed)
        ends = self._ends[before : before + self.world_size]
        if self.drop_last:
            return ends
        # What comes later needs an example for every rank.
        most = self.total - (left - 1) * self.world_size
        if left == 1 and ends[-1] < most:
            ends = np.array([most])
        elif ends[-1] > most:
            ends = np.append(ends[ends < most], most)
        return ends if len(ends) == self.world_size else _split(consumed, ends, self.world_size)


def _split(start: int, ends: Ends, parts: int) -> Ends:
    """Split the runs up to ``ends`` into parts, the largest first; return their ends.

    >>> _split(0, np.array([8, 11]), 4).tolist()
    [3, 6, 8, 11]
    """
    sizes = np.diff(ends, prepend=start)
    counts = np.ones_like(sizes)
    for _ in range(parts - len(ends)):
        counts[np.argmax(-(-sizes // counts))] += 1
    run = np.repeat(np.arange(len(ends)), counts)
    number = np.arange(parts) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    return np.asarray((ends - sizes)[run] - (-number * sizes[run] // counts[run]), np.int64)
