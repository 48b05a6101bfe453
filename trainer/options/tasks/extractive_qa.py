"""Options of answering questions with spans of a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from syntax.errors import SpecError
from trainer.metrics.answers import Rules
from trainer.options.checks import check_range
from trainer.options.task import TASK_OPTIONS, TaskOptions


@dataclass(frozen=True, slots=True)
class ExtractiveQaOptions(TaskOptions):
    """A span of a passage for each question.

    Attributes:
        answers: The label column, of kind ``spans``; an example without spans has no answer.
        segment: Which segment of a sequence is the passage: 1 after the question, 0 before it.
        normalisation: What a softmax runs over: each ``sequence``, or all those of a ``passage``,
            in windows or sentences (Clark and Gardner 2018).
        no_answer: Whether a question may have no answer, which [CLS] then stands for.
        threshold: With ``no_answer``: how much [CLS] must score above the best answer.
        tune_threshold: Whether dev is scored with the threshold that is best for F1 on dev, which
            other data are then scored with.
        max_answer: Pieces of an answer at most.
        rules: How answers are compared: as ``squad`` (1.1), ``squad2`` (2.0) or ``mlqa`` does; left
            out, as the dataset's own scorer does (`rules_of`).
        metric: What models are selected on.
    """

    name: str = "extractive_qa.v1"
    answers: str = "answers"
    segment: int = 1
    normalisation: Literal["sequence", "passage"] = "sequence"
    no_answer: bool = False
    threshold: float = 0.0
    tune_threshold: bool = False
    max_answer: int = 30
    rules: Rules | None = None
    metric: Literal["f1", "exact_match"] = "f1"

    def __post_init__(self) -> None:
        check_range("task.segment", self.segment, 0)
        check_range("task.max_answer", self.max_answer, 1)
        if self.no_answer and self.normalisation == "passage":
            raise SpecError(
                "task.no_answer goes with task.normalisation=sequence: a passage has a [CLS] for "
                "each of its sequences"
            )
        if self.tune_threshold and not self.no_answer:
            raise SpecError("task.tune_threshold is about task.no_answer, which is false")

    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.answers,)

    def rules_of(self, dataset: str) -> Rules:
        """Those asked for; else MLQA's of ``mlqa``, and of any other dataset SQuAD's own."""
        if self.rules is not None or dataset == "mlqa":
            return self.rules or "mlqa"
        return "squad2" if self.no_answer else "squad"

    def has_labels(self, values: Mapping[str, Sequence[Any]]) -> bool:
        """Whether a question has an answer, or is said to have none where that is one, too."""
        answers = values[self.answers]
        return any(x is not None for x in answers) if self.no_answer else any(answers)

    def tuned(self, scores: Mapping[str, Any]) -> ExtractiveQaOptions:
        """These options with the threshold that dev gave."""
        if not self.tune_threshold:
            return self
        return replace(self, threshold=scores["threshold"], tune_threshold=False)


TASK_OPTIONS.add("extractive_qa.v1", ExtractiveQaOptions)
