"""Character spans to pieces and back: answers in texts, in segments and in batches.

Spans are half-open, as everywhere: the label for a model that predicts its last piece is
``end - 1``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.errors import InputError, SpecError

Spans = NDArray[np.int64]
"""Starts and ends. *Shape:* (N, 2)."""

INSIDE, CUT, OUTSIDE, NO_PIECES = range(4)
"""What may be of a span in a sequence: every piece of it is there; some are, and others were
removed; none is, and not all of its characters are shown; or they are, but no piece covers any of
them (white space, an empty span)."""

NOWHERE: Final = (-1, -1)
"""The span of what is not there."""


class Located(NamedTuple):
    """Where spans of characters are in the sequences of a batch.

    Attributes:
        start, end: First position of a span in each sequence, and the one behind its last; -1
            unless the span is `INSIDE`. *Shape:* (B,), int64.
        state: `INSIDE`, `CUT`, `OUTSIDE` or `NO_PIECES`. *Shape:* (B,), int8.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    state: NDArray[np.int8]


def pieces_of(offsets: ArrayLike, characters: ArrayLike) -> Spans:
    """First and end of the pieces that cover any character of a span. *Shape:* (N, 2).

    `NOWHERE` where there is none.

    Args:
        offsets: Characters that each piece covers, starts and ends both in order. *Shape:* (L, 2).
        characters: Spans of characters. *Shape:* (N, 2).

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
    """The characters from the first to the last of some pieces; inverse of `pieces_of`.

    What it gives for the pieces of a span covers the span, but for characters at its edges that no
    piece covers, and is the span itself where pieces start and end with it.

    Args:
        offsets: As in `pieces_of`.
        pieces: First and end of each run of pieces; an empty one has no characters. (N, 2).

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
    """Find spans of characters of the examples' texts in the sequences of a batch.

    Args:
        batch: What a stream gives with ``offsets=True``.
        characters: One span for each example, in its text of that segment, such as an answer in
            its passage; an empty one, such as `NOWHERE`, for none. Where examples have several
            sequences, each is looked up in all of them. *Shape:* (examples, 2).
        segment: Which segment of the sequences: 1 for the passage after a question.
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
    """Characters of the texts between positions of a batch, such as predicted answers.

    They are in the text of the segment that the positions are in; `NOWHERE` where these are not all
    pieces of one segment. *Shape:* (B, 2).

    Args:
        batch: What a stream gives with ``offsets=True``.
        start: First position in each sequence. *Shape:* (B,).
        end: The position behind the last. *Shape:* (B,).
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
    """The example that each sequence of a batch is of. *Shape:* (B,)."""
    own = np.arange(len(batch["segment_ids"]))
    return np.asarray(batch.get("example_index", own), np.int64)


def _offsets(batch: Mapping[str, Any]) -> NDArray[np.int32]:
    if "offset_mapping" not in batch:
        raise SpecError("the batch has no offset_mapping; ask for it with `offsets=True`")
    mapping: NDArray[np.int32] = batch["offset_mapping"]
    return mapping


def _pairs(values: ArrayLike) -> Spans:
    return np.asarray(values, np.int64).reshape(-1, 2)
