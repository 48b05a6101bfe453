"""How ranks take turns over one global sequence of batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError


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


@dataclass(frozen=True)
class Rounds:
    """The rounds of an epoch.

    A full round gives each rank one batch. What is left in the end is dealt out in near-equal
    parts, so that every rank has the same number of batches, and nothing is lost or repeated;
    when fewer than ``world_size`` examples would be left for a round of their own, the round
    before takes them in, and some batches have one example more than planned.

    Attributes:
        total: Examples in the epoch.
        batch_ends: Where each whole batch ends. *Shape:* (J,), int64.
        world_size: Number of ranks.
        drop_last: Leave out the examples that do not fill a round.
    """

    total: int
    batch_ends: NDArray[np.int64]
    world_size: int
    drop_last: bool

    def turn(self, consumed: int, rank: int) -> Turn | None:
        """The batch of a rank in the round that starts when ``consumed`` examples are done.

        Returns:
            The turn; ``None`` at the end of the epoch.

        Raises:
            SpecError: There are fewer examples than ranks.
        """
        ends = self.batch_ends[self._batches_before(consumed) :][: self.world_size]
        if len(ends) == self.world_size and self._may_end_at(int(ends[-1])):
            start = consumed if rank == 0 else int(ends[rank - 1])
            return Turn(start, int(ends[rank]), int(ends[-1]))
        left = self.total - consumed
        if left == 0 or self.drop_last:
            return None
        if left < self.world_size:
            raise SpecError(
                f"{left} examples cannot be shared by {self.world_size} ranks; use fewer ranks"
            )
        size, more = divmod(left, self.world_size)
        start = consumed + rank * size + min(rank, more)
        return Turn(start, start + size + (rank < more), self.total)

    def left(self, consumed: int) -> int:
        """Number of rounds, which is each rank's number of batches, from ``consumed`` on."""
        before = self._batches_before(consumed)
        rounds = (len(self.batch_ends) - before) // self.world_size
        end = int(self.batch_ends[before + rounds * self.world_size - 1]) if rounds else consumed
        rest = self.total - end
        if self.drop_last or not rest:
            return rounds
        return max(rounds, 1) if rest < self.world_size else rounds + 1

    def _batches_before(self, consumed: int) -> int:
        return int(np.searchsorted(self.batch_ends, consumed, side="right"))

    def _may_end_at(self, end: int) -> bool:
        """Whether what comes after is nothing, or enough for a round of its own."""
        rest = self.total - end
        return self.drop_last or rest == 0 or rest >= self.world_size
