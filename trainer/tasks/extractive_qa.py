"""``extractive_qa.v1``: answering questions with spans of a passage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import INSIDE, locate_spans, spans_of_text
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction
from trainer.metrics import NamedScores, share
from trainer.metrics.answers import Rules, answer_scores, best_threshold
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.tasks.base import Arrays, Baseline, Head, MeanLoss, Task
from trainer.tasks.options import ExtractiveQaOptions
from trainer.tasks.questions import (
    LOWEST,
    Answer,
    FrequentSpan,
    Question,
    best_spans,
    gold_spans,
    languages_of_questions,
    passages_of,
    shared_loss,
)

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig

START: Final = "start"
END: Final = "end"
SENTENCE: Final = "sentence"

NOT_HERE: Final = -100
"""The target of a sequence without an answer, of which nothing is to be learned."""


class ExtractiveQa(Task):
    """A span of the passage for each question."""

    stream_options: ClassVar[Mapping[str, Any]] = {"offsets": True}
    extras: ClassVar[tuple[str, ...]] = ("segment_ids", "example_index")

    def __init__(self, options: ExtractiveQaOptions, labels: Mapping[str, LabelSpec]) -> None:
        self.metric: str = options.metric
        self._options, self._label = options, labels[options.answers]
        if self._label.kind != "spans":
            raise SpecError(
                f"the label {self._label.name!r} is of kind {self._label.kind!r}; extractive "
                "question answering needs one of kind 'spans'"
            )

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """First and last position, int64 (B,), of the first answer that is whole in a sequence.

        Without one they are 0, that is [CLS], if questions may have no answer, else `NOT_HERE`.
        """
        nowhere = 0 if self._options.no_answer else NOT_HERE
        first, last = np.full((2, len(arrays["segment_ids"])), nowhere, np.int64)
        found = locate_spans(arrays, arrays[self._label.name], self._options.segment)
        # Backwards, so that the first of several answers is written last.
        for at in np.flatnonzero(found.state == INSIDE)[::-1].tolist():
            first[found.row[at]], last[found.row[at]] = found.start[at], found.end[at] - 1
        return {START: first, END: last}

    def scorer(self, data: FeatureDataset) -> QaScorer:
        return QaScorer(self._options, self._label, data)

    def baseline(self, train: FeatureDataset) -> Baseline:
        options, label = self._options, self._label
        frequent = FrequentSpan.of(train, label, may_be_blank=options.no_answer)

        def score(data: FeatureDataset) -> float:
            langs, rules, scores = languages_of_questions(data), options.rules_of(data.name), []
            questions = zip(passages_of(data, label), gold_spans(data, label), strict=True)
            for (name, passage), spans in questions:
                if spans or (spans is not None and options.no_answer):
                    texts = [passage[start:end] for start, end in spans]
                    lang = langs.get(name, data.spec.lang)
                    exact, f1 = answer_scores(frequent.text(passage), texts, lang, rules)
                    scores.append(f1 if options.metric == "f1" else exact)
            return _mean(scores)

        return Baseline(frequent.name, score)


class ExtractiveQaHead(Head):
    """Two scores at every position of the passage, and of [CLS] where there may be no answer.

    The loss of a question is the sum, not the mean, of those of start and end, as SG-Net's release
    has it; of a batch, the mean over its sequences, or over its passages where a softmax runs
    over all sequences of a passage (Clark and Gardner 2018, "shared normalization"). A sentence
    head adds the loss of the sequences that hold an answer (Ahmad et al. 2021, appendix A).
    """

    options: ExtractiveQaOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        self.dropout = nn.Dropout(config.model_options().dropout)
        self.output = nn.Linear(width, 2)
        self.sentence = nn.Linear(width, 1) if self.options.sentence_head else None

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits ``start`` and ``end``, *shape* (B, L), `LOWEST` outside; and the loss.

        A sentence head also gives ``sentence``, *shape* (B,).
        """
        states_BLD = self.dropout(encoding.last_hidden_state)
        logits_BL2 = self.output(states_BLD).float()
        allowed_BL = batch.extra("segment_ids") == self.options.segment
        if self.options.no_answer:
            allowed_BL[:, 0] = True
        start_BL, end_BL = (
            logits_BL.masked_fill(~allowed_BL, LOWEST) for logits_BL in logits_BL2.unbind(-1)
        )
        logits = {START: start_BL, END: end_BL}
        if self.sentence is not None:
            logits[SENTENCE] = self.sentence(states_BLD[:, 0]).float().squeeze(-1)
        if START not in batch.labels:
            return HeadOutput(logits, None)
        losses = [self._loss(logits[end], batch, end) for end in (START, END)]
        loss = losses[0] + losses[1]
        if self.sentence is not None:
            loss = loss + self._sentence_loss(logits[SENTENCE], batch)
        return HeadOutput(logits, loss)

    def _loss(self, logits_BL: Tensor, batch: SyntaxBatch, end: str) -> Tensor:
        gold_B = batch.labels[end]
        if self.options.normalisation == "sequence" or "example_index" not in batch.extras:
            losses_B = F.cross_entropy(logits_BL, gold_B, reduction="none")
            return losses_B.sum() / (gold_B >= 0).sum().clamp(min=1)
        return shared_loss(logits_BL, gold_B, batch.extras["example_index"].long())

    def _sentence_loss(self, logits_B: Tensor, batch: SyntaxBatch) -> Tensor:
        """One softmax over the sequences of a passage, each as one position."""
        gold_B = torch.where(batch.labels[START] >= 0, 0, NOT_HERE)
        return shared_loss(logits_B[:, None], gold_B, batch.extra("example_index").long())


