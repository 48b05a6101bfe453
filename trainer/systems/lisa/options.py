"""Options of LISA (Strubell et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syntax.options import Count, NonNegativeInt, Probability
from trainer.objectives.shown_options import HEADS, head_positions
from trainer.options.model import ModelOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset


@dataclass(frozen=True, slots=True)
class LisaOptions(ModelOptions):
    """The first head of one layer attends to the syntactic head of each word.

    Attributes:
        layer: The layer, 0-based; the sixth of twelve, in the middle of any other, when left out.
        inject: Attend to the stored parse, not the model's own, in evaluation and prediction too.
        arc, relation: Width of the projections that score heads, and their labels.
        parser_dropout: Of these projections.
    """

    name: str = "lisa.v1"
    layer: NonNegativeInt | None = None
    inject: bool = False
    arc: Count = 500
    relation: Count = 100
    parser_dropout: Probability = 0.1

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("layer", "arc", "relation")

    def extras(self) -> tuple[str, ...]:
        return (HEADS,) if self.use_syntax else ()

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**arrays, HEADS: head_positions(arrays)} if self.use_syntax else arrays

    def warnings(self, dataset: FeatureDataset, values: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG002
        if self.use_syntax and not values.get("objectives.parse_head.weight"):
            yield "nothing teaches lisa.v1 to parse; add parse_head.v1 to the recipe's objectives"
