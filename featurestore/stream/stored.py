"""Matrices of a batch from the stored ones, instead of from parent vectors.

This is slower than deriving them, for tools that must see what was stored. The blobs are per
segment, so only what the frame of special tokens adds is computed: under a joint root every path
between sentences leads through it, and truncation deletes rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.stream.window import Window
from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from featurestore.tables.schema import MATRIX_BLOBS
from syntax.batches import AssemblySpec, SpecialTokens
from syntax.errors import SpecError
from syntax.matrices import ISOLATED, UNREACHABLE8, UNREACHABLE16

_FAR: Final = 1 << 40
"""Means "no path" while lengths are added."""


def check_stored(spec: AssemblySpec) -> None:
    """Refuse options for which the stored matrices are not the ones asked for."""
    if spec.policy.removesuffix(".v1") != "attach":
        raise SpecError(f"stored matrices are those of policy 'attach', not {spec.policy!r}")
    if spec.separator_edge == "last_piece":
        raise SpecError("stored matrices have no separators hanging from pieces; derive them")
    if spec.rearranges:
        raise SpecError(
            "stored matrices are of examples as they are; with a template, stride or level "
            "'sentence', derive them"
        )


@dataclass(frozen=True)
class _Sequence:
    """One whole sequence, before truncation (n positions).

    Attributes:
        distance: `_FAR` where there is no path. *Shape:* (n, n), int64.
        depth: Edges from the root. *Shape:* (n,), int64.
        ancestor: Row = dependent. *Shape:* (n, n), bool.
        segments: Number of its segments, empty ones too.
        segment: Segment of each position, -1 at special tokens. *Shape:* (n,).
        place: Position within the segment. *Shape:* (n,).
    """

    distance: NDArray[np.int64]
    depth: NDArray[np.int64]
    ancestor: NDArray[np.bool_]
    segments: int
    segment: NDArray[np.int64]
    place: NDArray[np.int64]


def stored_matrices(
    window: Window,
    special: SpecialTokens,
    spec: AssemblySpec,
    segment_ids: NDArray[np.int32],
    lengths: NDArray[np.int32],
) -> dict[str, NDArray[Any]]:
    """Distance, depth and ancestor of a batch, from stored blobs.

    ``segment_ids`` (B, L) and ``lengths`` (B,) are those of the assembled batch; they tell what
    truncation kept.
    """
    size, width = segment_ids.shape
    whole = [_whole(window, index, special, spec) for index in range(size)]
    longest = max((int(x.distance[x.distance < _FAR].max(initial=0)) for x in whole), default=0)
    dtype, none = (np.uint8, UNREACHABLE8) if longest <= 254 else (np.uint16, UNREACHABLE16)
    distance = np.full((size, width, width), none, dtype)
    depth = np.zeros((size, width), dtype)
    ancestor = np.zeros((size, width, width), bool)
    for index, sequence in enumerate(whole):
        kept = _kept(sequence, segment_ids[index], spec)
        n = int(lengths[index])
        square = np.ix_(kept, kept)
        distance[index, :n, :n] = np.where(
            sequence.distance[square] < _FAR, sequence.distance[square], none
        )
        depth[index, :n] = sequence.depth[kept]
        ancestor[index, :n, :n] = sequence.ancestor[square]
    return {"distance": distance, "depth": depth, "ancestor": ancestor}


def _kept(
    sequence: _Sequence, segment_ids: NDArray[np.int32], spec: AssemblySpec
) -> NDArray[np.intp]:
    """Positions that truncation, which cuts one end of a segment, left."""
    size = sequence.segments
    counts = np.bincount(segment_ids[segment_ids >= 0], minlength=size)
    lengths = np.bincount(sequence.segment[sequence.segment >= 0], minlength=size)
    side = spec.truncation_side
    sides = (side,) * size if isinstance(side, str) else side
    first = np.where(np.array(sides) == "left", lengths - counts, 0)
    # The last entry, which -1 finds, keeps all special tokens: their place is 0.
    first, end = np.append(first, 0), np.append(first + counts, 1)
    place = sequence.place
    return np.flatnonzero((first[sequence.segment] <= place) & (place < end[sequence.segment]))


def _whole(window: Window, index: int, special: SpecialTokens, spec: AssemblySpec) -> _Sequence:
    examples = window.examples
    first, end = examples.example_offsets[index : index + 2]
    bounds = examples.segment_offsets[first : end + 1]
    heads = np.split(examples.head[bounds[0] : bounds[-1]], bounds[1:-1] - bounds[0])
    segment, place = _layout([len(head) for head in heads], special)
    depth = np.zeros(len(segment), np.int64)
    inside = np.full((len(segment), len(segment)), _FAR)
    ancestor = np.eye(len(segment), dtype=bool)
    for number, (far, deep, above) in enumerate(_blobs(window, index, heads)):
        at = np.flatnonzero(segment == number)
        none = np.iinfo(far.dtype).max
        inside[np.ix_(at, at)] = np.where(far == none, _FAR, far.astype(np.int64))
        ancestor[np.ix_(at, at)] = above
        depth[at] = deep
    rise = _rise(depth, segment, np.concatenate(heads), special, spec)
    np.fill_diagonal(inside, 0)
    ancestor[:, 0] |= rise < _FAR
    return _Sequence(
        distance=np.minimum(inside, rise[:, None] + rise[None, :]),
        depth=np.where(rise < _FAR, rise, depth),
        ancestor=ancestor,
        segments=len(heads),
        segment=segment,
        place=place,
    )


def _rise(
    depth: NDArray[np.int64],
    segment: NDArray[np.int64],
    heads: NDArray[np.int32],
    special: SpecialTokens,
    spec: AssemblySpec,
) -> NDArray[np.int64]:
    """Edges from each position up to the joint root, `_FAR` where there is no path."""
    rise = np.full(len(depth), _FAR)
    if not spec.joint_root:
        return rise
    pieces = np.flatnonzero(segment >= 0)
    linked = pieces[heads != ISOLATED]
    rise[linked] = depth[linked] + 1
    rise[: len(special.prefix)] = 1
    rise[0] = 0
    if spec.separator_edge == "root":
        later = np.flatnonzero(segment < 0)[len(special.prefix) :]
        rise[later] = 1
    return rise


def _blobs(
    window: Window, index: int, heads: list[NDArray[np.int32]]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]]:
    distances, depths, ancestors = (window.blobs[name][index] for name in MATRIX_BLOBS)
    if distances is None or depths is None or ancestors is None:
        raise SpecError(
            f"example {window.example_ids[index]!r} was stored without matrices; "
            "let the stream derive them, as `matrices=distance,depth,ancestor`"
        )
    for head, distance, depth, above in zip(heads, distances, depths, ancestors, strict=True):
        yield decode_distance(distance), decode_depth(depth, len(head)), decode_ancestor(above)


def _layout(
    sizes: list[int], special: SpecialTokens
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    before = [special.prefix] + [special.separator] * (len(sizes) - 1)
    runs = [
        run
        for number, size in enumerate(sizes)
        for run in ((-1, len(before[number])), (number, size))
    ]
    runs.append((-1, len(special.suffix)))
    segment = np.concatenate([np.full(size, number) for number, size in runs])
    place = np.concatenate([np.arange(size) * (number >= 0) for number, size in runs])
    return segment, place
