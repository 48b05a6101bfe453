"""Sequences that are made of examples, and the pieces that each keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.batches import kernels
from syntax.batches.naming import of_batch
from syntax.batches.segments import FlatExamples, spread
from syntax.batches.spec import AssemblySpec
from syntax.batches.template import Arranged, arrange
from syntax.batches.truncation import Parts, Spans, kept_spans
from syntax.batches.windows import cut_windows
from syntax.matrices.offsets import owner_of, sizes


class Origin(NamedTuple):
    """Example, place in the template, window and context of pieces of each of Q sequences."""

    example: NDArray[np.int32]
    choice: NDArray[np.int32]
    window: NDArray[np.int32]
    max_context: NDArray[np.bool_] | None


class Sequences(NamedTuple):
    """Sequences to be assembled: Q of them, one "example" each, of S segments.

    ``joined`` (S,) have no special tokens before them; ``spans`` (S, 2) are the pieces kept of
    each; ``origin`` is `None` where every example is one sequence, as it is.
    """

    examples: FlatExamples
    joined: NDArray[np.bool_]
    spans: Spans
    origin: Origin | None = None

    @property
    def part_counts(self) -> NDArray[np.int64]:
        counts = sizes(self.examples.example_offsets)
        if self.origin is None:
            return counts
        before = np.concatenate(([0], np.cumsum(self.joined)))
        return counts - sizes(before[self.examples.example_offsets])

    def name(self, segment: int) -> str:
        sequence = owner_of(segment, self.examples.example_offsets)
        within = segment - int(self.examples.example_offsets[sequence])
        number = sequence if self.origin is None else int(self.origin.example[sequence])
        return f"{of_batch(number)}, segment {within}"


def plan_sequences(examples: FlatExamples, frame: kernels.Frame, spec: AssemblySpec) -> Sequences:
    template = spec.layout
    if template is None and not spec.splits:
        alone = np.zeros(len(examples.segment_offsets) - 1, np.bool_)
        parts = Parts(examples.segment_offsets, examples.example_offsets)
        return Sequences(examples, alone, kept_spans(parts, frame, spec))
    arranged = arrange(examples, template)
    parts = Parts.of(arranged.examples, arranged.joined, arranged.example)
    if spec.splits:
        return _windowed(arranged, parts, frame, spec)
    spans = parts.segment_spans(kept_spans(parts, frame, spec), arranged.examples)
    origin = Origin(arranged.example, arranged.choice, np.zeros_like(arranged.choice), None)
    return Sequences(arranged.examples, arranged.joined, spans, origin)


def _windowed(
    arranged: Arranged, parts: Parts, frame: kernels.Frame, spec: AssemblySpec
) -> Sequences:
    windows = cut_windows(arranged.examples, parts, frame, spec)
    examples = arranged.examples.take(windows.sequence)
    segments, _ = spread(arranged.examples.example_offsets, windows.sequence)
    joined = arranged.joined[segments]
    spans = Parts.of(examples, joined).segment_spans(windows.spans, examples)
    origin = Origin(
        arranged.example[windows.sequence],
        arranged.choice[windows.sequence],
        windows.window,
        windows.max_context,
    )
    return Sequences(examples, joined, spans, origin)
