"""Share of each part that a sequence keeps."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from syntax.batches import kernels
from syntax.batches.naming import of_batch
from syntax.batches.segments import FlatExamples
from syntax.batches.spec import AssemblySpec
from syntax.errors import SpecError
from syntax.matrices.offsets import Offsets, offsets_of, sizes

NO_LIMIT: Final = int(np.iinfo(np.int32).max)

Spans = NDArray[np.int32]
"""First and end of the pieces that each part, or segment, keeps. *Shape:* (parts, 2)."""

_STRATEGY: Final = {
    "longest_first": kernels.LONGEST_FIRST,
    "only_first": kernels.ONLY_FIRST,
    "only_second": kernels.ONLY_SECOND,
    "none": kernels.NONE,
}


class Parts(NamedTuple):
    """The P parts between special tokens of B examples, of S segments.

    Attributes:
        owner: Part of each segment; ``None``: every segment is a part. *Shape:* (S,).
        numbers: Number of each example in errors; ``None``: its position. *Shape:* (B,).
    """

    offsets: Offsets
    example_offsets: Offsets
    owner: NDArray[np.int64] | None = None
    numbers: NDArray[np.int32] | None = None

    @classmethod
    def of(
        cls,
        examples: FlatExamples,
        joined: NDArray[np.bool_],
        numbers: NDArray[np.int32] | None = None,
    ) -> Parts:
        """Parts of examples, some of whose segments are ``joined`` to the one before."""
        if not joined.any():
            return cls(examples.segment_offsets, examples.example_offsets, None, numbers)
        starts = np.append(examples.segment_offsets[:-1][~joined], examples.segment_offsets[-1])
        counts = offsets_of(~joined)
        return cls(starts, counts[examples.example_offsets], counts[1:] - 1, numbers)

    def name(self, example: int) -> int:
        return example if self.numbers is None else int(self.numbers[example])

    def counts(self) -> Offsets:
        return sizes(self.example_offsets)

    def segment_spans(self, spans: Spans, examples: FlatExamples) -> Spans:
        """Pieces that the segments keep when the parts keep ``spans``. *Shape:* (S, 2)."""
        if self.owner is None:
            return spans
        start = examples.segment_offsets[:-1] - self.offsets[self.owner]
        within = spans[self.owner] - start[:, None]
        return np.clip(within, 0, sizes(examples.segment_offsets)[:, None]).astype(np.int32)


def kept_spans(parts: Parts, frame: kernels.Frame, spec: AssemblySpec) -> Spans:
    limit = NO_LIMIT if spec.max_length is None else spec.max_length
    spans, misfit = _keep(parts, frame, spec, limit)
    if misfit >= 0:
        _raise_misfit(parts, misfit, frame, limit, spec.truncation)
    return spans


def limited_spans(parts: Parts, frame: kernels.Frame, spec: AssemblySpec) -> Spans:
    return _keep(parts, frame, spec, NO_LIMIT)[0]


def _keep(
    parts: Parts, frame: kernels.Frame, spec: AssemblySpec, max_length: int
) -> tuple[Spans, int]:
    _check_counts(parts, spec)
    cut = _cut(max_length, spec.truncation, spec.truncation_tie, spec.sides, spec.segment_limits)
    spans = np.empty((len(parts.offsets) - 1, 2), np.int32)
    return spans, kernels.keep(parts.offsets, parts.example_offsets, frame, cut, spans)


@lru_cache(maxsize=64)
def _cut(
    max_length: int,
    truncation: str,
    tie: str,
    sides: tuple[str, ...],
    limits: tuple[int | None, ...],
) -> kernels.Cut:
    return kernels.Cut(
        max_length,
        _STRATEGY[truncation],
        tie == "slow",
        np.array([NO_LIMIT if limit is None else limit for limit in limits or (None,)], np.int64),
        np.array([side == "left" for side in sides], np.bool_),
    )


def _check_counts(parts: Parts, spec: AssemblySpec) -> None:
    counts = parts.counts()
    if not counts.all():
        number = parts.name(int(counts.argmin()))
        raise SpecError(f"{of_batch(number)} has no segment")
    if isinstance(spec.truncation_side, str) and not spec.segment_limits:
        return
    sides = () if isinstance(spec.truncation_side, str) else spec.truncation_side
    for name, values in (("truncation_side", sides), ("segment_limits", spec.segment_limits)):
        if values and not (counts == len(values)).all():
            example = int((counts != len(values)).argmax())
            raise SpecError(
                f"{name} has {len(values)} entries, and {of_batch(parts.name(example))} "
                f"{counts[example]} parts; give one for each"
            )


def _raise_misfit(
    parts: Parts, example: int, frame: kernels.Frame, limit: int, truncation: str
) -> NoReturn:
    first, end = parts.example_offsets[example : example + 2]
    lengths = sizes(parts.offsets[first : end + 1]).tolist()
    specials = frame.prefix + (len(lengths) - 1) * frame.separator + frame.suffix
    number = parts.name(example)
    detail = {"example": number, "length": sum(lengths) + specials, "limit": limit}
    if specials > limit:
        raise SpecError(
            f"{of_batch(number)} has {specials} special tokens around {len(lengths)} segments, "
            f"more than max_length {limit}; raise it",
            **detail,
        )
    advice = {
        "none": "raise max_length, choose a truncation, or drop the example",
    }.get(truncation, "raise max_length or truncate longest_first")
    raise SpecError(
        f"{of_batch(number)} has {detail['length']} pieces with special tokens "
        f"(segments of {lengths}), more than max_length {limit}, and truncation {truncation!r} "
        f"cannot make it fit: {advice}",
        **detail,
    )
