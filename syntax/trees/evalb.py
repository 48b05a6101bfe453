"""Agreement of constituent trees, counted as the program evalb counts it.

The rules are those of its parameter files ``COLLINS.prm`` and ``new.prm``: labels of `DELETED` do
not count, and neither do words so tagged, on which no constituent's ends depend; ADVP and PRT are
one label. A sentence whose other words differ is an error, and one without other words is skipped;
both are left out of all scores. Not done: its summary of sentences of at most 40 words, and its
repair of quotation marks with differing tags (``QUOTE_LABEL``), which are errors.

Source: Sekine and Collins (1997), https://nlp.cs.nyu.edu/evalb/, README, sections 6 and 7; Black et
al. (1991), "A Procedure for Quantitatively Comparing the Syntactic Coverage of English Grammars".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from syntax.trees.constituents import Constituent, ConstituentTree

DELETED: Final = frozenset(("TOP", "S1", "-NONE-", ",", ":", "``", "''", ".", "?", "!"))

_SAME: Final = {"PRT": "ADVP"}


@dataclass(frozen=True, slots=True)
class BracketCounts:
    """Constituents of one sentence.

    Attributes:
        gold, system: That each tree has.
        matched, matched_unlabelled: With the same words and, for the first, the same label.
        crossing: Of the system's, how many cross one of the gold tree: overlap it, and neither is
            within the other.
        words, right_tags: Words that count, and of those how many have the gold tag.
    """

    gold: int
    system: int
    matched: int
    matched_unlabelled: int
    crossing: int
    words: int
    right_tags: int

    @property
    def complete(self) -> bool:
        return self.gold == self.system == self.matched


Outcome = BracketCounts | Literal["error", "skipped"]


@dataclass(frozen=True, slots=True)
class BracketingScores:
    """Sums over sentences; properties are percentages, ``crossing`` a mean. 0 of nothing.

    ``errors`` and ``skipped`` are among ``sentences`` alone.
    """

    sentences: int
    errors: int
    skipped: int
    counts: tuple[BracketCounts, ...]

    @property
    def precision(self) -> float:
        return _percent(self._sum("matched"), self._sum("system"))

    @property
    def recall(self) -> float:
        return _percent(self._sum("matched"), self._sum("gold"))

    @property
    def f1(self) -> float:
        return _percent(2 * self._sum("matched"), self._sum("gold") + self._sum("system"))

    @property
    def unlabelled_precision(self) -> float:
        return _percent(self._sum("matched_unlabelled"), self._sum("system"))

    @property
    def unlabelled_recall(self) -> float:
        return _percent(self._sum("matched_unlabelled"), self._sum("gold"))

    @property
    def unlabelled_f1(self) -> float:
        both = self._sum("gold") + self._sum("system")
        return _percent(2 * self._sum("matched_unlabelled"), both)

    @property
    def complete_match(self) -> float:
        return _percent(sum(one.complete for one in self.counts), len(self.counts))

    @property
    def crossing(self) -> float:
        """Constituents of the system that cross one of the gold tree, in each sentence."""
        return self._sum("crossing") / len(self.counts) if self.counts else 0.0

    @property
    def no_crossing(self) -> float:
        return _percent(sum(one.crossing == 0 for one in self.counts), len(self.counts))

    @property
    def at_most_two_crossing(self) -> float:
        return _percent(sum(one.crossing <= 2 for one in self.counts), len(self.counts))

    @property
    def tagging_accuracy(self) -> float:
        return _percent(self._sum("right_tags"), self._sum("words"))

    def _sum(self, name: str) -> int:
        return sum(getattr(one, name) for one in self.counts)


def evaluate(pairs: Iterable[tuple[ConstituentTree, ConstituentTree]]) -> BracketingScores:
    """Scores of pairs of a gold tree and a system's.

    >>> from syntax.trees.constituents import read_trees
    >>> gold = read_trees("(S (NP (PRP I)) (VP (VBD saw) (NP (PRP it))) (. .))")
    >>> system = read_trees("(S (NP (PRP I)) (VP (VBD saw)) (NP (PRP it)) (. .))")
    >>> scores = evaluate(zip(gold, system))
    >>> scores.f1, scores.complete_match
    (75.0, 0.0)
    """
    outcomes = [bracket_counts(gold, system) for gold, system in pairs]
    return BracketingScores(
        sentences=len(outcomes),
        errors=outcomes.count("error"),
        skipped=outcomes.count("skipped"),
        counts=tuple(one for one in outcomes if isinstance(one, BracketCounts)),
    )


def bracket_counts(gold: ConstituentTree, system: ConstituentTree) -> Outcome:
    ours, theirs = _Counted.of(gold), _Counted.of(system)
    if not theirs.words:
        return "skipped"
    if ours.words != theirs.words:
        return "error"
    crossing = sum(
        any(_cross(one, other) for other in ours.constituents) for one in theirs.constituents
    )
    tags = zip(ours.tags, theirs.tags, strict=True)
    return BracketCounts(
        gold=len(ours.constituents),
        system=len(theirs.constituents),
        matched=_common(ours.constituents, theirs.constituents),
        matched_unlabelled=_common(ours.stretches(), theirs.stretches()),
        crossing=crossing,
        words=len(ours.words),
        right_tags=sum(_label(one) == _label(other) for one, other in tags),
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """What counts of a tree; the ends of constituents are among the words that count."""

    words: list[str]
    tags: list[str]
    constituents: list[Constituent]

    @classmethod
    def of(cls, tree: ConstituentTree) -> _Counted:
        pairs = [pair for pair in zip(tree.words, tree.tags, strict=True) if pair[1] not in DELETED]
        before = [0]
        for tag in tree.tags:
            before.append(before[-1] + (tag not in DELETED))
        placed = (
            Constituent(_label(label), before[start], before[end])
            for label, start, end in tree.constituents
            if label not in DELETED
        )
        found = [one for one in placed if one.start < one.end]
        return cls([word for word, _ in pairs], [tag for _, tag in pairs], found)

    def stretches(self) -> Iterator[tuple[int, int]]:
        return ((one.start, one.end) for one in self.constituents)


def _common(ours: Iterable[tuple[object, ...]], theirs: Iterable[tuple[object, ...]]) -> int:
    """Of n equal ones here and m there, the smaller number matches."""
    return (Counter(ours) & Counter(theirs)).total()


def _cross(one: Constituent, other: Constituent) -> bool:
    left, right = sorted((one, other), key=lambda each: each.start)
    return left.start < right.start < left.end < right.end


def _label(label: str) -> str:
    return _SAME.get(label, label)


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
