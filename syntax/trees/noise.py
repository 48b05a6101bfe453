"""Parses with a share of heads or relations replaced, to measure robustness against errors.

Source: Zhang et al. 2020 (AAAI, "SG-Net"), section 7.6, which replaces heads at random. Every
sentence stays a tree of UD: one root, no cycle, and the relation `root` only at the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final, Literal, get_args

from syntax.errors import SpecError
from syntax.trees.parse import Parse
from syntax.trees.ud import DEPREL

NoiseKind = Literal["heads", "labels"]

_ROOT: Final = "root"
_DRAWS: Final = 20
"""Draws of a sentence's heads, of which the first counts that leaves no drawn word its head."""

_RELATIONS: Final = tuple(relation for relation in DEPREL[1:] if relation != _ROOT)


@dataclass(frozen=True, slots=True)
class Noise:
    """Share of words that is replaced, kinds of replacement, and seed.

    Attributes:
        share: Share of the words of each sentence with another head or relation, from 0 to 1. A
            fraction of a word is rounded at random, so that the share holds over many sentences.
        kinds: ``heads``, ``labels`` (the relations), or both, drawn independently.
    """

    share: float
    kinds: tuple[NoiseKind, ...] = ("heads",)
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise SpecError(f"the share of noise is {self.share}; expected 0 to 1")
        if not self.kinds or set(self.kinds) - set(get_args(NoiseKind)):
            raise SpecError(
                f"the kinds of noise are {list(self.kinds)}; expected heads, labels, or both"
            )

    @property
    def content(self) -> dict[str, Any]:
        """Plain JSON for the fingerprint of the parser that the noise makes."""
        return {
            "noise": "parse_noise.v2",
            "share": self.share,
            "kinds": sorted(set(self.kinds)),
            "seed": self.seed,
        }


def noisy_parse(parse: Parse, noise: Noise, name: str) -> Parse:
    """A parse with some heads or relations replaced; all else stays the same.

    Heads: the new head of a drawn word is a random word of its sentence, except its descendants and
    its old head. If the root is drawn, another drawn word becomes the root, the old root hangs from
    a descendant of the new one, and the two exchange relations. If a drawn word keeps its head, the
    sentence's heads are drawn again; it keeps the head where no draw finds another, such as the
    only word of a sentence. Relations: words except the root are drawn and get a random other
    relation. The draws depend on the seed and on ``name``, such as the key of the parse.
    """
    head, deprel = list(parse.head), list(parse.deprel)
    for number, (first, end) in enumerate(parse.word_ranges()):
        heads, labels = head[first:end], deprel[first:end]
        for kind in sorted(set(noise.kinds)):
            draw = Random(f"{noise.seed} {kind} {number} {name}")
            if kind == "heads":
                _move_heads(heads, labels, noise.share, draw)
            else:
                _exchange_labels(heads, labels, noise.share, draw)
        head[first:end], deprel[first:end] = heads, labels
    return replace(parse, head=head, deprel=deprel)


def _move_heads(heads: list[int], labels: list[str | None], share: float, draw: Random) -> None:
    """Give drawn words (1-based) another head; the heads form a tree at any time."""
    words = range(1, len(heads) + 1)
    drawn = draw.sample(words, _rounded(share * len(heads), draw))
    root = heads.index(0) + 1
    if drawn == [root]:  # it has no word to exchange with: move another word
        others = [word for word in words if word != root]
        drawn = draw.sample(others, min(1, len(others)))
    before = tuple(heads), tuple(labels)
    for _ in range(_DRAWS):
        heads[:], labels[:] = before
        _moved(heads, labels, drawn, draw)
        if all(heads[word - 1] != before[0][word - 1] for word in drawn):
            break


def _moved(heads: list[int], labels: list[str | None], drawn: Sequence[int], draw: Random) -> None:
    """Move words one by one, each to a random place where it closes no circle."""
    old, rest = tuple(heads), list(drawn)
    root = heads.index(0) + 1
    if root in rest:
        rest.remove(root)
        word = rest.pop()  # becomes the root, and the old one hangs from a descendant of it
        heads[root - 1] = draw.choice(sorted(_subtree(heads, word)))
        heads[word - 1] = 0
        labels[root - 1], labels[word - 1] = labels[word - 1], labels[root - 1]
    for word in rest:
        below = _subtree(heads, word)
        places = [
            place
            for place in range(1, len(heads) + 1)
            if place not in below and place != old[word - 1]
        ]
        if places:
            heads[word - 1] = draw.choice(places)


def _exchange_labels(
    heads: Sequence[int], labels: list[str | None], share: float, draw: Random
) -> None:
    words = [word for word, head in enumerate(heads) if head]
    for word in draw.sample(words, _rounded(share * len(words), draw)):
        known = (labels[word] or "_").partition(":")[0]
        labels[word] = draw.choice([relation for relation in _RELATIONS if relation != known])


def _subtree(heads: Sequence[int], top: int) -> set[int]:
    below, rest = {top}, set(range(1, len(heads) + 1)) - {top}
    while found := {word for word in rest if heads[word - 1] in below}:
        below |= found
        rest -= found
    return below


def _rounded(number: float, draw: Random) -> int:
    """The number rounded up or down at random; its expected value is the number."""
    whole = int(number)
    return whole + (draw.random() < number - whole)
