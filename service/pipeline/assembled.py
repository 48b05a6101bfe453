"""Model input of single examples: the records, and the pure step from segments to arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.pipeline.features import MatrixBudget
from service.settings import Settings
from service.tokenizers import LoadedTokenizer
from syntax import Parse
from syntax.batches import (
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    SpecialTokens,
    assemble_batch,
)
from syntax.batches.naming import renamed
from syntax.errors import InputError, ParsebankError, TextTooLongError
from syntax.matrices import MATRICES
from syntax.matrices.offsets import round_up

Arrays = Mapping[str, NDArray[Any]]

_NOT_ANSWERED: Final = ("piece_ids", "shown_characters")


@dataclass(frozen=True, slots=True)
class ParsedSegment:
    """A parsed text, and the name of its parser (the fingerprint if unknown)."""

    key: str
    lang: str
    parser: str
    parser_name: str
    cached: bool
    parse: Parse


@dataclass(frozen=True, slots=True)
class AlignedSegment:
    """A parsed text with its pieces, untruncated, without special tokens."""

    source: ParsedSegment
    features: SegmentFeatures


@dataclass(frozen=True, slots=True)
class Example:
    """An example whose segments are all aligned."""

    example_id: str | None
    segments: tuple[AlignedSegment, ...]

    @property
    def key(self) -> str:
        return ",".join(segment.source.key for segment in self.segments)

    @property
    def features(self) -> list[SegmentFeatures]:
        return [segment.features for segment in self.segments]


@dataclass(frozen=True, slots=True)
class FailedExample:
    """An example that failed, and its error."""

    example_id: str | None
    error: ParsebankError


@dataclass(frozen=True, slots=True)
class AssembledExample:
    """An example as a trainer sees it.

    Attributes:
        length: Positions with special tokens, without padding.
        kept: Number of pieces kept of each segment.
        arrays: The row of each array of `syntax.batches.assemble_batch`, and ``offset_mapping``
            (L, 2): characters of its segment's text that a position covers, 0 and 0 for none.
    """

    example: Example
    length: int
    kept: tuple[int, ...]
    arrays: Arrays

    @property
    def truncated(self) -> bool:
        return sum(self.kept) < sum(map(len, self.example.features))


@dataclass(frozen=True)
class AssemblyAnswer:
    """The outcome of each example, in order."""

    tokenizer: LoadedTokenizer
    spec: AssemblySpec
    padded: bool
    examples: Sequence[AssembledExample | FailedExample]

    @property
    def parsers(self) -> dict[str, str]:
        sources = (
            segment.source
            for example in self.examples
            if isinstance(example, AssembledExample)
            for segment in example.example.segments
        )
        return {source.parser: source.parser_name for source in sources}


class Assembler:
    """Makes the arrays of one answer; if ``padded``, of a common length as in a stream's batch."""

    def __init__(
        self, settings: Settings, special: SpecialTokens, spec: AssemblySpec, padded: bool
    ) -> None:
        self._special = special
        self._spec = spec
        self._padded = padded
        self._axes = [MATRICES[name](np.empty(0, np.int32)).ndim for name in spec.matrices]
        self._budget = MatrixBudget.of(settings)

    def assemble(
        self, examples: Sequence[Example | FailedExample]
    ) -> list[AssembledExample | FailedExample]:
        """Assemble examples; a padded batch that is too large is a `TextTooLongError`."""
        claimed = [self._claim(example) for example in examples]
        return self._batch(claimed) if self._padded else [self._alone(x) for x in claimed]

    def _alone(self, example: Example | FailedExample) -> AssembledExample | FailedExample:
        if isinstance(example, FailedExample):
            return example
        try:
            return _assemble([example], self._special, self._spec)[0]
        except InputError as error:
            return FailedExample(example.example_id, renamed(error, "the example"))

    def _batch(
        self, examples: Sequence[Example | FailedExample]
    ) -> list[AssembledExample | FailedExample]:
        self._check_batch([x for x in examples if isinstance(x, Example)])
        try:
            return _in_place(examples, self._special, self._spec)
        except InputError:
            # The error names only the first bad example, by its number in the batch.
            checked = [self._alone(example) for example in examples]
            left = [x.example if isinstance(x, AssembledExample) else x for x in checked]
            return _in_place(left, self._special, self._spec)

    def _claim(self, example: Example | FailedExample) -> Example | FailedExample:
        if isinstance(example, FailedExample) or not self._axes:
            return example
        length = self._length(example)
        try:
            self._budget.claim(
                length,
                self._cells(length),
                f"the example has {length} positions",
                "Give a smaller max_length, send fewer examples, or ask for no matrices",
            )
        except TextTooLongError as error:
            return FailedExample(example.example_id, error)
        return example

    def _check_batch(self, examples: Sequence[Example]) -> None:
        """Check a padded batch, in which one long example pads all others."""
        longest = max(map(self._length, examples), default=0)
        width = round_up(longest, self._spec.pad_to_multiple_of)
        cells = len(examples) * (self._cells(width) + width)
        room = self._budget.cells + sum(self._cells(self._length(x)) for x in examples)
        if cells > room:
            raise TextTooLongError(
                f"{len(examples)} examples padded to {width} positions make {cells} cells; an "
                f"answer has room for {room}. Give a smaller max_length, send fewer examples, or "
                "leave out padded",
                cells=cells,
                limit=room,
            )

    def _length(self, example: Example) -> int:
        specials = self._special.count(len(example.segments))
        length = specials + sum(map(len, example.features))
        return length if self._spec.max_length is None else min(length, self._spec.max_length)

    def _cells(self, length: int) -> int:
        return sum(length**axes for axes in self._axes)


def _in_place(
    examples: Sequence[Example | FailedExample], special: SpecialTokens, spec: AssemblySpec
) -> list[AssembledExample | FailedExample]:
    usable = [example for example in examples if isinstance(example, Example)]
    assembled = iter(_assemble(usable, special, spec))
    return [next(assembled) if isinstance(x, Example) else x for x in examples]


def _assemble(
    examples: Sequence[Example], special: SpecialTokens, spec: AssemblySpec
) -> list[AssembledExample]:
    if not examples:
        return []
    flat = FlatExamples.from_segments([example.features for example in examples])
    batch = assemble_batch(flat, special, replace(spec, offsets=True))
    lengths = batch.pop("lengths").tolist()
    arrays = {name: batch[name] for name in batch if name not in _NOT_ANSWERED}
    assembled = []
    for row, (example, length) in enumerate(zip(examples, lengths, strict=True)):
        segment_ids = arrays["segment_ids"][row]
        counts = np.bincount(segment_ids[segment_ids >= 0], minlength=len(example.segments))
        one = {name: array[row] for name, array in arrays.items()}
        assembled.append(AssembledExample(example, length, tuple(counts.tolist()), one))
    return assembled
