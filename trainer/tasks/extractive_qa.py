"""Answering questions with spans of a passage."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from syntax.batches import INSIDE, locate_spans, spans_of_text
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics.answers import Rules, answer_scores, best_threshold
from trainer.metrics.base import NamedScores
from trainer.models.heads.extractive_qa import END, START
from trainer.options import ExtractiveQaOptions, TaskOptions
from trainer.tasks.base import Arrays
from trainer.tasks.losses import MeanLoss

if TYPE_CHECKING:
    from featurestore import FeatureDataset

NOT_HERE: Final = -100
"""The target of a sequence in which no answer is, and of which nothing is to be learned."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class QaScores(NamedScores):
    """Scores of extracted answers.

    Attributes:
        examples: Questions scored: all, or those that have gold answers where every question has
            one.
        exact_match, f1: Means over all questions, against the gold answer that fits best.
        answerable, unanswerable: Mean F1 of those with and without gold answers; 0 of none.
        unreachable: Questions none of whose answers is whole in any sequence that the model saw.
        threshold: With which no answer was given.
        rules: How answers were compared.
        loss: Mean of the task's loss over questions.
        metric: Name of the headline.
    """

    examples: int
    exact_match: float
    f1: float
    answerable: float
    unanswerable: float
    unreachable: int
    threshold: float
    rules: Rules
    loss: float
    metric: str = "f1"


class ExtractiveQa:
    """A span of the passage for each question.

    Args:
        options: The label column, and how spans are normalised and scored.
        labels: That column.

    Raises:
        SpecError: The label is not of kind ``spans``.
    """

    stream_options: ClassVar[Mapping[str, Any]] = {"offsets": True}
    extras: ClassVar[tuple[str, ...]] = ("segment_ids", "example_index")

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        assert isinstance(options, ExtractiveQaOptions)
        self.metric: str = options.metric
        self._options, self._label = options, labels[options.answers]
        if self._label.kind != "spans":
            raise SpecError(
                f"the label {self._label.name!r} is of kind {self._label.kind!r}; extractive "
                "question answering needs one of kind 'spans'"
            )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """First and last position of the first answer that is whole in a sequence.

        *Shape:* (B,) each, int64. Without one they are 0, that is [CLS], if questions may have no
        answer, and `NOT_HERE` otherwise.
        """
        nowhere = 0 if self._options.no_answer else NOT_HERE
        first, last = np.full((2, len(arrays["segment_ids"])), nowhere, np.int64)
        found = locate_spans(arrays, arrays[self._label.name], self._options.segment)
        # Backwards, so that the first of several answers is written last.
        for at in np.flatnonzero(found.state == INSIDE)[::-1].tolist():
            first[found.row[at]], last[found.row[at]] = found.start[at], found.end[at] - 1
        return {START: first, END: last}

    def scorer(self, data: FeatureDataset) -> QaScorer:
        """A new scorer of questions of this dataset.

        Raises:
            SpecError: Its languages share the id of a question.
        """
        return QaScorer(self._options, self._label, data)


