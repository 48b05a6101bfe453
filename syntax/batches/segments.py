"""Segments as they are stored, and examples of many of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syntax.batches import kernels
from syntax.batches.naming import of_batch
from syntax.errors import InputError
from syntax.matrices.offsets import as_offsets, for_numba, offsets_of, sizes

IntArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

Span = tuple[int, int, int]
"""Segment of an example, first character, and the end."""

COLUMNS = {
    "input_ids": np.int32,
    "head": np.int32,
    "word_ids": np.int32,
    "upos": np.uint8,
    "deprel": np.uint8,
    "sentence_ids": np.int32,
}


@dataclass(frozen=True, slots=True)
class SegmentFeatures:
    """One tokenized text with its trees, as it is kept (L pieces, none special).

    Attributes:
        input_ids: Token ids. *Shape:* (L,), int32.
        head: The *attach* tree: position of the piece that each piece hangs from, -1 at the root
            of a sentence, -2 for a piece without a word. *Shape:* (L,), int32.
        word_ids: Word of each piece, counted through the text, -1 for none. *Shape:* (L,), int32.
        upos, deprel: Ids of `syntax.trees.ud`, 0 for none. *Shape:* (L,), uint8.
        sentence_ids: Sentence of each piece, -1 for none. *Shape:* (L,), int32.
        offsets: Characters of the text that each piece covers. *Shape:* (L, 2), int32.
    """

    input_ids: IntArray
    head: IntArray
    word_ids: IntArray
    upos: ByteArray
    deprel: ByteArray
    sentence_ids: IntArray
    offsets: IntArray

    def __post_init__(self) -> None:
        _check_lengths("segment", self, (*COLUMNS, "offsets"))

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True, slots=True)
class FlatExamples:
    """B examples of S segments in all, their pieces (N in all) laid end to end.

    Other dtypes and layouts are converted, read-only arrays copied. Columns are as in
    `SegmentFeatures`; ``head`` still counts within its segment.

    Attributes:
        segment_offsets: First piece of each segment, and the end. *Shape:* (S + 1,), int64.
        example_offsets: First segment of each example, and the end. *Shape:* (B + 1,), int64.
        marks: Non-zero in spans for matrices such as ``gate_distance`` (`mark_spans`). (N,), uint8.
        token_ids: The dataset's token that each piece shows (`token_ids_of`). *Shape:* (N,), int32.
    """

    input_ids: IntArray
    head: IntArray
    word_ids: IntArray
    upos: ByteArray
    deprel: ByteArray
    sentence_ids: IntArray
    segment_offsets: NDArray[np.int64]
    example_offsets: NDArray[np.int64]
    offsets: IntArray | None = None
    marks: ByteArray | None = None
    token_ids: IntArray | None = None

    def __post_init__(self) -> None:
        for name, dtype in COLUMNS.items():
            self._set(name, for_numba(getattr(self, name), dtype))
        if self.offsets is not None:
            self._set("offsets", np.asarray(self.offsets, np.int32).reshape(-1, 2))
        if self.marks is not None:
            self._set("marks", for_numba(self.marks, np.uint8))
        if self.token_ids is not None:
            self._set("token_ids", np.asarray(self.token_ids, np.int32))
        _check_lengths("batch", self, self.columns)
        self._set("segment_offsets", as_offsets(self.segment_offsets, len(self.input_ids)))
        segments = len(self.segment_offsets) - 1
        self._set("example_offsets", as_offsets(self.example_offsets, segments))

    def _set(self, name: str, value: NDArray[Any] | None) -> None:
        object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.example_offsets) - 1

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        further = {"offsets": self.offsets, "marks": self.marks, "token_ids": self.token_ids}
        return {
            **{name: getattr(self, name) for name in COLUMNS},
            **{name: column for name, column in further.items() if column is not None},
        }

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Pieces of each example, before truncation and without special tokens. *Shape:* (B,)."""
        return sizes(self.segment_offsets[self.example_offsets])

    @classmethod
    def from_segments(cls, examples: Sequence[Sequence[SegmentFeatures]]) -> FlatExamples:
        segments = [segment for example in examples for segment in example]
        columns = {
            name: np.concatenate(
                [np.empty(0, dtype), *(getattr(segment, name) for segment in segments)],
                dtype=dtype,
                casting="same_kind",
            )
            for name, dtype in COLUMNS.items()
        }
        offsets = [np.empty((0, 2), np.int32), *(segment.offsets for segment in segments)]
        return cls(
            **columns,
            segment_offsets=offsets_of([len(segment) for segment in segments]),
            example_offsets=offsets_of([len(example) for example in examples]),
            offsets=np.concatenate(offsets),
        )

    def take(self, rows: ArrayLike) -> FlatExamples:
        segments, segment_counts = spread(self.example_offsets, np.asarray(rows, np.int64))
        return self.pick(segments, segment_counts)

    def pick(self, segments: NDArray[np.int64], counts: ArrayLike) -> FlatExamples:
        """New examples of the ``segments``, numbered end to end, of which each has ``counts``."""
        return _picked(self.columns.items(), self.segment_offsets, segments, counts)

    @classmethod
    def taken(
        cls,
        columns: Iterable[tuple[str, NDArray[Any]]],
        segment_offsets: NDArray[np.int64],
        example_offsets: NDArray[np.int64],
        rows: ArrayLike,
    ) -> FlatExamples:
        """As `take` of the examples with these columns, of which one at a time is held twice."""
        segments, counts = spread(example_offsets, np.asarray(rows, np.int64))
        return _picked(columns, segment_offsets, segments, counts)

    def slice(self, start: int, end: int) -> FlatExamples:
        """Consecutive examples, as views."""
        first, last = self.example_offsets[start], self.example_offsets[end]
        a, z = self.segment_offsets[first], self.segment_offsets[last]
        part = object.__new__(FlatExamples)  # a part of what was checked needs no check
        for name in self.__slots__:
            column = getattr(self, name)
            part._set(name, column if column is None else column[a:z])
        part._set("segment_offsets", self.segment_offsets[first : last + 1] - a)
        part._set("example_offsets", self.example_offsets[start : end + 1] - first)
        return part

    @classmethod
    def joined(cls, parts: Sequence[FlatExamples]) -> FlatExamples:
        names = set.intersection(*(set(part.columns) for part in parts))
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
        segments = [sizes(part.segment_offsets) for part in parts]
        examples = [sizes(part.example_offsets) for part in parts]
        return cls(
            **columns,
            segment_offsets=offsets_of(np.concatenate(segments)),
            example_offsets=offsets_of(np.concatenate(examples)),
        )

    def with_segments(self, segments: NDArray[np.int64]) -> FlatExamples:
        return self.pick(segments.reshape(-1), np.full(len(segments), segments.shape[1]))


