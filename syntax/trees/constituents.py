"""Constituent trees, and the bracket files that hold them, as of the Penn Treebank.

A file has one tree after another, each over one line or several::

    ( (S (NP-SBJ-1 (DT The) (NN cat))
         (VP (VBZ seems) (S (NP-SBJ (-NONE- *-1)) (VP (TO to) (VP (VB sleep)))))
         (. .)) )

Marcus, Santorini and Marcinkiewicz (1993), "Building a Large Annotated Corpus of English".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from syntax.errors import BracketsError, TreeError

TOP: Final = "TOP"
"""Label of the whole where a file has none for several parts."""

TRACE: Final = "-NONE-"
"""Tag of what is in the tree and not in the text, such as traces and dropped pronouns."""

Tokens = Sequence[tuple[int, str]]
"""Brackets, labels and words of one tree, each with the number of its line."""

_TOKEN: Final = re.compile(r"[()]|[^() \t\r\n\f\v]+")
_FUNCTION: Final = re.compile(r"(?<!^)[-=].*", re.DOTALL)
_ESCAPED: Final = re.compile(r"-[LR][RCS]B-|\\[/*]")
_BRACKETS: Final = dict(
    zip(("-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-"), "(){}[]", strict=True)
)


class Constituent(NamedTuple):
    """A labelled stretch of words, half-open."""

    label: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ConstituentTree:
    """A sentence with the tags of its words, and its constituents, the outer before the inner.

    So of constituents over the same words, the first is the outermost. Tags of words are not
    constituents.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    constituents: tuple[Constituent, ...]


def read_trees(text: str, name: str = "the text") -> list[ConstituentTree]:
    r"""All trees of a text; ``name`` is that of its file, for messages.

    Traces go, and what consists of them; so do function tags (``NP-SBJ=2`` is ``NP``) and a top
    bracket without a label. Words are unescaped: ``-LRB-`` is ``(``, and ``1\/2`` is ``1/2``.

    >>> (tree,) = read_trees("( (S (NP-SBJ (-NONE- *)) (VP (VB Go) (PRT (RP on)))))")
    >>> tree.words, tree.tags
    (('Go', 'on'), ('VB', 'RP'))
    >>> [tuple(one) for one in tree.constituents]
    [('S', 0, 2), ('VP', 0, 2), ('PRT', 1, 2)]
    """
    lines = enumerate(text.split("\n"), 1)
    return [tree_of(tokens, name) for tokens in tree_tokens(lines)]


def tree_tokens(lines: Iterable[tuple[int, str]]) -> Iterator[Tokens]:
    """The tokens of each tree, of numbered lines; of a bad tree, those up to where a tree begins.

    A tree begins with a bracket at the start of a line, or where the one before has ended. Between
    trees, lines of markup that begin with ``<``, as in the Chinese Treebank, are passed over.
    """
    found: list[tuple[int, str]] = []
    depth = 0
    for number, line in lines:
        if found and line.startswith("("):
            yield found
            found, depth = [], 0
        if not found and line.startswith("<"):
            continue
        for token in _TOKEN.findall(line):
            found.append((number, token))
            depth += (token == "(") - (token == ")")
            if depth == 0 and found[0][1] == "(":
                yield found
                found = []
        if found and depth <= 0:  # text outside of brackets
            yield found
            found, depth = [], 0
    if found:
        yield found


def tree_of(tokens: Tokens, name: str) -> ConstituentTree:
    """The tree of these tokens, as `read_trees` describes it.

    Raises:
        BracketsError: With the line, what came and what was expected.
    """
    texts = [text for _, text in tokens]
    words: list[str] = []
    tags: list[str] = []
    found: list[Constituent] = []
    opened: list[int] = []
    at = 0
    while at < len(tokens):
        if at and not opened:
            raise _fault(tokens, at, name, "the end of the tree")
        if leaf := _leaf(tokens, at, name):
            if leaf[0] != TRACE:
                tags.append(leaf[0])
                words.append(_ESCAPED.sub(_unescaped, leaf[1]))
            at += 4
        elif texts[at] == "(":
            label = next(filter(_is_name, texts[at + 1 : at + 2]), "")
            if opened and not label:
                raise _fault(tokens, at + 1, name, "a label")
            opened.append(len(found))
            found.append(Constituent(_FUNCTION.sub("", label), len(words), -1))
            at += 1 + bool(label)
        elif texts[at] == ")" and opened:
            if texts[at - 1] != ")":
                raise _fault(tokens, at, name, "a part, such as `(NN word)`")
            place = opened.pop()
            found[place] = found[place]._replace(end=len(words))
            at += 1
        else:
            raise _fault(tokens, at, name, "`(` or `)`" if opened else "`(`, where a tree begins")
    if opened or not words:
        label = found[opened[-1]].label or "the tree" if opened else ""
        raise _fault(tokens, at, name, f"`)` of {label}" if opened else "a word beside the traces")
    return ConstituentTree(tuple(words), tuple(tags), _kept(found, len(words)))


