"""One long part spread over several sequences: windows with a stride, or sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.assembly import kernels
from syntax.assembly.segments import FlatExamples, spread
from syntax.assembly.spec import AssemblySpec
from syntax.assembly.truncation import (
    NO_LIMIT,
    Parts,
    Spans,
    limited_spans,
    special_count,
)
from syntax.errors import SpecError

Run = tuple[int, int]
"""First and end of consecutive pieces, counted within a part."""


class Windows(NamedTuple):
    """The windows of Q sequences; W of them, at least one each, in order.

    Attributes:
        sequence: The sequence that each window is of. *Shape:* (W,), int64.
        window: Its number among the windows of that sequence. *Shape:* (W,), int32.
        spans: Pieces that each part of each window keeps. *Shape:* (parts of the windows, 2).
        max_context: Whether a piece has more context here than in any other window of its
            sequence; for all pieces of all windows, end to end. *Shape:* (N,), bool.
    """

    sequence: NDArray[np.int64]
    window: NDArray[np.int32]
    spans: Spans
    max_context: NDArray[np.bool_]


def cut_windows(
    examples: FlatExamples, parts: Parts, frame: kernels.Frame, spec: AssemblySpec
) -> Windows:
    """The windows of sequences, each with every part but one as it is.

    Raises:
        SpecError: It is not said which part is spread, or the others leave no room for it.
    """
    base = limited_spans(parts, frame, spec)
    runs = [_windows(examples, parts, base, frame, spec, at) for at in range(len(examples))]
    counts = [len(one) for one in runs]
    sequence = np.repeat(np.arange(len(examples)), counts)
    window = np.concatenate([np.empty(0, np.int32), *map(np.arange, counts)]).astype(np.int32)
    shown, part_counts = spread(parts.example_offsets, sequence)
    spans = base[shown]
    targets = np.cumsum(part_counts) - part_counts
    each = zip(sequence.tolist(), part_counts.tolist(), strict=True)
    targets += [_target(spec, count, parts.name(at)) for at, count in each]
    flat = [run for one in runs for run in one]
    spans[targets] = np.array(flat, np.int32).reshape(-1, 2)
    context = [_max_context(parts, at, spec, one) for at, one in enumerate(runs)]
    return Windows(sequence, window, spans, np.concatenate([np.empty(0, np.bool_), *context]))


def _windows(
    examples: FlatExamples,
    parts: Parts,
    base: Spans,
    frame: kernels.Frame,
    spec: AssemblySpec,
    sequence: int,
) -> list[Run]:
    """What each window of a sequence shows of the part that is spread."""
    first, end = parts.example_offsets[sequence : sequence + 2].tolist()
    target = first + _target(spec, end - first, parts.name(sequence))
    low, high = base[target].tolist()
    others = int((base[first:end, 1] - base[first:end, 0]).sum()) - (high - low)
    limit = NO_LIMIT if spec.max_length is None else spec.max_length
    room = limit - special_count(frame, end - first) - others
    if room < (1 if high > low else 0):
        raise SpecError(
            f"example {parts.name(sequence)} of the batch has {limit - room} pieces beside the "
            f"segment that is spread, which leaves no room for that in max_length {limit}; raise "
            "it, or give segment_limits",
            example=parts.name(sequence),
        )
    runs = [(low, high)]
    if spec.level == "sentence":
        start, stop = parts.offsets[target : target + 2].tolist()
        runs = _clipped(list(sentence_runs(examples, start, stop)), low, high)
    from_front = spec.sides[min(target - first, len(spec.sides) - 1)] == "left"
    return [window for run in runs for window in _slide(run, room, spec.stride, from_front)]


def _target(spec: AssemblySpec, count: int, number: int) -> int:
    """Which of a sequence's parts is spread."""
    if spec.truncation == "longest_first" and count > 1:
        raise SpecError(
            f"example {number} of the batch has {count} segments; with stride or level 'sentence', "
            "truncation must say which one is spread over sequences: only_first or only_second"
        )
    target = 1 if spec.truncation == "only_second" else 0
    if target >= count:
        raise SpecError(f"example {number} of the batch has no second segment to spread")
    return target


def sentence_runs(examples: FlatExamples, start: int, end: int) -> Iterator[Run]:
    """The sentences among the pieces from ``start`` to ``end``, counted from there.

    Pieces without a sentence go with the one before them, the first ones with the first sentence.
    No sentence reaches from one segment into another.
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
    """The windows over a run, or what truncation leaves of it."""
    start, end = run
    if stride is None:
        yield (max(start, end - room), end) if from_front else (start, min(end, start + room))
        return
    while end - start > room:
        yield start, start + room
        start += min(stride, room)
    yield start, end


def _max_context(
    parts: Parts, sequence: int, spec: AssemblySpec, runs: list[Run]
) -> NDArray[np.bool_]:
    """Whether pieces have their maximum context; for every window all pieces of the sequence."""
    first, end = parts.example_offsets[sequence : sequence + 2].tolist()
    target = first + _target(spec, end - first, parts.name(sequence))
    start = parts.offsets[first]
    pieces = int(parts.offsets[end] - start)
    best = np.zeros((len(runs), pieces), np.bool_)
    # What every window shows has the same context in all of them: the first one it is.
    best[0] = True
    begin, stop = (parts.offsets[target : target + 2] - start).tolist()
    winner = widest_context(runs, stop - begin)
    best[:, begin:stop] = winner == np.arange(len(runs))[:, None]
    return best.reshape(-1)


def widest_context(runs: list[Run], size: int) -> NDArray[np.int64]:
    """The run in which each piece has most context, the first of several; -1 for none.

    As BERT's code for SQuAD: the lesser of the pieces before and after it in the run, and a
    hundredth of the run's length. *Shape:* (size,).
    """
    score, winner = np.full((2, size), -1, np.int64)
    for number, (start, end) in enumerate(runs):
        place = np.arange(end - start)
        context = 100 * np.minimum(place, place[::-1]) + (end - start)
        better = start + np.flatnonzero(context > score[start:end])
        score[better] = context[better - start]
        winner[better] = number
    return winner
