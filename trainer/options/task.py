"""The options that every task has, and what generic code asks of a task."""

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
    """What a model predicts; a task adds its own options in a dataclass of its file.

    Attributes:
        name: Name of the task in `trainer.tasks.TASKS`.
    """

    name: str

    def __post_init__(self) -> None:
        check_fields("task", self)

    def columns(self) -> tuple[str, ...]:
        """The label columns that the task reads."""
        return ()

    def given(self) -> tuple[str, ...]:
        """Those columns that the model is given; it predicts the others."""
        return ()

    def found(self) -> tuple[str, ...]:
        """The columns that the model predicts."""
        return tuple(name for name in self.columns() if name not in self.given())

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        """True if any example has a label to score predictions by, among the columns `found`."""
        return any(any(column) for column in values.values())

    def spans(self) -> tuple[str, ...]:
        """The columns of spans that matrices such as ``gate_distance`` are made from."""
        return ()

    def samplers(self, special: SpecialTokens) -> tuple[Sampler, ...]:  # noqa: ARG002
        """What is drawn for each batch, in training and in evaluation."""
        return ()

    def rules_of(self, dataset: str) -> Rules | None:  # noqa: ARG002
        """How extracted answers are compared on a dataset; None for a task without answers."""
        return None

    def with_rules(self, rules: Rules) -> TaskOptions:
        """These options with answers compared by other rules."""
        raise SpecError(
            f"`rules={rules}` says how answers of extractive_qa.v1 are compared, and the run is of "
            f"{self.name}; leave it out"
        )

    def added_tokens(self) -> int:
        """Number of tokens that the encoder's vocabulary gets behind the tokenizer's own."""
        return 0

    def special_tokens(self, special: SpecialTokens) -> SpecialTokens:
        """What streams put around the segments, from the tokenizer's special tokens."""
        return special

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """A batch as the stream gave it, with what the task changes of the model's input."""
        return arrays

    def reads_parses(self) -> bool:
        """True if batches must bring the parses of their texts (`featurestore.ParsedDataset`)."""
        return False

    def lengths(self, dataset: FeatureDataset) -> NDArray[np.int64] | None:  # noqa: ARG002
        """Positions that the task writes for each example, where it writes any. *Shape:* (N,)."""
        return None

    def fitted(self, dataset: FeatureDataset) -> TaskOptions:  # noqa: ARG002
        """The options with what they leave to the training examples, such as names of classes."""
        return self

    def settled(self, before: TaskOptions) -> TaskOptions:  # noqa: ARG002
        """The options with what those of an earlier run found in the same training examples."""
        return self

    def warnings(self, dataset: FeatureDataset, data: DataOptions) -> Iterator[str]:  # noqa: ARG002
        """What to warn of before training on examples."""
        return iter(())

    def tuned(self, scores: Mapping[str, Any]) -> TaskOptions:  # noqa: ARG002
        """The options to score other data with, after these scores on dev."""
        return self
