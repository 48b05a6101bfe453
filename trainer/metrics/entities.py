"""F1 and F0.5 of entities, or of any spans that tags spell (CoNLL-2000's definition).

A predicted entity is right if its type and both ends are. Tags are read as conlleval and seqeval
read them: leniently, so that ``I-PER`` after ``O`` begins an entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainer.metrics import share


class Entity(NamedTuple):
    """A span of tokens, half-open."""

    type: str
    start: int
    end: int


Reader = Callable[[Sequence[str]], list[Entity]]


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Precision, recall, F1, F0.5; 0 where undefined. ``support`` counts gold entities."""

    precision: float
    recall: float
    f1: float
    f05: float
    support: int


def entities(tags: Sequence[str]) -> list[Entity]:
    """The entities that tags spell, in order.

    Tags are ``O``, or a type after one of ``B- I- E- S-``, or of ``L- U-``, their other names. The
    type of a tag without any is ``_``.

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


def tokens_tagged(name: str) -> Reader:
    """A reader that takes each token with this tag for a span, as error detection does.

    >>> tokens_tagged("i")(["c", "i", "i"])
    [Entity(type='i', start=1, end=2), Entity(type='i', start=2, end=3)]
    """
    return lambda tags: [Entity(name, at, at + 1) for at, tag in enumerate(tags) if tag == name]


def entity_scores(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]], read: Reader = entities
) -> dict[str, SpanScores]:
    """Scores by type, and of all types together under ``""`` (micro-average).

    >>> entity_scores([["B-PER", "O"]], [["B-PER", "B-LOC"]])[""]
    SpanScores(precision=0.5, recall=1.0, f1=0.6666666666666666, f05=0.5555555555555556, support=1)
    """
    hits: Counter[str] = Counter()
    said: Counter[str] = Counter()
    real: Counter[str] = Counter()
    for ours, theirs in zip(gold, predicted, strict=True):
        expected, found = set(read(ours)), set(read(theirs))
        real.update(_types(expected))
        said.update(_types(found))
        hits.update(_types(expected & found))
    types = sorted({*real, *said, ""})
    return {name: span_scores(hits[name], said[name], real[name]) for name in types}


def span_scores(hits: int, said: int, real: int) -> SpanScores:
    """Scores by counts of right, predicted and gold spans; F0.5 is 1.25 PR / (R + 0.25 P).

    >>> span_scores(2, 4, 8)
    SpanScores(precision=0.5, recall=0.25, f1=0.3333333333333333, f05=0.4166666666666667, support=8)
    """
    return SpanScores(
        precision=share(hits, said),
        recall=share(hits, real),
        f1=share(2 * hits, said + real),
        f05=share(1.25 * hits, said + 0.25 * real),
        support=real,
    )


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
    return tag.partition("-")[2] or "_"
