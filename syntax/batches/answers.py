"""Character spans to pieces and back, in texts and in batches; all spans are half-open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import InputError, SpecError

Spans = NDArray[np.int64]
"""Starts and ends. *Shape:* (N, 2)."""

INSIDE, CUT, OUTSIDE, NO_PIECES = range(4)
"""States of a span in a sequence: every piece of it is there; some are, and others were removed;
none is, and not all of its characters are shown; or they are, but no piece covers any of them
(white space, an empty span)."""

NOWHERE: Final = (-1, -1)


class Located(NamedTuple):
    """Places of spans of characters in the sequences of a batch. *Shape:* (B,) each.

    Attributes:
        start, end: First position of a span, and the one behind its last; -1 unless `INSIDE`.
        state: `INSIDE`, `CUT`, `OUTSIDE` or `NO_PIECES`.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int8]


def pieces_of(offsets: ArrayLike, characters: ArrayLike) -> Spans:
    """First and end of the pieces that cover any character of each span; else `NOWHERE`.

    ``offsets`` (L, 2): characters of each piece, starts and ends both in order. *Shape:* (N, 2).

    >>> pieces_of([(0, 4), (5, 7), (7, 10)], [(5, 10), (6, 7), (4, 5)]).tolist()
    [[1, 3], [1, 2], [-1, -1]]
    """
    starts, ends = _pairs(offsets).T
    wanted = _pairs(characters)
    first = np.searchsorted(ends, wanted[:, 0], side="right")
    behind = np.searchsorted(starts, wanted[:, 1], side="left")
    found = (first < behind) & (wanted[:, 0] < wanted[:, 1])
    return np.where(found[:, None], np.stack([first, behind], axis=1), NOWHERE)


def characters_of(offsets: ArrayLike, pieces: ArrayLike) -> Spans:
    """Characters from the first to the last of each run of pieces; inverse of `pieces_of`.

    Characters at the edges of a span that no piece covers are lost. *Shape:* (N, 2).

    >>> characters_of([(0, 4), (5, 7), (7, 10)], [(1, 3), (-1, -1)]).tolist()
    [[5, 10], [-1, -1]]
    """
    pairs, runs = _pairs(offsets), _pairs(pieces)
    some = runs[:, 0] < runs[:, 1]
    if some.any() and not 0 <= runs[some, 0].min() <= runs[some, 1].max() <= len(pairs):
        raise InputError(f"the pieces {runs[some].tolist()} are not all among {len(pairs)} pieces")
    spans = np.full(runs.shape, NOWHERE, np.int64)
    spans[some, 0] = pairs[runs[some, 0], 0]
    spans[some, 1] = pairs[runs[some, 1] - 1, 1]
    return spans


def locate(batch: Mapping[str, Any], characters: ArrayLike, segment: int = 0) -> Located:
    """Find spans of characters of the examples' texts in a batch with ``offsets=True``.

    There is one span for each example, such as an answer in its passage, an empty one, such as
    `NOWHERE`, for none; it is looked up in all sequences of its example. *Shape:* (examples, 2).
    """
    spans = _pairs(characters)[example_rows(batch)]
    mapping, bounds = _offsets(batch), batch["shown_characters"]
    if not 0 <= segment < bounds.shape[1]:
        raise SpecError(f"segment {segment} came; the batch has {bounds.shape[1]}, from 0")
    ours = batch["segment_ids"] == segment
    start, end = spans[:, :1], spans[:, 1:]
    covers = ours & (mapping[..., 0] < end) & (mapping[..., 1] > start) & (start < end)
    shown = (bounds[:, segment, 0] <= spans[:, 0]) & (spans[:, 1] <= bounds[:, segment, 1])
    some = covers.any(axis=1)
    nothing = np.where(shown | (spans[:, 0] >= spans[:, 1]), NO_PIECES, OUTSIDE)
    state = np.where(some, np.where(shown, INSIDE, CUT), nothing)
    inside = state == INSIDE
    last = covers.shape[1] - np.argmax(covers[:, ::-1], axis=1) if covers.size else 0 * state
    first = np.argmax(covers, axis=1) if covers.size else 0 * state
    return Located(np.where(inside, first, -1), np.where(inside, last, -1), state.astype(np.int8))


def spans_of_text(batch: Mapping[str, Any], start: ArrayLike, end: ArrayLike) -> Spans:
    """Characters between positions ``start`` and ``end`` (behind the last) of a batch with offsets.

    They are in the text of the segment that the positions are in; `NOWHERE` where these are not all
    pieces of one segment. *Shape:* (B, 2).
    """
    mapping, segments = _offsets(batch), batch["segment_ids"]
    first, last = np.asarray(start, np.int64), np.asarray(end, np.int64) - 1
    rows, width = np.arange(len(first)), segments.shape[1]
    valid = (first >= 0) & (first <= last) & (last < width)
    first, last = np.where(valid, first, 0), np.where(valid, last, 0)
    valid &= (segments[rows, first] >= 0) & (segments[rows, first] == segments[rows, last])
    spans = np.stack([mapping[rows, first, 0], mapping[rows, last, 1]], axis=1).astype(np.int64)
    return np.where(valid[:, None], spans, NOWHERE)


def example_rows(batch: Mapping[str, Any]) -> NDArray[np.int64]:
    """Example of each sequence of a batch. *Shape:* (B,)."""
    own = np.arange(len(batch["segment_ids"]))
    return np.asarray(batch.get("example_index", own), np.int64)


def _offsets(batch: Mapping[str, Any]) -> NDArray[np.int32]:
    if "offset_mapping" not in batch:
        raise SpecError("the batch has no offset_mapping; ask for it with `offsets=True`")
    mapping: NDArray[np.int32] = batch["offset_mapping"]
    return mapping


def _pairs(values: ArrayLike) -> Spans:
    return np.asarray(values, np.int64).reshape(-1, 2)
