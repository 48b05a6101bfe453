"""Spans of characters, such as the two entities of a relation, as marks of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syntax.batches.naming import of_batch
from syntax.batches.segments import FlatExamples
from syntax.errors import InputError

Span = tuple[int, int, int]
"""Segment of an example, first character, and the end."""


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
