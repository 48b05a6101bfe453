"""Options of Syntax-BERT (Bai et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from syntax.options import Bounds
from syntax.variant import Variant
from trainer.options.model import ModelOptions


@dataclass(frozen=True, slots=True)
class SyntaxMasksOptions(ModelOptions):
    """Each layer attends once through each mask, and topical attention mixes the outcomes.

    Attributes:
        distances: Masks of each kind: ancestors, descendants and siblings so many edges away.
        pairs: One more mask for examples of several texts: the words of the others.
        aggregation: A switch (`trainer.systems.syntax_masks.AGGREGATION`).
    """

    name: str = "syntax_masks.v1"
    distances: Annotated[int, Bounds(1, 253)] = 3
    pairs: bool = False
    aggregation: Variant = "as_published"

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("distances", "pairs", "aggregation")

    def matrices(self) -> tuple[str, ...]:
        return ("distance", "depth") if self.use_syntax else ()

    def extras(self) -> tuple[str, ...]:
        return ("segment_ids",) if self.use_syntax and self.pairs else ()
