"""The dependency tree of one sentence, validated once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from syntax.errors import (
    CycleError,
    EmptyTreeError,
    HeadOutOfRangeError,
    InputError,
    MissingHeadError,
    MultipleRootsError,
    NoRootError,
)


@dataclass(frozen=True)
class DependencyTree:
    """Heads and relations of one sentence: exactly one root, no cycle.

    Args:
        heads: One per word as in CoNLL-U: 1-based, 0 for the root.
        deprels: One relation per word.

    Raises:
        EmptyTreeError: There is no word.
        NoRootError, MultipleRootsError: Not exactly one head is 0.
        CycleError: Following the heads never reaches the root.
        HeadOutOfRangeError, MissingHeadError: A head is not a word of the sentence, or None.

    Example:
        >>> DependencyTree([2, 0], ["nsubj", "root"]).parents
        array([ 1, -1], dtype=int32)
    """

    heads: tuple[int, ...]
    deprels: tuple[str, ...]

    def __init__(self, heads: Sequence[int | None], deprels: Sequence[str]) -> None:
        object.__setattr__(self, "heads", _checked(heads))
        object.__setattr__(self, "deprels", tuple(deprels))
        if len(self.heads) != len(self.deprels):
            raise InputError(
                f"there are {len(self.heads)} heads and {len(self.deprels)} deprels; "
                "give one deprel per word"
            )

    def __len__(self) -> int:
        return len(self.heads)

    def _repr_svg_(self) -> str:
        from syntax.drawing.trees import draw_tree

        return draw_tree(self).svg()

    @cached_property
    def parents(self) -> NDArray[np.int32]:
        """Head of each word, 0-based, -1 at the root. *Shape:* (W,), int32."""
        return np.asarray(self.heads, dtype=np.int32) - np.int32(1)

    @property
    def root(self) -> int:
        """0-based position of the root."""
        return self.heads.index(0)


def _checked(heads: Sequence[int | None]) -> tuple[int, ...]:
    fits = range(len(heads) + 1).__contains__
    if set(map(type, heads)) == {int} and all(map(fits, heads)):  # the common case, checked fast
        checked = tuple(cast("Sequence[int]", heads))
    else:
        checked = tuple(_in_range(word, head, len(heads)) for word, head in enumerate(heads, 1))
    roots = [word for word, head in enumerate(checked, 1) if not head]
    if not checked:
        raise EmptyTreeError("the sentence has no words; a tree needs at least one")
    if not roots:
        raise NoRootError(f"none of the {len(checked)} words has head 0; one must be the root")
    if len(roots) > 1:
        raise MultipleRootsError(
            f"words {roots} have head 0; exactly one word may be the root", roots=roots
        )
    _reject_cycle(checked)
    return checked


def _in_range(word: int, head: int | None, size: int) -> int:
    if head is None:
        raise MissingHeadError(f"word {word} has no head; parse the sentence first", word=word)
    if not 0 <= head <= size:
        raise HeadOutOfRangeError(
            f"word {word} has head {head}; heads lie between 0 (root) and {size}",
            word=word,
            head=int(head),
        )
    return int(head)


def _reject_cycle(heads: tuple[int, ...]) -> None:
    reached = [False] * (len(heads) + 1)
    reached[0] = True
    for start in range(1, len(heads) + 1):
        path: list[int] = []
        word = start
        while not reached[word]:
            reached[word] = True
            path.append(word)
            word = heads[word - 1]
        if word in path:
            cycle = path[path.index(word) :]
            raise CycleError(f"the heads of words {cycle} form a cycle", words=cycle)
