"""Scores of constituent trees over given words, as evalb counts them (`syntax.trees.evalb`)."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.metrics import NamedScores


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
    at_most_two_crossing: float
    crossing: float
    skipped: int
    cut_sentences: int
    loss: float
    metric: str = "f1"
