"""Parses with a share of their heads or relations replaced, to learn what a model makes of errors.

Source: Zhang et al. 2020 (AAAI, "SG-Net"), section 7.6, which replaces heads at random to measure
robustness against noisy parses. Every sentence stays a tree of UD: one root, no cycle, `root` at
the root and nowhere else.
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
_RELATIONS: Final = tuple(relation for relation in DEPREL[1:] if relation != _ROOT)


@dataclass(frozen=True, slots=True)
class Noise:
    """What is replaced, and by which draw.

    Attributes:
        share: Of the words of each sentence, how many get another head, or another relation; from
            0 to 1. What does not come out even is decided by chance, so that the share holds over
            many sentences.
        kinds: ``heads``, ``labels`` (the relations), or both, each drawn by itself.
        seed: Other seeds draw other words.

    Raises:
        SpecError: The share is out of range, or there is no such kind.
    """

    share: float
    kinds: tuple[NoiseKind, ...] = ("heads",)
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.share <= 1.0:
            raise SpecError(f"the share of noise is {self.share}; expected 0 to 1")
        if not self.kinds or set(self.kinds) - set(get_args(NoiseKind)):
            raise SpecError(f"noise of {list(self.kinds)}; expected heads, labels, or both")

    @property
    def content(self) -> dict[str, Any]:
        """What identifies it, as plain JSON; for the fingerprint of the parser that it makes."""
        return {
            "noise": "parse_noise.v1",
            "share": self.share,
            "kinds": sorted(set(self.kinds)),
            "seed": self.seed,
        }


def noisy_parse(parse: Parse, noise: Noise, name: str) -> Parse:
    """A parse with some heads or relations replaced; all else is as it was.

    A word's new head is any word of its sentence that is not below it, and not its old head, each
    as likely. If the root is drawn, another drawn word becomes the root, and the old one hangs
    from a word below that; they exchange relations. A word that could hang nowhere else keeps its
    head. Of the relations, other words than the root are drawn, and get any other relation.

    Args:
        parse: The parse.
        noise: How much of what.
        name: Name of the text, such as the key of its parse: the draw depends on it, on the seed
            and on nothing else.
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
    """Give drawn words (1-based) another head, one after the other; it is a tree at any time."""
    words = range(1, len(heads) + 1)
    drawn = draw.sample(words, _rounded(share * len(heads), draw))
    old = tuple(heads)
    root = heads.index(0) + 1
    if root in drawn:
        drawn.remove(root)
        if drawn:
            _crown(heads, labels, root, drawn.pop(), draw)
        else:  # drawn alone, it has nobody to change places with: another word is moved
            others = [word for word in words if word != root]
            drawn = draw.sample(others, min(1, len(others)))
    for word in drawn:
        below = _subtree(heads, word)
        places = [place for place in words if place not in below and place != old[word - 1]]
        if places:
            heads[word - 1] = draw.choice(places)


def _crown(heads: list[int], labels: list[str | None], root: int, word: int, draw: Random) -> None:
    """Make a word the root, and hang the old root from a word below it."""
    heads[root - 1] = draw.choice(sorted(_subtree(heads, word)))
    heads[word - 1] = 0
    labels[root - 1], labels[word - 1] = labels[word - 1], labels[root - 1]


def _exchange_labels(
    heads: Sequence[int], labels: list[str | None], share: float, draw: Random
) -> None:
    words = [word for word, head in enumerate(heads) if head]
    for word in draw.sample(words, _rounded(share * len(words), draw)):
        known = (labels[word] or "_").partition(":")[0]
        labels[word] = draw.choice([relation for relation in _RELATIONS if relation != known])


def _subtree(heads: Sequence[int], top: int) -> set[int]:
    """A word and all below it, 1-based."""
    below, rest = {top}, set(range(1, len(heads) + 1)) - {top}
    while found := {word for word in rest if heads[word - 1] in below}:
        below |= found
        rest -= found
    return below


def _rounded(number: float, draw: Random) -> int:
    """A whole number next to it; on average the number itself."""
    whole = int(number)
    return whole + (draw.random() < number - whole)
