"""Options of every task, and what generic code asks of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syntax.errors import SpecError
from syntax.options import check_fields
from trainer.metrics.answers import Rules

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from featurestore import FeatureDataset
    from syntax.batches import SpecialTokens
    from syntax.contrast import Sampler
    from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """Prediction of a model; a task adds its own options in a dataclass of its file.

    Attributes:
        name: Name of the task in `trainer.tasks.TASKS`.
    """

    name: str

    def __post_init__(self) -> None:
        check_fields("task", self)

    def columns(self) -> tuple[str, ...]:
        return ()

    def given(self) -> tuple[str, ...]:
        """Those columns that the model is given; it predicts the others."""
        return ()

    def found(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns() if name not in self.given())

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        """True if any example has a label to score predictions by, among the columns `found`."""
        return any(any(column) for column in values.values())

    def spans(self) -> tuple[str, ...]:
        """The columns of spans that matrices such as ``gate_distance`` are made from."""
        return ()

    def samplers(self, special: SpecialTokens) -> tuple[Sampler, ...]:  # noqa: ARG002
        return ()

    def rules_of(self, dataset: str) -> Rules | None:  # noqa: ARG002
        """Rules by which extracted answers are compared; None for a task without answers."""
        return None

    def with_rules(self, rules: Rules) -> TaskOptions:
        raise SpecError(
            f"`rules={rules}` says how answers of extractive_qa.v1 are compared, and the run is of "
            f"{self.name}; leave it out"
        )

    def added_tokens(self) -> int:
        """Number of tokens that the encoder's vocabulary gets behind the tokenizer's own."""
        return 0

    def special_tokens(self, special: SpecialTokens) -> SpecialTokens:
        """Special tokens that streams put around the segments, from the tokenizer's own."""
        return special

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return arrays

    def reads_parses(self) -> bool:
        """True if batches must bring the parses of their texts (`featurestore.ParsedDataset`)."""
        return False

    def lengths(self, dataset: FeatureDataset) -> NDArray[np.int64] | None:  # noqa: ARG002
        """Positions that the task writes for each example, where it writes any. *Shape:* (N,)."""
        return None

    def fitted(self, dataset: FeatureDataset) -> TaskOptions:  # noqa: ARG002
        return self

    def settled(self, before: TaskOptions) -> TaskOptions:  # noqa: ARG002
        return self

    def warnings(self, dataset: FeatureDataset, data: DataOptions) -> Iterator[str]:  # noqa: ARG002
        return iter(())

    def tuned(self, scores: Mapping[str, Any]) -> TaskOptions:  # noqa: ARG002
        """The options to score other data with, after these scores on dev."""
        return self