@dataclass(slots=True)
class Question:
    """The best answer so far, and what it is compared with.

    Attributes:
        score: Of the best span: its two logits.
        null: The lowest score of [CLS] in any sequence.
        span: Its characters in the passage.
        golds: Characters of the gold answers.
        reachable: Whether a gold answer was whole in a sequence.
    """

    score: float = float("-inf")
    null: float = float("inf")
    span: Span = (0, 0)
    golds: list[Span] = field(default_factory=list)
    reachable: bool = False

    @property
    def difference(self) -> float:
        """By how much [CLS] scores above the best answer."""
        return self.null - self.score


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to a question, beside the gold answers, and its two scores.

    ``golds`` is None where nobody gave any, not even that there is none.
    """

    text: str
    golds: tuple[str, ...] | None
    exact: float
    f1: float


class QaScorer:
    """Collects the best span of each question over its sequences, batch by batch.

    Args:
        options: Of the task.
        label: The label column.
        data: Where the passages are read from, at the end.

    Raises:
        SpecError: Its languages share the id of a question.
    """

    def __init__(
        self, options: ExtractiveQaOptions, label: LabelSpec, data: FeatureDataset
    ) -> None:
        self._options, self._label, self._data = options, label, data
        self._rules = options.rules_of(data.name)
        self._langs = _languages(data)
        self._questions: dict[str, Question] = {}
        self._loss = MeanLoss()
        self._verdicts: Mapping[str, float] = {}
        self._weights = (1.0, 0.0)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        """Take a model's output on one batch."""
        options, arrays = self._options, batch.arrays
        start_BL, end_BL = output.logits[START], output.logits[END]
        ours_BL = batch.extra("segment_ids") == options.segment
        score_B, first_B, last_B = best_spans(start_BL, end_BL, ours_BL, options.max_answer)
        null_B = start_BL[:, 0] + end_BL[:, 0]
        spans = spans_of_text(arrays, first_B.cpu().numpy(), last_B.cpu().numpy() + 1)
        columns = (arrays["example_id"], score_B.tolist(), null_B.tolist(), spans.tolist())
        for name, score, null, span in zip(*columns, strict=True):
            self._take(name, score, null, (span[0], span[1]))
        self._note_golds(arrays)
        if output.task_loss is not None:
            self._loss.add(output.task_loss, score_B.new_tensor(len(set(arrays["example_id"]))))

    def verify(self, verdicts: Mapping[str, float], own: float, other: float) -> None:
        """Let a verifier have its say in whether a question is answered.

        From now on a question's difference is ``own`` times its own and ``other`` times the
        verdict (SG-Net, section 4.1: the weights beta of the answer verifier).

        Args:
            verdicts: By example, the logit of no answer minus that of one.
            own: Weight of the null score minus the score of the best answer.
            other: Weight of the verdict.

        Raises:
            SpecError: A question has no verdict.
        """
        missing = [name for name in self._questions if name not in verdicts]
        if missing:
            raise SpecError(
                f"{len(missing)} questions have no verdict, such as {missing[0]!r}; the verifier "
                "must be trained on, and read, the same dataset"
            )
        self._verdicts, self._weights = verdicts, (own, other)

    def scores(self) -> QaScores:
        """The scores of everything taken."""
        return self._summary(*self._answers())

    def predictions(self) -> list[Prediction]:
        """The answer to each question; its gold answers."""
        blank = self._options.no_answer
        return [_prediction(name, one, blank) for name, one in self._answers()[0].items()]

    def _answers(self) -> tuple[dict[str, Answer], float]:
        """What is answered in the end, and the threshold."""
        passages, options, labelled = self._passages(), self._options, self._labelled()
        spoken = {
            name: self._answer(
                name, passages[name], passages[name][slice(*question.span)], labelled
            )
            for name, question in self._questions.items()
        }
        if not options.no_answer:
            return spoken, options.threshold
        silent = {
            name: self._answer(name, passages[name], "", labelled) for name in self._questions
        }
        threshold = self._threshold(spoken, silent)
        answers = {
            name: silent[name] if self._difference(name, question) > threshold else spoken[name]
            for name, question in self._questions.items()
        }
        return answers, threshold

    def _threshold(self, spoken: Mapping[str, Answer], silent: Mapping[str, Answer]) -> float:
        if not self._options.tune_threshold:
            return self._options.threshold
        known = [name for name, one in spoken.items() if one.golds is not None]
        return best_threshold(
            [spoken[name].f1 for name in known],
            [self._difference(name, self._questions[name]) for name in known],
            [silent[name].f1 for name in known],
        )[0]

    def _difference(self, name: str, question: Question) -> float:
        own, other = self._weights
        return own * question.difference + other * self._verdicts.get(name, 0.0)

    def _take(self, name: str, score: float, null: float, span: Span) -> None:
        question = self._questions.setdefault(name, Question())
        question.null = min(question.null, null)
        if score > question.score:
            question.score, question.span = score, span

    def _note_golds(self, arrays: Arrays) -> None:
        golds = arrays[self._label.name]
        for name, spans in zip(arrays["example_id"], golds, strict=True):
            self._questions[name].golds = [(int(one[0]), int(one[1])) for one in spans]
        found = locate_spans(arrays, golds, self._options.segment)
        for row in np.unique(found.row[found.state == INSIDE]).tolist():
            self._questions[arrays["example_id"][row]].reachable = True

    def _answer(self, name: str, passage: str, text: str, labelled: Container[str]) -> Answer:
        if name not in labelled:
            return Answer(text, None, 0.0, 0.0)
        golds = tuple(passage[start:end] for start, end in self._questions[name].golds)
        lang = self._langs.get(name, self._data.spec.lang)
        exact, f1 = answer_scores(text, golds, lang, self._rules)
        return Answer(text, golds, exact, f1)

    def _summary(self, answers: Mapping[str, Answer], threshold: float) -> QaScores:
        questions = self._questions.values()
        every = [one for one in answers.values() if _is_scored(one, self._options.no_answer)]
        return QaScores(
            examples=len(every),
            exact_match=_mean([one.exact for one in every]),
            f1=_mean([one.f1 for one in every]),
            answerable=_mean([one.f1 for one in every if one.golds]),
            unanswerable=_mean([one.f1 for one in every if not one.golds]),
            unreachable=sum(bool(one.golds) and not one.reachable for one in questions),
            threshold=threshold,
            rules=self._rules,
            loss=self._loss.mean(),
            metric=self._options.metric,
        )

    def _labelled(self) -> set[str]:
        """The questions with gold answers, or of which somebody said that they have none."""
        columns = self._data.columns(["example_id", self._label.name])
        return set(columns.filter(columns[self._label.name].is_valid())["example_id"].to_pylist())

    def _passages(self) -> dict[str, str]:
        fields = self._data.card.fields
        passage = fields.index(self._label.field or fields[0])
        return dict(_texts(self._data, passage))


