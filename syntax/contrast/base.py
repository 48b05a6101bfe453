"""What a sampler is: a frozen specification that draws samples for the examples of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from syntax.contrast.draws import State
from syntax.contrast.texts import Texts
from syntax.errors import InputError, SpecError
from syntax.matrices.offsets import Offsets, offsets_of
from syntax.mixing import stream_seed

Way = Literal["synclm", "lr_sib"]
"""Whose way of sampling: SynCLM's own release, or its re-implementation in `lr-sib`."""

NOTHING: Final = -1
"""Padding of samples."""

Samples = dict[str, NDArray[Any]]
RowsT = TypeVar("RowsT")


@runtime_checkable
class Sampler(Protocol):
    """Draws samples for the examples of a batch."""

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """Arrays that join the batch.

        What is drawn for an example is a pure function of ``seed``, ``epoch``, its key and its
        own rows of the batch; neither its company nor its place matters.

        Args:
            batch: As `syntax.batches.assemble_batch` gives it.
            keys: Key of each example, its ``example_id``. *Shape:* (B,).
            seed: With ``epoch`` and key, chooses the draws.
            epoch: Number of the epoch.
        """
        ...


def draw_samples(
    texts: Texts,
    seeds: Sequence[int],
    room: int,
    rows: RowsT,
    draw: Callable[[State, NDArray[np.int32], NDArray[np.int32], int, int, RowsT], int],
) -> Offsets:
    """Fill rows of samples, example by example.

    Args:
        texts: The segments.
        seeds: Seed of each example. *Shape:* (B,).
        room: Samples of an example, at most.
        rows: Room for B times as many.
        draw: Fills rows from a segment: takes the generator, the columns and parents of its
            pieces, the next row, the row that is no longer the example's, and the rows; gives the
            row after the last one filled.

    Returns:
        First row of each example, and the end. *Shape:* (B + 1,).

    Raises:
        InputError: There are more or fewer keys than examples.
    """
    bounds = texts.example_offsets.tolist()
    if len(seeds) != len(bounds) - 1:
        raise InputError(f"{len(seeds)} keys came for {len(bounds) - 1} examples; give one each")
    ends = [0]
    for example, seed in enumerate(seeds):
        state = np.array([seed], np.uint64)
        row = ends[-1]
        for text in range(bounds[example], bounds[example + 1]):
            pieces = slice(texts.offsets[text], texts.offsets[text + 1])
            end = ends[-1] + room
            row = draw(state, texts.column[pieces], texts.parent[pieces], row, end, rows)
        ends.append(row)
    return offsets_of(np.diff(ends))


def example_seeds(keys: Sequence[str], seed: int, epoch: int, purpose: str) -> list[int]:
    """A seed for each example."""
    return [stream_seed(seed, epoch, purpose, key) for key in keys]


def check_way(way: str) -> None:
    """Refuse an unknown way.

    Raises:
        SpecError: It is none of `Way`.
    """
    if way not in get_args(Way):
        raise SpecError(f"way is {way!r}; it is one of {', '.join(get_args(Way))}")


def check_at_least(least: int, **values: int) -> None:
    """Refuse numbers that are too small.

    Raises:
        SpecError: One is below ``least``.
    """
    for name, value in values.items():
        if value < least:
            raise SpecError(f"{name} is {value}; it must be at least {least}")
