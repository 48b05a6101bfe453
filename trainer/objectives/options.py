"""Options of the structural probes, as auxiliary losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from syntax.variant import Variant, check_variant
from trainer.options.checks import check_positive
from trainer.options.objective import ObjectiveOptions


@dataclass(frozen=True, slots=True)
class TreeDepthOptions(ObjectiveOptions):
    """States must tell the depths of the nodes (Ahmad et al. 2021, equation 7).

    Attributes:
        states: ``last``; ``syntax``, those of a graph encoder; or the number of a layer, 0 for the
            embeddings.
        rank: Of the probe.
    """

    name: str = "tree_depth.v1"
    states: Literal["last", "syntax"] | int = "last"
    rank: int = 64

    def __post_init__(self) -> None:
        ObjectiveOptions.__post_init__(self)
        check_positive(f"objectives.{self.name}.rank", self.rank)

    def reads_syntax_states(self) -> bool:
        """Whether ``states`` names them."""
        return self.states == "syntax"

    def matrices(self) -> tuple[str, ...]:
        """Depths, and distances, which tell what stands in a tree."""
        return ("distance", "depth")


@dataclass(frozen=True, slots=True)
class TreeDistanceOptions(ObjectiveOptions):
    """States must tell the distances between nodes (Ahmad et al. 2021, equation 6).

    Attributes:
        states, rank: As in `TreeDepthOptions`.
        target: A switch: what the squared norm is to equal.
    """

    name: str = "tree_distance.v1"
    states: Literal["last", "syntax"] | int = "last"
    rank: int = 64
    target: Variant = "as_published"

    def __post_init__(self) -> None:
        ObjectiveOptions.__post_init__(self)
        check_positive(f"objectives.{self.name}.rank", self.rank)
        check_variant(f"objectives.{self.name}.target", self.target)

    def reads_syntax_states(self) -> bool:
        """Whether ``states`` names them."""
        return self.states == "syntax"

    def matrices(self) -> tuple[str, ...]:
        """Distances."""
        return ("distance",)
