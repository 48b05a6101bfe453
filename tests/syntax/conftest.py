"""Random trees to feed hypothesis, and matrices by brute force.

Strategies are session fixtures; draw from them through ``st.data()``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from syntax import read_conllu
from syntax.batches import SegmentFeatures


@dataclass(frozen=True)
class Slow:
    """Matrices as nested lists; ``None`` where no path leads."""

    distance: list[list[int | None]]
    depth: list[int]
    ancestor: list[list[bool]]


def _walk(parents: list[int], node: int) -> list[int]:
    """The node and its ancestors, nearest first."""
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


def _breadth_first(neighbours: list[list[int]], start: int) -> list[int | None]:
    found: list[int | None] = [None] * len(neighbours)
    found[start] = 0
    waiting = deque([(start, 0)])
    while waiting:
        node, steps = waiting.popleft()
        for other in neighbours[node]:
            if found[other] is None:
                found[other] = steps + 1
                waiting.append((other, steps + 1))
    return found


def _slow_matrices(parents: list[int]) -> Slow:
    size = len(parents)
    neighbours: list[list[int]] = [[] for _ in range(size)]
    for node, parent in enumerate(parents):
        if parent >= 0:
            neighbours[node].append(parent)
            neighbours[parent].append(node)
    walks = [_walk(parents, node) for node in range(size)]
    return Slow(
        distance=[_breadth_first(neighbours, node) for node in range(size)],
        depth=[len(walk) - 1 for walk in walks],
        ancestor=[[other in walk for other in range(size)] for walk in map(set, walks)],
    )


@pytest.fixture(scope="session")
def slow_matrices() -> Callable[[list[int]], Slow]:
    """Distances by breadth-first search over neighbour lists; depths and ancestors by walking."""
    return _slow_matrices


@st.composite
def _forests(draw: st.DrawFn, max_size: int = 24) -> list[int]:
    """Parents of any forest: each node hangs from one drawn before it, or from nothing."""
    order = draw(st.permutations(range(draw(st.integers(0, max_size)))))
    parents = [-1] * len(order)
    for index, node in enumerate(order):
        above = draw(st.integers(-2, index - 1))
        parents[node] = order[above] if above >= 0 else above
    return parents


@pytest.fixture(scope="session")
def forests() -> st.SearchStrategy[list[int]]:
    """Parent vectors of up to 24 nodes: any shape, projective or not, -1 and -2 at roots."""
    return _forests()


@dataclass(frozen=True)
class Text:
    """A text as words with heads, and pieces that show them.

    Attributes:
        heads: Head of each word, counted through the text; -1 at the root of each sentence.
        sentences: Sentence of each word.
        words: Word of each piece, ``None`` for none. Every word has a piece.
    """

    heads: list[int]
    sentences: list[int]
    words: list[int | None]

    def first(self, word: int) -> int:
        return self.words.index(word)

    def head(self, piece: int) -> int:
        """Where a piece hangs in the attach tree."""
        word = self.words[piece]
        if word is None:
            return -2
        if self.first(word) != piece:
            return self.first(word)
        return -1 if self.heads[word] < 0 else self.first(self.heads[word])

    def features(self, start: int = 1000) -> SegmentFeatures:
        """What would be stored: ids count up from ``start``, tags tell words apart."""
        size = len(self.words)
        tags = [0 if word is None else word % 17 + 1 for word in self.words]
        return SegmentFeatures(
            input_ids=np.arange(start, start + size, dtype=np.int32),
            head=np.array([self.head(piece) for piece in range(size)], np.int32),
            word_ids=np.array([-1 if word is None else word for word in self.words], np.int32),
            upos=np.array(tags, np.uint8),
            deprel=np.array([2 * tag for tag in tags], np.uint8),
            sentence_ids=np.array(
                [-1 if word is None else self.sentences[word] for word in self.words], np.int32
            ),
            offsets=np.array([(piece, piece + 1) for piece in range(size)], np.int32).reshape(
                -1, 2
            ),
        )


@st.composite
def _texts(draw: st.DrawFn) -> Text:
    sizes = draw(st.lists(st.integers(1, 5), max_size=3))
    heads: list[int] = []
    for first, size in zip(accumulate(sizes, initial=0), sizes, strict=False):
        order = draw(st.permutations(range(first, first + size)))
        sentence = {order[0]: -1}
        for index, word in enumerate(order[1:], 1):
            sentence[word] = order[draw(st.integers(0, index - 1))]
        heads += [sentence[word] for word in range(first, first + size)]
    words: list[int | None] = []
    for word in range(len(heads)):
        words += draw(st.sampled_from(_PIECES))(word)
    return Text(heads, [at for at, size in enumerate(sizes) for _ in range(size)], words)


_PIECES: list[Callable[[int], list[int | None]]] = [
    lambda word: [word],
    lambda word: [word],
    lambda word: [word, word],
    lambda word: [word, word, word],
    lambda word: [None, word],
    lambda word: [word, None, word],
    lambda word: [word, word, None],
]
"""How the pieces of one word may look; a white-space piece belongs to no word."""


@pytest.fixture(scope="session")
def texts() -> st.SearchStrategy[Text]:
    """Texts of up to three sentences; possibly none."""
    return _texts()


@pytest.fixture(scope="session")
def treebank_trees(data_dir: Path) -> list[list[int]]:
    """Parents of every third tree of all development files, and of the parallel treebanks."""
    files = sorted((data_dir / "treebanks").glob("*/*-ud-dev.conllu"))
    files += sorted((data_dir / "treebanks").glob("*PUD/*-ud-test.conllu"))
    trees = [sentence.tree.parents.tolist() for file in files for sentence in read_conllu(file)]
    return trees[::3]
