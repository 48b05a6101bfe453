"""Options of every objective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syntax.options import NonNegative, check_fields

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from syntax.batches import SpecialTokens
    from syntax.contrast import Sampler
    from trainer.options.recipe import Recipe


@dataclass(frozen=True, slots=True)
class ObjectiveOptions:
    """A loss beside the task's; an objective's own options are in a dataclass that adds to these.

    Attributes:
        name: Name of the objective, in `trainer.objectives.OBJECTIVES`.
        weight: Factor of the loss in what training minimises.
    """

    name: str
    weight: NonNegative = 1.0

    def __post_init__(self) -> None:
        check_fields(f"objectives.{self.name}", self)

    def is_active(self, use_syntax: bool) -> bool:
        """True if a model has the objective; one without syntax has none that reads trees."""
        return self.weight > 0 and (use_syntax or not self.matrices())

    def reads_syntax_states(self) -> bool:
        return False

    def matrices(self) -> tuple[str, ...]:
        return ()

    def arrays(self) -> tuple[str, ...]:
        """Names of further arrays of the stream that a batch must carry, such as a sampler's."""
        return ()

    def samplers(self, special: SpecialTokens, training: bool) -> tuple[Sampler, ...]:  # noqa: ARG002
        """Samplers beside ``data.samplers``; ``training`` is False for batches that are scored."""
        return ()

    def stream_options(self) -> Mapping[str, Any]:
        """Options of `syntax.batches.AssemblySpec` that bring what `targets` reads."""
        return {}

    def reads_parses(self) -> bool:
        """True if batches must bring the parses of their texts (`featurestore.ParsedDataset`)."""
        return False

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Arrays that the objective reads beside those of the stream; `arrays` names them, too."""
        return {}

    def fitted(self, dataset: FeatureDataset) -> ObjectiveOptions:  # noqa: ARG002
        """The options with what they leave to the training examples, such as names of classes."""
        return self

    def prepared(self, recipe: Recipe) -> ObjectiveOptions:  # noqa: ARG002
        """The options with what they leave to the run, such as numbers drawn from its seed."""
        return self

    def warnings(self, dataset: FeatureDataset) -> Iterator[str]:  # noqa: ARG002
        """Warnings of what the training examples lack that the objective learns from."""
        return iter(())

    def settled(self, before: ObjectiveOptions) -> ObjectiveOptions:  # noqa: ARG002
        return self