@dataclass(frozen=True, slots=True)
class QaScores(NamedScores):
    """Scores of extracted answers.

    Attributes:
        examples: Questions with gold answers; where a question may have no answer, also those said
            to have none.
        exact_match, f1: Means over them, against the gold answer that fits best.
        answerable, unanswerable: Mean F1 of those with and without gold answers; 0 of none.
        unreachable: Questions none of whose answers is whole in any sequence that the model saw.
        threshold: A question has no answer where its difference is above this.
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


class QaScorer:
    """Collects the best span of each question over its sequences, batch by batch."""

    def __init__(
        self, options: ExtractiveQaOptions, label: LabelSpec, data: FeatureDataset
    ) -> None:
        self._options, self._label, self._data = options, label, data
        self._rules = options.rules_of(data.name)
        self._langs = languages_of_questions(data)
        self._questions: dict[str, Question] = {}
        self._loss = MeanLoss()
        self._verdicts: Mapping[str, float] = {}
        self._weights = (1.0, 0.0)

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        options, arrays = self._options, batch.arrays
        start_BL, end_BL = output.logits[START], output.logits[END]
        ours_BL = batch.extra("segment_ids") == options.segment
        score_B, first_B, last_B = best_spans(start_BL, end_BL, ours_BL, options.max_answer)
        if SENTENCE in output.logits:
            # The best span of a sequence that has any position of the passage.
            score_B = output.logits[SENTENCE].masked_fill(score_B == -torch.inf, -torch.inf)
        null_B = start_BL[:, 0] + end_BL[:, 0]
        spans = spans_of_text(arrays, first_B.cpu().numpy(), last_B.cpu().numpy() + 1)
        columns = (arrays["example_id"], score_B.tolist(), null_B.tolist(), spans.tolist())
        for name, score, null, (start, end) in zip(*columns, strict=True):
            question = self._questions.setdefault(name, Question())
            question.null = min(question.null, null)
            if score > question.score:
                question.score, question.span = score, (start, end)
        self._note_golds(arrays)
        if output.task_loss is not None:
            self._loss.add(output.task_loss, score_B.new_tensor(len(set(arrays["example_id"]))))

    def verify(self, verdicts: Mapping[str, float], own: float, other: float) -> None:
        """Let a verifier take part in the decision whether a question is answered.

        A question's difference becomes ``own`` times its own plus ``other`` times its verdict, the
        logit of no answer minus that of one (SG-Net, section 4.1: the weights beta).
        """
        missing = [name for name in self._questions if name not in verdicts]
        if missing:
            raise SpecError(
                f"{len(missing)} questions have no verdict, such as {missing[0]!r}; the verifier "
                "must be trained on, and read, the same dataset"
            )
        self._verdicts, self._weights = verdicts, (own, other)

    def scores(self) -> QaScores:
        answers, threshold = self._answers()
        questions = self._questions.values()
        every = [one for one in answers.values() if one.is_scored(self._options.no_answer)]
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

    def predictions(self) -> list[Prediction]:
        predictions = []
        for name, one in self._answers()[0].items():
            if one.is_scored(self._options.no_answer):
                shares = {"exact_match": (one.exact, 1.0), "f1": (one.f1, 1.0)}
                golds, right = list(one.golds or ()), one.exact == 1.0
                predictions.append(Prediction(name, golds, one.text, right, shares))
            else:
                predictions.append(Prediction(name, None, one.text))
        return predictions

    def _answers(self) -> tuple[dict[str, Answer], float]:
        options, label = self._options, self._label
        texts, known = passages_of(self._data, label), gold_spans(self._data, label)
        passages = dict(texts)
        labelled = {
            name for (name, _), golds in zip(texts, known, strict=True) if golds is not None
        }

        def answer(name: str, text: str) -> Answer:
            if name not in labelled:
                return Answer(text, None, 0.0, 0.0)
            passage, lang = passages[name], self._langs.get(name, self._data.spec.lang)
            golds = tuple(passage[start:end] for start, end in self._questions[name].golds)
            return Answer(text, golds, *answer_scores(text, golds, lang, self._rules))

        spoken = {
            name: answer(name, passages[name][slice(*question.span)])
            for name, question in self._questions.items()
        }
        if not options.no_answer:
            return spoken, options.threshold
        silent = {name: answer(name, "") for name in self._questions}
        threshold = options.threshold
        if options.tune_threshold:
            given = [name for name, one in spoken.items() if one.golds is not None]
            threshold, _ = best_threshold(
                [spoken[name].f1 for name in given],
                [self._difference(name) for name in given],
                [silent[name].f1 for name in given],
            )
        answers = {
            name: silent[name] if self._difference(name) > threshold else spoken[name]
            for name in self._questions
        }
        return answers, threshold

    def _difference(self, name: str) -> float:
        own, other = self._weights
        return own * self._questions[name].difference + other * self._verdicts.get(name, 0.0)

    def _note_golds(self, arrays: Arrays) -> None:
        golds = arrays[self._label.name]
        for name, spans in zip(arrays["example_id"], golds, strict=True):
            self._questions[name].golds = [(int(one[0]), int(one[1])) for one in spans]
        found = locate_spans(arrays, golds, self._options.segment)
        for row in np.unique(found.row[found.state == INSIDE]).tolist():
            self._questions[arrays["example_id"][row]].reachable = True


def _mean(values: Sequence[float]) -> float:
    return share(sum(values), len(values))
