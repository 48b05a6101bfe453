"""Relations by definition: sets, walks and loops, for comparison with the compiled ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

Forests = st.SearchStrategy[list[int]]

# "the dog chased a cat": the -> dog -> chased <- cat <- a
DOG = [1, 2, -1, 4, 2]
# The dependents of 3 are 0 and 4; 1 and 2, which lie between, hang from 5.
CROSSING = [3, 5, 5, 5, 3, -1]


class Twin:
    """One forest, all questions answered by walking.

    Nodes that show their parent (``source``) answer as that parent.
    """

    def __init__(self, parents: list[int], source: list[int] | None = None) -> None:
        self.parents = parents
        self.size = len(parents)
        self.source = list(range(self.size)) if source is None else source

    def walk(self, node: int) -> list[int]:
        path = [node]
        while self.parents[path[-1]] >= 0:
            path.append(self.parents[path[-1]])
        return path

    def below(self, node: int) -> set[int]:
        return {other for other in range(self.size) if node in self.walk(other)}

    def lca(self, one: int, other: int) -> int:
        return next((node for node in self.walk(one) if node in self.walk(other)), -1)

    def steps(self, one: int, other: int) -> int | None:
        meeting = self.lca(one, other)
        if meeting < 0:
            return None
        return self.walk(one).index(meeting) + self.walk(other).index(meeting)

    def distance(self, one: int, other: int) -> int | None:
        return self.steps(self.source[one], self.source[other])

    def windowed(self, row: int, column: int, right: bool) -> int | None:
        points = [node for node in range(self.size) if self.source[node] == node]
        at = points.index(self.source[row])
        window = points[max(at - 1, 0) : at + 1 + right]
        found = [self.distance(node, column) for node in window]
        return min((steps for steps in found if steps is not None), default=None)

    def pruned(self, marks: list[int], keep: int) -> list[list[int | None]]:
        marked = {self.source[node] for node in range(self.size) if marks[node]}
        tops: dict[int, int] = {}
        for node in sorted(marked):
            root = self.walk(node)[-1]
            tops[root] = self.lca(tops.get(root, node), node)
        path = set()
        for node in marked:
            walk = self.walk(node)
            path |= set(walk[: walk.index(tops[walk[-1]]) + 1])
        left = {
            node
            for node in range(self.size)
            if any(above in path for above in self.walk(node)[: keep + 1])
        }
        if keep < 0 or not marked:
            left = set(range(self.size))
        return [
            [
                self.distance(one, other)
                if {self.source[one], self.source[other]} <= left
                else (0 if self.source[one] == self.source[other] else None)
                for other in range(self.size)
            ]
            for one in range(self.size)
        ]

    def subtree(self, node: int) -> tuple[int, int, int, int, bool]:
        """Height, size, first, last, projective."""
        node = self.source[node]
        below = self.below(node)
        height = max(self.walk(self.source[other]).index(node) for other in below)
        gapless = sorted(below) == list(range(min(below), max(below) + 1))
        return height, len(below), min(below), max(below), gapless

    def published_sgnet(self, special: list[bool]) -> list[list[bool]]:
        return [
            [
                one == other
                or (
                    not (special[one] or special[other])
                    and self.source[other] in self.walk(self.source[one])
                )
                for other in range(self.size)
            ]
            for one in range(self.size)
        ]

    def released_sgnet(self, special: list[bool], alone: bool = False) -> list[list[bool]]:
        def seen(one: int, other: int) -> bool:
            below = self.below(self.source[other])
            first, last = min(below), max(below)
            return (alone or first < last) and first <= self.source[one] <= last

        return self.square(
            lambda one, other: not special[one] and not special[other] and seen(one, other)
        )

    def square(self, cell: Any) -> list[list[Any]]:
        return [[cell(one, other) for other in range(self.size)] for one in range(self.size)]


def filled(cells: list[list[int | None]], matrix: np.ndarray[Any, Any]) -> list[list[int]]:
    """Cells as they are in a matrix: what there is none of is the dtype's largest."""
    none = int(np.iinfo(matrix.dtype).max)
    return [[none if cell is None else cell for cell in row] for row in cells]


@st.composite
def shown_forests(draw: st.DrawFn, forests: Forests) -> tuple[list[int], list[int]]:
    """A forest of which some leaves show their parents, as later pieces do."""
    parents = draw(forests)
    leaves = [node for node in range(len(parents)) if node not in parents and parents[node] >= 0]
    later = draw(st.sets(st.sampled_from(leaves))) if leaves else set()
    return parents, [parents[node] if node in later else node for node in range(len(parents))]
