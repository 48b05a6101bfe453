"""Options of the objectives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from syntax.variant import Variant, check_variant
from trainer.masking import MASKED_ARRAYS, PieceMasking, piece_masking
from trainer.options.checks import check_positive, check_share
from trainer.options.objective import ObjectiveOptions

if TYPE_CHECKING:
    from syntax.batches import SpecialTokens


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


@dataclass(frozen=True, slots=True)
class MlmObjectiveOptions(ObjectiveOptions):
    """Some pieces are hidden from the encoder, and its states must tell them.

    All that reads a training batch reads it masked; in evaluation nothing is.

    Attributes:
        masked, whole_words, output_bias: As in `trainer.tasks.mlm.MlmOptions`.
    """

    name: str = "mlm.v1"
    masked: float = 0.15
    whole_words: bool = False
    output_bias: bool = True

    def __post_init__(self) -> None:
        ObjectiveOptions.__post_init__(self)
        check_share(f"objectives.{self.name}.masked", self.masked)

    def arrays(self) -> tuple[str, ...]:
        """Positions and ids of the predicted pieces."""
        return MASKED_ARRAYS

    def samplers(self, special: SpecialTokens, training: bool) -> tuple[PieceMasking, ...]:
        """The masking, of nothing in evaluation."""
        return (piece_masking(special, self.masked if training else 0.0, self.whole_words),)
