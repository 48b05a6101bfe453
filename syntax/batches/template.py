"""The order of segments, in one or more sequences of an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syntax.batches.naming import of_batch
from syntax.batches.segments import FlatExamples
from syntax.errors import SpecError
from syntax.matrices.offsets import sizes
from syntax.registry import unknown_name


@dataclass(frozen=True, slots=True)
class Template:
    """Sequences, each of *parts*, that each example becomes; segments are numbers.

    Special tokens stand between parts; a part is one segment, or several that are joined.
    """

    sequences: tuple[tuple[tuple[int, ...], ...], ...]

    def __post_init__(self) -> None:
        parts = [part for sequence in self.sequences for part in sequence]
        if not self.sequences or not all(self.sequences) or not all(parts):
            raise SpecError(
                f"the template {self.sequences} is not complete; it needs at least one sequence, "
                "each with at least one part, each of at least one segment"
            )

    @classmethod
    def of(cls, fields: Sequence[str], *sequences: str) -> Template:
        """A template in words: parts are separated by spaces, joined segments by ``+``.

        There is one text per sequence. One name in it may be a pattern, which makes as many
        sequences as there are fields that match.

        >>> Template.of(("question", "passage"), "passage question").sequences
        (((1,), (0,)),)
        >>> Template.of(("article", "question", "a", "b"), "article+question [ab]").sequences
        (((0, 1), (2,)), ((0, 1), (3,)))
        """
        names = tuple(fields)
        written = [one for text in sequences for one in _expanded(names, text)]
        return cls(
            tuple(
                tuple(tuple(_number(names, name) for name in part) for part in sequence)
                for sequence in written
            )
        )


class Arranged(NamedTuple):
    """Q sequences before they are cut, with the number of each in the examples and the template."""

    examples: FlatExamples
    joined: NDArray[np.bool_]
    example: NDArray[np.int32]
    choice: NDArray[np.int32]


def arrange(examples: FlatExamples, template: Template | None) -> Arranged:
    count = len(examples)
    numbers = np.arange(count, dtype=np.int32)
    if template is None:
        joined = np.zeros(len(examples.segment_offsets) - 1, np.bool_)
        return Arranged(examples, joined, numbers, np.zeros(count, np.int32))
    parts = [part for sequence in template.sequences for part in sequence]
    fields = np.array([field for part in parts for field in part], np.int64)
    last = int(fields.max())
    counts = sizes(examples.example_offsets)
    if counts.min(initial=last + 1) <= last:
        example = int(counts.argmin())
        raise SpecError(
            f"{of_batch(example)} has {counts[example]} segments; the template needs {last + 1}",
            example=example,
        )
    segments = (examples.example_offsets[:-1, None] + fields).reshape(-1)
    lengths = [sum(map(len, sequence)) for sequence in template.sequences]
    later = [at > 0 for part in parts for at in range(len(part))]
    return Arranged(
        examples.pick(segments, np.tile(lengths, count)),
        np.tile(np.array(later, np.bool_), count),
        np.repeat(numbers, len(lengths)),
        np.tile(np.arange(len(lengths), dtype=np.int32), count),
    )


def _expanded(fields: tuple[str, ...], text: str) -> Iterator[list[list[str]]]:
    parts = [part.split("+") for part in text.split()]
    patterns = {
        name
        for part in parts
        for name in part
        if name not in fields and any(sign in name for sign in "*?[")
    }
    if not patterns:
        yield parts
        return
    if len(patterns) > 1:
        raise SpecError(f"the sequence {text!r} has several patterns: {sorted(patterns)}; give one")
    (pattern,) = patterns
    matching = [field for field in fields if fnmatchcase(field, pattern)]
    if not matching:
        raise unknown_name("field", pattern, fields)
    for field in matching:
        yield [[field if name == pattern else name for name in part] for part in parts]


def _number(fields: tuple[str, ...], name: str) -> int:
    if name not in fields:
        raise unknown_name("field", name, fields)
    return fields.index(name)
