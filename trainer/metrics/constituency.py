"""Scores of constituent trees over given words, as evalb counts them (`syntax.trees.evalb`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from syntax.trees.evalb import BracketCounts
from trainer.metrics import NamedScores, share

METRICS: Final = (
    *("precision", "recall", "f1"),
    *("unlabelled_precision", "unlabelled_recall", "unlabelled_f1"),
    *("complete_match", "no_crossing", "crossing"),
)


@dataclass(frozen=True, slots=True)
class BracketScores(NamedScores):
    """Scores of constituents; shares between 0 and 1.

    Attributes:
        crossing: Predicted constituents of a sentence that cross one of the gold tree, a mean.
        skipped: Sentences of punctuation alone, which no score counts.
        cut_sentences: Of which truncation cut words; what they lack counts as not found.
    """

    examples: int
    precision: float
    recall: float
    f1: float
    unlabelled_precision: float
    unlabelled_recall: float
    unlabelled_f1: float
    complete_match: float
    no_crossing: float
    crossing: float
    skipped: int
    cut_sentences: int
    loss: float
    metric: str = "f1"


def bracket_shares(counts: BracketCounts) -> dict[str, tuple[float, float]]:
    """Numerator and denominator of each metric for a sentence.

    >>> bracket_shares(BracketCounts(4, 5, 3, 4, 0, 6, 6))["f1"]
    (6.0, 9.0)
    """
    found = {
        "complete_match": (float(counts.complete), 1.0),
        "no_crossing": (float(counts.crossing == 0), 1.0),
        "crossing": (float(counts.crossing), 1.0),
    }
    for prefix, right in (("", counts.matched), ("unlabelled_", counts.matched_unlabelled)):
        found[f"{prefix}precision"] = (float(right), float(counts.system))
        found[f"{prefix}recall"] = (float(right), float(counts.gold))
        found[f"{prefix}f1"] = (2.0 * right, float(counts.gold + counts.system))
    return found


def bracket_scores(
    examples: Sequence[Mapping[str, tuple[float, ...]]],
    loss: float,
    metric: str = "f1",
    skipped: int = 0,
    cut_sentences: int = 0,
) -> BracketScores:
    sums: dict[str, Any] = {
        name: share(*(sum(of[name][part] for of in examples) for part in (0, 1)))
        for name in METRICS
    }
    return BracketScores(
        examples=len(examples),
        **sums,
        skipped=skipped,
        cut_sentences=cut_sentences,
        loss=loss,
        metric=metric,
    )