def best_spans(
    start_BL: Tensor, end_BL: Tensor, ours_BL: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The span with the highest sum of its two logits in each sequence.

    Args:
        start_BL: Logits of the first position.
        end_BL: Logits of the last position.
        ours_BL: Positions of the passage, between which a span may be.
        longest: Positions of a span at most.

    Returns:
        Score (``-inf`` where there is no such position), first and last position. *Shape:* (B,).
    """
    L = start_BL.shape[1]
    near_LL = torch.ones(L, L, dtype=torch.bool, device=start_BL.device).triu().tril(longest - 1)
    allowed_BLL = ours_BL[:, :, None] & ours_BL[:, None, :] & near_LL
    total_BLL = (start_BL[:, :, None] + end_BL[:, None, :]).masked_fill(~allowed_BLL, -torch.inf)
    score_B, at_B = total_BLL.flatten(1).max(1)
    return score_B, at_B // L, at_B % L


def _languages(data: FeatureDataset) -> dict[str, str]:
    """The language of each question, by its id, where there are several languages.

    Raises:
        SpecError: Two of them share an id, by which questions and passages are told apart.
    """
    langs: dict[str, str] = {}
    for lang in data.langs if len(data.langs) > 1 else ():
        names = data.where(langs=[lang]).columns(["example_id"])["example_id"].to_pylist()
        if shared := langs.keys() & set(names):
            name = min(shared)
            raise SpecError(
                f"{len(shared)} questions of {data.name} {data.spec.split} have one id in "
                f"{langs[name]} and {lang}, such as {name!r}; answers in languages that share ids "
                f"are scored in one language at a time, as `lang={lang}`"
            )
        langs.update(dict.fromkeys(names, lang))
    return langs


def _is_scored(answer: Answer, may_be_blank: bool) -> bool:
    return answer.golds is not None and (may_be_blank or bool(answer.golds))


def _prediction(name: str, answer: Answer, may_be_blank: bool) -> Prediction:
    if not _is_scored(answer, may_be_blank):
        return Prediction(name, None, answer.text)
    shares = {"exact_match": (answer.exact, 1.0), "f1": (answer.f1, 1.0)}
    right = answer.exact == 1.0
    return Prediction(name, list(answer.golds or ()), answer.text, right, shares)


def _texts(data: FeatureDataset, field: int) -> Iterator[tuple[str, str]]:
    rows = data.columns(["example_id", "texts"])
    for name, texts in zip(rows["example_id"], rows["texts"], strict=True):
        yield name.as_py(), texts[field].as_py()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
