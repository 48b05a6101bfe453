"""Answers to questions in their passages: the search for spans, and what they are compared with.

Letters in shapes: ``B`` sequences, ``L`` positions, ``E`` examples.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from syntax.errors import SpecError
from syntax.examples import LabelSpec

if TYPE_CHECKING:
    from featurestore import FeatureDataset

LOWEST: Final = torch.finfo(torch.float32).min
"""A logit that no answer has. Minus infinity would make the gradient of an empty passage NaN."""

Span = tuple[int, int]


@dataclass(slots=True)
class Question:
    """The best answer so far, and the gold ones; ``null`` is the lowest score of [CLS].

    ``score`` is that of the answer, or of its sequence where a sentence head scores these.
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
    """The answer to a question, the gold answers (None if unlabelled), and the two scores."""

    text: str
    golds: tuple[str, ...] | None
    exact: float
    f1: float

    def is_scored(self, may_be_blank: bool) -> bool:
        """True of a question with gold answers, or one that may have none."""
        return self.golds is not None and (may_be_blank or bool(self.golds))


def best_spans(
    start_BL: Tensor, end_BL: Tensor, ours_BL: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The span with the highest sum of its two logits in each sequence.

    Score (``-inf`` where ``ours_BL`` has no position), first and last position. *Shape:* (B,).
    """
    L = start_BL.shape[1]
    near_LL = torch.ones(L, L, dtype=torch.bool, device=start_BL.device).triu().tril(longest - 1)
    allowed_BLL = ours_BL[:, :, None] & ours_BL[:, None, :] & near_LL
    total_BLL = (start_BL[:, :, None] + end_BL[:, None, :]).masked_fill(~allowed_BLL, -torch.inf)
    score_B, at_B = total_BLL.flatten(1).max(1)
    return score_B, at_B // L, at_B % L


def shared_loss(logits_BL: Tensor, gold_B: Tensor, example_B: Tensor) -> Tensor:
    """Cross-entropy with one softmax over all sequences of an example.

    ``-log(sum of gold exp(s) / sum of all exp(s))``, where overlapping sequences may hold the gold
    position several times, or not (negative); the mean over the examples that have it at all.
    """
    examples = int(example_B.max()) + 1
    all_E = _logsumexp_by(logits_BL.logsumexp(1), example_B, examples)
    gold_scores_B = logits_BL.gather(1, gold_B.clamp(min=0)[:, None]).squeeze(1)
    gold_E = _logsumexp_by(gold_scores_B.masked_fill(gold_B < 0, LOWEST), example_B, examples)
    known_E = torch.zeros(examples, dtype=torch.bool, device=gold_B.device)
    known_E[example_B[gold_B >= 0]] = True
    return (all_E - gold_E)[known_E].sum() / known_E.sum().clamp(min=1)


def _logsumexp_by(values_B: Tensor, example_B: Tensor, examples: int) -> Tensor:
    rows_EB = torch.full((examples, len(values_B)), LOWEST, device=values_B.device)
    at = torch.arange(len(values_B), device=values_B.device)
    return rows_EB.index_put((example_B, at), values_B).logsumexp(1)


def languages_of_questions(data: FeatureDataset) -> dict[str, str]:
    """The language of each question, by its id, where there are several languages."""
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


def passages_of(data: FeatureDataset, label: LabelSpec) -> list[tuple[str, str]]:
    """Name and passage of each question: the field that the label is about, else the first."""
    fields = data.card.fields
    passage = fields.index(label.field or fields[0])
    rows = data.columns(["example_id", "texts"])
    texts = (of.as_py()[passage] for of in rows["texts"])
    return list(zip(rows["example_id"].to_pylist(), texts, strict=True))


def gold_spans(data: FeatureDataset, label: LabelSpec) -> list[list[Span] | None]:
    """The characters of each question's gold answers; None of an unlabelled question."""
    return [
        None if spans is None else [(one["start_char"], one["end_char"]) for one in spans]
        for spans in data.columns([label.name])[label.name].to_pylist()
    ]


@dataclass(frozen=True, slots=True)
class FrequentSpan:
    """The answer at the same words of every passage, a baseline; None to answer nothing."""

    words: tuple[int, int] | None

    @classmethod
    def of(cls, train: FeatureDataset, label: LabelSpec, *, may_be_blank: bool) -> FrequentSpan:
        """The words, or no answer, where most first gold answers of training examples stand."""
        counts: Counter[tuple[int, int] | None] = Counter()
        passages = passages_of(train, label)
        for (_, passage), golds in zip(passages, gold_spans(train, label), strict=True):
            if golds:
                start, end = golds[0]
                first = max(len(passage[: start + 1].split()) - 1, 0)
                counts[first, max(len(passage[:end].split()) - 1, first)] += 1
            elif golds is not None and may_be_blank:
                counts[None] += 1
        # Of equally frequent places, the first in the passage.
        ordered = sorted(counts, key=lambda place: (place is None, place or (0, 0)))
        return cls(max(ordered, key=lambda place: counts[place], default=(0, 0)))

    @property
    def name(self) -> str:
        return "no answer" if self.words is None else "most frequent span"

    def text(self, passage: str) -> str:
        """The answer in a passage; its last words in a passage that is shorter."""
        words = passage.split()
        if self.words is None or not words:
            return ""
        last = min(self.words[1], len(words) - 1)
        return " ".join(words[min(self.words[0], last) : last + 1])
