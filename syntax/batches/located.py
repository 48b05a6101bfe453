"""Places of the labelled spans of examples in the sequences of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.batches.answers import locate
from syntax.batches.labels import label_rows
from syntax.errors import SpecError


class LocatedSpans(NamedTuple):
    """Every span in every sequence of its example, by sequence and then by number. (K,) each."""

    row: NDArray[np.int64]
    number: NDArray[np.int64]
    label: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int8]


def locate_spans(
    batch: Mapping[str, Any], spans: Sequence[ArrayLike], segment: int = 0
) -> LocatedSpans:
    """Find several spans of each example: `locate` for a label column of kind ``spans``.

    ``spans`` are arrays (N, 2), or (N, 3) with class ids, for each example or each sequence.

    >>> batch = {"segment_ids": np.array([[-1, 0, 0, 0, -1]]), "offset_mapping":
    ...     np.array([[[0, 0], [0, 4], [5, 7], [7, 9], [0, 0]]]),
    ...     "shown_characters": np.array([[[0, 10]]])}
    >>> found = locate_spans(batch, [[(5, 9, 2), (0, 4, 0)]])
    >>> found.label.tolist(), found.start.tolist(), found.end.tolist()
    ([2, 0], [2, 1], [4, 2])
    """
    if "offset_mapping" not in batch:
        raise SpecError("the batch has no offset_mapping; ask for it with `offsets=True`")
    each = [_three_columns(np.asarray(one, np.int64)) for one in spans]
    chosen = [each[row] for row in label_rows(batch, len(spans))]
    counts = np.fromiter(map(len, chosen), np.int64, len(chosen))
    flat = np.concatenate([np.empty((0, 3), np.int64), *chosen])
    row = np.repeat(np.arange(len(chosen)), counts)
    names = ("segment_ids", "offset_mapping", "shown_characters")
    found = locate({name: batch[name][row] for name in names}, flat[:, :2], segment)
    number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return LocatedSpans(row, number, flat[:, 2], *found)


def _three_columns(spans: NDArray[np.int64]) -> NDArray[np.int64]:
    if spans.ndim == 2 and spans.shape[1] == 2:
        return np.pad(spans, ((0, 0), (0, 1)), constant_values=-1)
    return spans.reshape(-1, 3)
