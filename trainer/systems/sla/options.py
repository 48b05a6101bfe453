"""Options of syntax-aware local attention (Li et al. 2021, Findings of ACL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from syntax.options import NonNegativeInt
from syntax.variant import Variant
from trainer.options.model import ModelOptions, check_separate_trees

if TYPE_CHECKING:
    from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class SlaOptions(ModelOptions):
    """Each layer attends to everything and to what is near in the tree, and a gate mixes the two.

    Attributes:
        threshold: Edges within which a piece is near; 3 in the paper, 4 in lr-sib.
        window, gate: Switches (`trainer.systems.sla.SWITCHES`).
        punctuation: Near to everything if tagged PUNCT (true), or, as in the authors' own code,
            ``pieces`` whose string is part of one string (`syntax.matrices.released_punctuation`).
        local_layers: Layers that attend locally too, 0-based; all when left out.
    """

    name: str = "sla.v1"
    threshold: NonNegativeInt = 3
    window: Variant = "as_published"
    gate: Variant = "as_published"
    punctuation: bool | Literal["pieces"] = False
    local_layers: tuple[int, ...] | None = None

    @property
    def mask(self) -> str:
        """Name of the matrix that says what is near; pieces are looked up by the model."""
        return (
            f"sla_mask(threshold={self.threshold},variant={self.window},"
            f"punctuation={str(self.punctuation is True).lower()})"
        )

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("threshold", "window", "gate", "punctuation", "local_layers")

    @property
    def attends_locally(self) -> bool:
        return self.use_syntax

    def matrices(self) -> tuple[str, ...]:
        return (self.mask,) if self.attends_locally else ()

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)
