"""Agreement of constituent trees, counted as the program evalb counts it.

The rules are those of its parameter file ``new.prm``: labels of `DELETED` do not count, and neither
do words so tagged, on which no constituent's ends depend; ADVP and PRT are one label. Where the
trees then have different numbers of words, a quotation mark that counts in one, tagged as one of
`QUOTES`, counts in both. A sentence whose words still differ is an error, and one without words is
skipped; both are left out of all scores. Not done: its summary of sentences of at most 40 words.

Run beside evalb (of January 2006) on 2026-11-29, each sentence has its counts: in its samples that
are trees, in its five cases of misquoted words, and in 4,000 random pairs with quotation marks. In
one of these it puts a mark back twice, and finds an error where there is none.

Source: Sekine and Collins (1997), https://nlp.cs.nyu.edu/evalb/, README, sections 6 and 7; Black et
al. (1991), "A Procedure for Quantitatively Comparing the Syntactic Coverage of English Grammars".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from syntax.trees.constituents import Constituent, ConstituentTree

DELETED: Final = frozenset(("TOP", "S1", "-NONE-", ",", ":", "``", "''", ".", "?", "!"))

QUOTES: Final = frozenset(("``", "''", "POS", "NN", "CD", "VBZ", ":"))
"""Tags that a parser may give to the quotation marks of `_MARKS`."""

_MARKS: Final = frozenset(("'", '"', "/"))

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


_NOTHING: Final = BracketCounts(*[0] * 7)

Outcome = BracketCounts | Literal["error", "skipped"]


@dataclass(frozen=True, slots=True)
class BracketingScores:
    """Scores of sentences; ``errors`` and ``skipped`` are among ``sentences`` alone.

    All but ``crossing``, a mean over sentences, are percentages; 0 of nothing.
    """

    sentences: int
    errors: int
    skipped: int
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
    tagging_accuracy: float


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
    counts = [one for one in outcomes if isinstance(one, BracketCounts)]
    found = mean_shares([bracket_shares(one) for one in counts])
    right, words = sum(one.right_tags for one in counts), sum(one.words for one in counts)
    return BracketingScores(
        sentences=len(outcomes),
        errors=outcomes.count("error"),
        skipped=outcomes.count("skipped"),
        tagging_accuracy=100 * right / words if words else 0.0,
        crossing=found.pop("crossing"),
        **{name: 100 * share for name, share in found.items()},
    )


def bracket_shares(counts: BracketCounts) -> dict[str, tuple[float, float]]:
    """Numerator and denominator of each score of brackets for a sentence.

    >>> bracket_shares(BracketCounts(4, 5, 3, 4, 0, 6, 6))["f1"]
    (6.0, 9.0)
    """
    found: dict[str, tuple[float, float]] = {}
    for prefix, right in (("", counts.matched), ("unlabelled_", counts.matched_unlabelled)):
        found[f"{prefix}precision"] = (right, counts.system)
        found[f"{prefix}recall"] = (right, counts.gold)
        found[f"{prefix}f1"] = (2 * right, counts.gold + counts.system)
    found["complete_match"] = (counts.gold == counts.system == counts.matched, 1)
    found["no_crossing"] = (counts.crossing == 0, 1)
    found["at_most_two_crossing"] = (counts.crossing <= 2, 1)
    found["crossing"] = (counts.crossing, 1)
    return {name: (float(part), float(whole)) for name, (part, whole) in found.items()}


def mean_shares(sentences: Sequence[Mapping[str, tuple[float, ...]]]) -> dict[str, float]:
    """Each score of all sentences: the sum of numerators by that of denominators; 0 of nothing."""
    found = {}
    for name in bracket_shares(_NOTHING):
        part, whole = (sum(of[name][at] for of in sentences) for at in (0, 1))
        found[name] = part / whole if whole else 0.0
    return found


def bracket_counts(gold: ConstituentTree, system: ConstituentTree) -> Outcome:
    ours, theirs = _Counted.of(gold), _Counted.of(system)
    if not theirs.words:
        return "skipped"
    if len(ours.words) != len(theirs.words):
        in_gold, in_system = _misquoted(gold, system)
        ours, theirs = _Counted.of(gold, in_gold), _Counted.of(system, in_system)
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
    """The counted part of a tree; ends of constituents are places among its words."""

    words: list[str]
    tags: list[str]
    constituents: list[Constituent]

    @classmethod
    def of(cls, tree: ConstituentTree, kept: Collection[int] = ()) -> _Counted:
        """Words are those that their tag does not leave out, and those at the places ``kept``."""
        pairs, before = [], [0]
        for at, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True)):
            if tag not in DELETED or at in kept:
                pairs.append((word, tag))
            before.append(len(pairs))
        placed = (
            Constituent(_label(label), before[start], before[end])
            for label, start, end in tree.constituents
            if label not in DELETED
        )
        found = [one for one in placed if one.start < one.end]
        return cls([word for word, _ in pairs], [tag for _, tag in pairs], found)

    def stretches(self) -> Iterator[tuple[int, int]]:
        return ((one.start, one.end) for one in self.constituents)


@dataclass(slots=True)
class _Quote:
    """A quotation mark: its place in the sentence, and among the words that count."""

    at: int
    place: int
    is_left_out: bool


def _quotes(tree: ConstituentTree) -> list[_Quote]:
    found, place = [], 0
    for at, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True)):
        if tag in QUOTES and word in _MARKS:
            found.append(_Quote(at, place, tag in DELETED))
        place += tag not in DELETED
    return found


def _misquoted(gold: ConstituentTree, system: ConstituentTree) -> tuple[set[int], set[int]]:
    """Quotation marks that their tag leaves out, and the other tree's tag at their place does not.

    evalb compares places among the words that count, and moves those behind a mark that is put
    back.
    """
    ours, theirs = _quotes(gold), _quotes(system)
    kept: tuple[set[int], set[int]] = (set(), set())
    for n, other in enumerate(theirs):
        place = other.place
        for m, one in enumerate(ours):
            if one.place == place and one.is_left_out != other.is_left_out:
                side, moved = (0, ours[m:]) if one.is_left_out else (1, theirs[n:])
                kept[side].add(moved[0].at)
                for later in moved:
                    later.place += 1
    return kept


def _common(ours: Iterable[tuple[object, ...]], theirs: Iterable[tuple[object, ...]]) -> int:
    """Number of matches: of n equal ones here and m there, the smaller number."""
    return (Counter(ours) & Counter(theirs)).total()


def _cross(one: Constituent, other: Constituent) -> bool:
    left, right = sorted((one, other), key=lambda each: each.start)
    return left.start < right.start < left.end < right.end


def _label(label: str) -> str:
    return _SAME.get(label, label)
