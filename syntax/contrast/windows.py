"""Tree samples as SynCLM's release draws them: the span of a subtree, and shifted windows."""

from __future__ import annotations

import numpy as np

from syntax.compiled import njit
from syntax.contrast.draws import Index, IntArray, State, choose
from syntax.contrast.rows import TreeRows
from syntax.contrast.texts import measure


@njit(cache=True, nogil=True)
def draw(
    state: State,
    column: IntArray,
    parent: IntArray,
    row: int,
    end: int,
    rows: TreeRows,
    min_size: int,
    max_size: int,
) -> int:
    """Samples of one segment; the row after the last one filled."""
    shape = measure(parent)
    count = len(parent)
    heads = np.arange(count).astype(np.int32)
    choose(state, heads, count, count)
    starts = np.empty(3 * (max_size + 1), np.int32)
    lengths = np.empty_like(starts)
    for head in heads:
        length = shape.last[head] - shape.first[head] + 1
        if parent[head] < 0 or shape.size[head] < 2 or not min_size <= length <= max_size:
            continue
        if row == end:
            return row
        size = _shifted(head, shape.first[head], length, count, starts, lengths)
        if size == 0:
            continue
        order = np.arange(size).astype(np.int32)
        rows.root[row] = column[head]
        _copy(column, shape.first[head], length, rows.positive[row])
        for at in range(choose(state, order, size, rows.negatives.shape[1])):
            window = order[at]
            _copy(column, starts[window], lengths[window], rows.negatives[row, at])
        row += 1
    return row


@njit(cache=True, nogil=True)
def _shifted(
    head: Index, first: Index, length: int, count: int, starts: IntArray, lengths: IntArray
) -> int:
    """Collect the windows that contain the head, other than the span itself."""
    size = 0
    for wide in range(length - 1 if length > 3 else length, length + 2):
        for start in range(max(head - wide + 1, 0), min(head, count - wide) + 1):
            if start != first or wide != length:
                starts[size], lengths[size] = start, wide
                size += 1
    return size


@njit(cache=True, nogil=True)
def _copy(column: IntArray, start: Index, length: int, tree: IntArray) -> None:
    for at in range(length):
        tree[at] = column[start + at]
