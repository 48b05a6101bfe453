"""Options of attention blocked by tree distance (Ahmad et al. 2021, section 4.3)."""

from __future__ import annotations

from dataclasses import dataclass

from syntax.options import NonNegativeInt
from trainer.options.model import ModelOptions


@dataclass(frozen=True, slots=True)
class BlockingOptions(ModelOptions):
    """Every head of a stock encoder attends only to what is near in the tree; no weight is added.

    Attributes:
        max_distance: Edges that a head sees, the paper's delta.
    """

    name: str = "blocking.v1"
    max_distance: NonNegativeInt = 4

    def matrices(self) -> tuple[str, ...]:
        return ("distance",) if self.use_syntax else ()
