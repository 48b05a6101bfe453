"""F1 of entities, or of any spans that tags spell (CoNLL-2000's definition).

A predicted entity is right if its type and both ends are. Tags are read as conlleval and seqeval
read them: leniently, so that ``I-PER`` after ``O`` begins an entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Entity(NamedTuple):
    """Tokens ``start`` to ``end``, half-open, of one type."""

    type: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Precision, recall and F1; 0 where undefined. ``support`` counts gold entities."""

    precision: float
    recall: float
    f1: float
    support: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities that tags spell, in order.

    Args:
        tags: ``O``, or a type after one of ``B- I- E- S-``, or of ``L- U-``, their other names.

    >>> entities(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Entity(type='PER', start=0, end=2), Entity(type='LOC', start=3, end=4), \
Entity(type='LOC', start=4, end=5)]
    """
    found: list[Entity] = []
    start = 0
    before = "O"
    for at, tag in enumerate([*tags, "O"]):
        if _ends(before, tag):
            found.append(Entity(_type(before), start, at))
        if _starts(before, tag):
            start = at
        before = tag
    return found


def entity_scores(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]]
) -> dict[str, SpanScores]:
    """Scores by type, and of all types together under ``""`` (micro-average).

    Args:
        gold: Tags of each sentence.
        predicted: As many, of the same lengths.

    >>> entity_scores([["B-PER", "O"]], [["B-PER", "B-LOC"]])[""]
    SpanScores(precision=0.5, recall=1.0, f1=0.6666666666666666, support=1)
    """
    hits: Counter[str] = Counter()
    said: Counter[str] = Counter()
    real: Counter[str] = Counter()
    for ours, theirs in zip(gold, predicted, strict=True):
        expected, found = set(entities(ours)), set(entities(theirs))
        real.update(_types(expected))
        said.update(_types(found))
        hits.update(_types(expected & found))
    types = sorted({*real, *said, ""})
    return {name: span_scores(hits[name], said[name], real[name]) for name in types}


def span_scores(hits: int, said: int, real: int) -> SpanScores:
    """From counts of right, predicted and gold spans."""
    precision, recall = _ratio(hits, said), _ratio(hits, real)
    return SpanScores(precision, recall, _ratio(2 * hits, said + real), real)


def _types(found: Iterable[Entity]) -> Iterator[str]:
    for entity in found:
        yield entity.type
        yield ""


def _starts(before: str, tag: str) -> bool:
    if tag == "O":
        return False
    return before == "O" or _type(before) != _type(tag) or tag[0] in "BSU" or before[0] in "ESLU"


def _ends(before: str, tag: str) -> bool:
    if before == "O":
        return False
    return tag == "O" or _starts(before, tag)


def _type(tag: str) -> str:
    return tag.partition("-")[2]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
