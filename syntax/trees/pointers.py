"""A tree as the steps of a stack-pointer parser, and back (Ma et al. 2018).

ROOT is on the stack first. At each step the node on top points to its next child, in the order of
the sentence, which goes onto the stack; or to itself, which takes it off. Every tree over n
positions, ROOT included, has exactly 2n - 1 steps, whether or not it is projective.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import InputError


class PointerSteps(NamedTuple):
    """Nodes on ``tops`` of the stack and their ``targets``; ROOT is 0. *Shape:* (2W + 1,) each."""

    tops: NDArray[np.int64]
    targets: NDArray[np.int64]


def pointer_steps(heads: ArrayLike) -> PointerSteps:
    """Steps that build a tree from left to right; heads (W,) are 1-based, 0 for a root.

    >>> pointer_steps([2, 0]).targets.tolist()
    [2, 1, 1, 2, 0]
    """
    above = np.asarray(heads, np.int64)
    children: list[list[int]] = [[] for _ in range(len(above) + 1)]
    for word, head in enumerate(above.tolist(), 1):
        if not 0 <= head <= len(above):
            raise InputError(f"word {word} has the head {head}; there are {len(above)} words")
        children[head].append(word)
    stack, tops, targets = [0], [], []
    taken = [0] * len(children)
    while stack:
        top = stack[-1]
        tops.append(top)
        if taken[top] < len(children[top]):
            stack.append(children[top][taken[top]])
            taken[top] += 1
            targets.append(stack[-1])
        else:
            targets.append(stack.pop())
    if len(targets) != 2 * len(above) + 1:
        raise InputError("some words hang from each other and not from ROOT; give a tree")
    return PointerSteps(np.array(tops), np.array(targets))


def heads_of_steps(targets: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The tree that steps (2W + 1,) build. *Shape:* (W,), int64, 1-based heads.

    >>> heads_of_steps([2, 1, 1, 2, 0]).tolist()
    [2, 0]
    """
    steps = [int(target) for target in targets]
    words = (len(steps) - 1) // 2
    heads, stack = np.full(words + 1, -1, np.int64), [0]
    for number, target in enumerate(steps):
        if not stack or not 0 <= target <= words:
            raise InputError(f"step {number} points to {target} of {words} words, or to nothing")
        if target == stack[-1]:
            stack.pop()
        elif target == 0 or heads[target] >= 0:
            raise InputError(f"step {number} points to {target}, which has a head already")
        else:
            heads[target] = stack[-1]
            stack.append(target)
    if stack or (heads[1:] < 0).any():
        raise InputError("the steps end before every word has a head and the stack is empty")
    return heads[1:]