def mark_spans(examples: FlatExamples, spans: Sequence[Sequence[Span]]) -> FlatExamples:
    """The examples with marks on the pieces of the spans; a span without a piece is an error.

    The k-th of at most eight spans of an example sets the k-th bit of its pieces.

    Example:
        >>> marked = mark_spans(examples, [[(0, 4, 7), (0, 19, 22)]])     # doctest: +SKIP
        >>> spec = AssemblySpec(matrices=("gate_distance(keep=1)",))      # doctest: +SKIP
    """
    if examples.offsets is None:
        raise InputError("the examples came without offsets; spans cannot be found without them")
    if len(spans) != len(examples):
        raise InputError(f"spans came for {len(spans)} examples; there are {len(examples)}")
    marks = np.zeros(len(examples.input_ids), np.uint8)
    for example, own in enumerate(spans):
        if len(own) > 8:
            raise InputError(f"{of_batch(example)} has {len(own)} spans; 8 can be marked")
        for bit, span in enumerate(own):
            marks[_pieces(examples, examples.offsets, example, span)] |= np.uint8(1 << bit)
    return replace(examples, marks=marks)


def _pieces(
    examples: FlatExamples, offsets: NDArray[np.int32], example: int, span: Span
) -> NDArray[np.intp]:
    segment, start, end = span
    first, last = examples.example_offsets[example : example + 2].tolist()
    if not 0 <= segment < last - first:
        raise InputError(
            f"{of_batch(example)} has {last - first} segments; a span is in segment {segment}"
        )
    begin, stop = examples.segment_offsets[first + segment : first + segment + 2].tolist()
    touched = (offsets[begin:stop, 0] < end) & (offsets[begin:stop, 1] > start)
    pieces: NDArray[np.intp] = begin + np.flatnonzero(touched)
    if not len(pieces):
        raise InputError(
            f"{of_batch(example)}: no piece of segment {segment} covers any of "
            f"characters {start} to {end}"
        )
    return pieces


def _check_lengths(kind: str, item: object, names: Iterable[str]) -> None:
    lengths = {name: len(getattr(item, name)) for name in names}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of a {kind} differ in length: {lengths}")


def _picked(
    columns: Iterable[tuple[str, NDArray[Any]]],
    segment_offsets: NDArray[np.int64],
    segments: NDArray[np.int64],
    counts: ArrayLike,
) -> FlatExamples:
    starts, ends = segment_offsets[segments], segment_offsets[segments + 1]
    picked = {}
    for name, column in columns:
        picked[name] = take_runs(column, starts, ends)
        del column  # before the next one is made
    return FlatExamples(
        **picked, segment_offsets=offsets_of(ends - starts), example_offsets=offsets_of(counts)
    )


def take_runs(
    column: NDArray[Any], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[Any]:
    width = prod(column.shape[1:])
    taken = np.empty((int((ends - starts).sum()), *column.shape[1:]), column.dtype)
    kernels.copy_runs(column.reshape(-1), starts * width, ends * width, taken.reshape(-1))
    return taken


def spread(
    offsets: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of everything in the given rows, and how many each row has."""
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    shifts = np.repeat(starts - np.cumsum(counts) + counts, counts)
    return np.arange(len(shifts)) + shifts, counts
