"""How much of each segment a sequence keeps."""

from __future__ import annotations

from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from syntax.assembly import kernels
from syntax.assembly.segments import FlatExamples
from syntax.assembly.spec import AssemblySpec
from syntax.errors import SpecError
from syntax.matrices.offsets import sizes

_STRATEGY: Final = {
    "longest_first": kernels.LONGEST_FIRST,
    "only_first": kernels.ONLY_FIRST,
    "only_second": kernels.ONLY_SECOND,
    "none": kernels.NONE,
}


def kept_lengths(
    examples: FlatExamples, frame: kernels.Frame, spec: AssemblySpec
) -> NDArray[np.int32]:
    """Pieces that every segment keeps from its start. *Shape:* (S,).

    Raises:
        SpecError: An example has no segment, or cannot be made to fit.
    """
    counts = sizes(examples.example_offsets)
    if not counts.all():
        raise SpecError(f"example {int(counts.argmin())} of the batch has no segment")
    kept = np.empty(len(examples.segment_offsets) - 1, np.int32)
    limit = np.iinfo(np.int32).max if spec.max_length is None else spec.max_length
    misfit = kernels.keep(
        examples.segment_offsets,
        examples.example_offsets,
        frame,
        limit,
        _STRATEGY[spec.truncation],
        kept,
    )
    if misfit >= 0:
        _raise_misfit(examples, misfit, frame, limit, spec.truncation)
    return kept


def _raise_misfit(
    examples: FlatExamples, example: int, frame: kernels.Frame, limit: int, truncation: str
) -> NoReturn:
    first, end = examples.example_offsets[example : example + 2]
    lengths = sizes(examples.segment_offsets[first : end + 1]).tolist()
    specials = frame.prefix + (len(lengths) - 1) * frame.separator + frame.suffix
    detail = {"example": example, "length": sum(lengths) + specials, "limit": limit}
    if specials > limit:
        raise SpecError(
            f"max_length {limit} is smaller than the {specials} special tokens around "
            f"{len(lengths)} segments; raise it",
            **detail,
        )
    advice = {
        "none": "raise max_length, choose a truncation, or drop the example",
    }.get(truncation, "raise max_length or truncate longest_first")
    raise SpecError(
        f"example {example} of the batch has {detail['length']} pieces with special tokens "
        f"(segments of {lengths}), more than max_length {limit}, and truncation {truncation!r} "
        f"cannot make it fit: {advice}",
        **detail,
    )
