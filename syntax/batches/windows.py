"""One long part spread over several sequences: windows with a stride, or sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.batches import kernels
from syntax.batches.naming import of_batch
from syntax.batches.segments import FlatExamples, spread
from syntax.batches.spec import AssemblySpec
from syntax.batches.truncation import (
    NO_LIMIT,
    Parts,
    Spans,
    limited_spans,
)
from syntax.errors import SpecError
from syntax.matrices.offsets import offsets_of, sizes

Run = tuple[int, int]
"""First and end of consecutive pieces, counted within a part."""


class Windows(NamedTuple):
    """W windows of Q sequences, at least one each, in order; ``window`` counts within a sequence.

    ``max_context`` is true where a piece has most context; it has all pieces of all windows.
    """

    sequence: NDArray[np.int64]
    window: NDArray[np.int32]
    spans: Spans
    max_context: NDArray[np.bool_]


def cut_windows(
    examples: FlatExamples, parts: Parts, frame: kernels.Frame, spec: AssemblySpec
) -> Windows:
    base = limited_spans(parts, frame, spec)
    place = _target(parts, spec)
    targets = parts.example_offsets[:-1] + place
    room = _room(parts, base, targets, frame, spec)
    from_front = spec.sides[min(place, len(spec.sides) - 1)] == "left"
    shown = [
        [window for run in runs for window in _slide(run, free, spec.stride, from_front)]
        for runs, free in zip(_runs(examples, parts, base, targets, spec), room, strict=True)
    ]
    counts = [len(one) for one in shown]
    sequence = np.repeat(np.arange(len(shown)), counts)
    flat = np.array([window for one in shown for window in one], np.int32).reshape(-1, 2)
    of_windows, part_counts = spread(parts.example_offsets, sequence)
    spans = base[of_windows]
    spans[np.cumsum(part_counts) - part_counts + place] = flat
    first = offsets_of(counts)
    window = (np.arange(len(sequence)) - first[sequence]).astype(np.int32)
    bounds = parts.offsets[parts.example_offsets]
    max_context = np.zeros(int(sizes(bounds)[sequence].sum()), np.bool_)
    ends = parts.offsets[targets + 1]
    kernels.widest(bounds, parts.offsets[targets], ends, first, flat, max_context)
    return Windows(sequence, window, spans, max_context)


def _target(parts: Parts, spec: AssemblySpec) -> int:
    counts = parts.counts()
    several = counts > 1
    if spec.truncation == "longest_first" and several.any():
        example = int(several.argmax())
        raise SpecError(
            f"{of_batch(parts.name(example))} has {counts[example]} segments; with "
            "stride or level 'sentence', truncation must say which one is spread over sequences: "
            "only_first or only_second"
        )
    if spec.truncation == "only_second" and not several.all():
        example = int(several.argmin())
        raise SpecError(f"{of_batch(parts.name(example))} has no second segment to spread")
    return 1 if spec.truncation == "only_second" else 0


def _room(
    parts: Parts,
    base: Spans,
    targets: NDArray[np.int64],
    frame: kernels.Frame,
    spec: AssemblySpec,
) -> list[int]:
    limit = NO_LIMIT if spec.max_length is None else spec.max_length
    kept = offsets_of(base[:, 1] - base[:, 0])
    own = kept[targets + 1] - kept[targets]
    others = sizes(kept[parts.example_offsets]) - own
    specials = frame.prefix + (parts.counts() - 1) * frame.separator + frame.suffix
    room: NDArray[np.int64] = limit - specials - others
    narrow = room < np.minimum(own, 1)
    if narrow.any():
        number = parts.name(int(narrow.argmax()))
        beside = limit - int(room[narrow.argmax()])
        raise SpecError(
            f"{of_batch(number)} has {beside} pieces beside the segment that is spread, "
            f"which leaves no room for that in max_length {limit}; raise it, or give "
            "segment_limits",
            example=number,
        )
    return [int(free) for free in room]


def _runs(
    examples: FlatExamples,
    parts: Parts,
    base: Spans,
    targets: NDArray[np.int64],
    spec: AssemblySpec,
) -> Iterator[list[Run]]:
    for (low, high), start, end in zip(
        base[targets].tolist(),
        parts.offsets[targets].tolist(),
        parts.offsets[targets + 1].tolist(),
        strict=True,
    ):
        if spec.level == "document":
            yield [(low, high)]
        else:
            yield _clipped(list(sentence_runs(examples, start, end)), low, high)


def sentence_runs(examples: FlatExamples, start: int, end: int) -> Iterator[Run]:
    """Sentences from piece ``start`` to ``end``, counted from there; none crosses a segment.

    Pieces without a sentence go with the one before them, the first ones with the first sentence.
    """
    bounds = examples.segment_offsets
    inner = bounds[(bounds > start) & (bounds < end)].tolist()
    for first, stop in pairwise(sorted({start, *inner, end})):
        ids = examples.sentence_ids[first:stop]
        known = np.flatnonzero(ids >= 0)
        starts = known[1:][ids[known[1:]] != ids[known[:-1]]] + first
        cuts = [first, *starts.tolist(), stop]
        yield from ((one - start, other - start) for one, other in pairwise(cuts))


def _clipped(runs: list[Run], low: int, high: int) -> list[Run]:
    """The runs within bounds; one of them, if empty, where nothing is left."""
    inside = [(max(start, low), min(end, high)) for start, end in runs]
    return [(start, end) for start, end in inside if start < end] or [(low, high)]


def _slide(run: Run, room: int, stride: int | None, from_front: bool) -> Iterator[Run]:
    start, end = run
    if stride is None:
        yield (max(start, end - room), end) if from_front else (start, min(end, start + room))
        return
    while end - start > room:
        yield start, start + room
        start += min(stride, room)
    yield start, end