def _leaf(tokens: Tokens, at: int, name: str) -> tuple[str, str] | None:
    """The tag and the word that begin here as ``(TAG word)``; None for anything else."""
    bracket, *pair = (text for _, text in tokens[at : at + 3])
    if bracket != "(" or len(pair) < 2 or not all(map(_is_name, pair)):
        return None
    if at + 3 >= len(tokens) or tokens[at + 3][1] != ")":
        raise _fault(tokens, at + 3, name, f"`)` behind the word {pair[1]!r}")
    return pair[0], pair[1]


def _kept(found: list[Constituent], words: int) -> tuple[Constituent, ...]:
    """Constituents with words; the top without a label only where it has several parts."""
    kept = [one for one in found if one.start < one.end]
    if kept and not kept[0].label:
        several = words > 1 and (len(kept) < 2 or kept[1][1:] != (0, words))
        kept[:1] = [kept[0]._replace(label=TOP)] if several else []
    return tuple(kept)


def _is_name(text: str) -> bool:
    return text not in ("(", ")")


def _unescaped(match: re.Match[str]) -> str:
    return _BRACKETS.get(match[0], match[0][1:])


def _fault(tokens: Tokens, at: int, name: str, expected: str) -> BracketsError:
    line, came = tokens[at] if at < len(tokens) else (tokens[-1][0], "")
    shown = repr(came) if came else "the end of the tree"
    begun = "" if tokens[0][0] == line else f" of the tree that begins in line {tokens[0][0]}"
    return BracketsError(
        f"{name}, line {line}{begun}: {shown} came; expected {expected}", path=name, line=line
    )


CHAIN: Final = "::"
"""Between the labels of a unary chain, the outer first."""

PART: Final = "*"
"""Ends the label of a stretch that is only a part of a constituent, as ``NP*``."""


def binarised(words: int, constituents: Sequence[Constituent]) -> list[Constituent]:
    """The left-binarised tree: 2n - 1 stretches of n words, the outer before the inner.

    Each stretch has one label: a unary chain joined with `CHAIN`; what binarisation adds, and a
    word that is no constituent, has that of the constituent around it with `PART` (Zhang, Zhou and
    Li 2020, section 2).

    >>> found = binarised(3, [Constituent("S", 0, 3), Constituent("VP", 0, 3)])
    >>> [tuple(one) for one in found]
    [('S::VP', 0, 3), ('VP*', 0, 2), ('VP*', 0, 1), ('VP*', 1, 2), ('VP*', 2, 3)]
    """
    chains: dict[tuple[int, int], list[str]] = {(0, words): []}
    for label, start, end in constituents:
        chains.setdefault((start, end), []).append(label)
    for word in range(words):
        chains.setdefault((word, word + 1), [])
    found: list[Constituent] = []
    around: list[Constituent] = []
    for start, end in sorted(chains, key=_outer_first):
        while around and around[-1].end <= start:
            around.pop()
        above = around[-1] if around else Constituent("", 0, words)
        if above.start < start and end < above.end:  # the parts before this one, and it
            found.append(Constituent(above.label + PART, above.start, end))
        chain = chains[start, end]
        found.append(Constituent(CHAIN.join(chain) or above.label + PART, start, end))
        around.append(Constituent(chain[-1] if chain else "", start, end))
    if len(found) != 2 * words - 1:
        raise TreeError(
            f"constituents cross each other, or end behind the last of {words} words: "
            f"{', '.join(f'{label} {start}-{end}' for label, start, end in constituents)}"
        )
    return sorted(found, key=lambda one: _outer_first(one[1:]))


def unbinarised(stretches: Iterable[Constituent]) -> tuple[Constituent, ...]:
    """The constituents of a binary tree, in any order: the inverse of `binarised`."""
    ordered = sorted(stretches, key=lambda one: _outer_first(one[1:]))
    return tuple(
        Constituent(label, start, end)
        for chain, start, end in ordered
        if not chain.endswith(PART)
        for label in chain.split(CHAIN)
    )


def _outer_first(stretch: tuple[int, int]) -> tuple[int, int]:
    return stretch[0], -stretch[1]
