"""Phrase samples: a piece, another piece of its phrase, and pieces outside of the phrase.

Source: Zhang et al. 2022 (Findings of ACL, "Syntax-guided contrastive learning"), whose phrases
are the yields of dependency subtrees here, as in both releases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.compiled import njit
from syntax.contrast.base import (
    PADDING,
    Samples,
    Way,
    draw_samples,
    example_seeds,
)
from syntax.contrast.draws import Index, IntArray, State, below, choose, happens, shuffled
from syntax.contrast.texts import Shape, is_below, measure, texts_of
from syntax.options import Bounds, Count, Share, check_fields


@dataclass(frozen=True, slots=True)
class PhraseSampler:
    """Draws phrase samples. Pieces without a word do not count, also not in positions.

    ``synclm``: each piece with dependents becomes an anchor with ``probability``. The positive is a
    random piece of its span within ``positive_window``. The negatives are random pieces outside of
    the span, at most ``negative_window`` from it, without the anchor's parent. A second sample
    exchanges anchor and positive, and keeps the negatives on the side of the new anchor that is
    away from the old one.

    ``lr_sib``: in random order, each subtree of at least ``min_size`` pieces and at most
    ``max_height`` edges gives a sample. The anchor and the positive are two random pieces of it,
    the negatives are random pieces outside of it.

    A sample without negatives is dropped. Segments are sampled in order until there are
    ``max_samples``. Truncated segments are sampled as they are in the batch.

    Attributes:
        way: Whose rules.
        negatives: Negatives of a sample, at most (K).
        max_samples: Samples of an example, at most.
        probability: `synclm`: probability of each candidate.
        positive_window: `synclm`: largest distance of the positive from the anchor, in pieces.
        negative_window: `synclm`: largest distance of negatives from the ends of the span.
        min_size: `lr_sib`: fewest pieces of a phrase.
        max_height: `lr_sib`: most edges from the root of a phrase down to a leaf: 2, as published
            (Gessler and Schneider 2023, section 8: three nodes); its code has 1.
    """

    way: Way = "synclm"
    negatives: Count = 10
    max_samples: Count = 64
    probability: Share = 0.15
    positive_window: Count = 3
    negative_window: Count = 10
    min_size: Annotated[int, Bounds(2)] = 2
    max_height: Count = 2

    def __post_init__(self) -> None:
        check_fields("", self)

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """S samples, those of one example together. Pieces are columns of the batch, int32.

        * ``phrase_offsets``: int64 (B + 1,), first sample of each example, and the end
        * ``phrase_head``: (S,), the piece whose subtree the phrase is
        * ``phrase_anchor``, ``phrase_positive``: (S,)
        * ``phrase_negatives``: (S, K), -1 after the last one
        """
        count = len(keys) * self.max_samples
        rows = _Rows(
            np.empty(count, np.int32),
            np.empty(count, np.int32),
            np.empty(count, np.int32),
            np.full((count, self.negatives), PADDING, np.int32),
        )
        seeds = example_seeds(keys, seed, epoch, f"phrases of {self.way}")
        return draw_samples("phrase", texts_of(batch), seeds, self.max_samples, rows, self._draw)

    def _draw(
        self, state: State, column: IntArray, parent: IntArray, row: int, end: int, rows: _Rows
    ) -> int:
        segment = (state, column, parent, row, end, rows)
        if self.way == "synclm":
            windows = (self.positive_window, self.negative_window)
            return int(_draw_synclm(*segment, self.probability, *windows))
        return int(_draw_lr_sib(*segment, self.min_size, self.max_height))


class _Rows(NamedTuple):
    """Arrays of S samples, filled from the first row. *Shape:* (S,), and (S, K) for negatives."""

    head: IntArray
    anchor: IntArray
    positive: IntArray
    negatives: IntArray


@njit(cache=True, nogil=True)
def _draw_synclm(
    state: State,
    column: IntArray,
    parent: IntArray,
    row: int,
    end: int,
    rows: _Rows,
    probability: float,
    positive_window: int,
    negative_window: int,
) -> int:
    shape = measure(parent)
    count = len(parent)
    pool = np.empty(count, np.int32)
    for head in shuffled(state, count):
        if shape.size[head] < 2 or not happens(state, probability):
            continue
        size = 0
        for other in range(shape.first[head], shape.last[head] + 1):
            if other != head and abs(other - head) <= positive_window:
                pool[size] = other
                size += 1
        positive = pool[below(state, size)]
        size = _outside(shape, head, negative_window, pool)
        size = choose(state, pool, size, rows.negatives.shape[1])
        for exchanged in range(2):
            if row == end:
                return row
            anchor = positive if exchanged else head
            side = positive - head if exchanged else 0
            size = _kept(pool, size, parent[head], anchor, side)
            pair = (head, anchor, head + positive - anchor)
            row = _write(column, rows, row, pair, pool, size)
    return row


@njit(cache=True, nogil=True)
def _outside(shape: Shape, head: Index, window: int, pool: IntArray) -> int:
    first, last = shape.first[head], shape.last[head]
    size = 0
    for other in range(max(first - window, 0), min(last + window + 1, len(pool))):
        if not first <= other <= last:
            pool[size] = other
            size += 1
    return size


@njit(cache=True, nogil=True)
def _kept(pool: IntArray, size: int, above: Index, anchor: Index, side: Index) -> int:
    kept = 0
    for at in range(size):
        if pool[at] != above and (pool[at] - anchor) * side >= 0:
            pool[kept] = pool[at]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def _draw_lr_sib(
    state: State,
    column: IntArray,
    parent: IntArray,
    row: int,
    end: int,
    rows: _Rows,
    min_size: int,
    max_height: int,
) -> int:
    shape = measure(parent)
    count = len(parent)
    inside, outside = np.empty(count, np.int32), np.empty(count, np.int32)
    for top in shuffled(state, count):
        if row == end:
            return row
        if shape.size[top] < min_size or shape.height[top] > max_height:
            continue
        size = 0
        for other in range(count):
            if is_below(parent, other, top):
                inside[size] = other
                size += 1
            else:
                outside[other - size] = other
        choose(state, inside, size, 2)
        pair = (top, inside[0], inside[1])
        size = choose(state, outside, count - size, rows.negatives.shape[1])
        row = _write(column, rows, row, pair, outside, size)
    return row


@njit(cache=True, nogil=True)
def _write(
    column: IntArray,
    rows: _Rows,
    row: int,
    pair: tuple[Index, Index, Index],
    negatives: IntArray,
    size: int,
) -> int:
    if size == 0:
        return row
    rows.head[row] = column[pair[0]]
    rows.anchor[row], rows.positive[row] = column[pair[1]], column[pair[2]]
    for at in range(size):
        rows.negatives[row, at] = column[negatives[at]]
    return row + 1
