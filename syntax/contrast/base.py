"""Interface of samplers, which draw contrastive samples for the examples of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from syntax.contrast.draws import IntArray, State
from syntax.contrast.texts import Texts
from syntax.errors import InputError
from syntax.matrices.offsets import offsets_of
from syntax.mixing import stream_seed

Way = Literal["synclm", "lr_sib"]
"""Rules of sampling: those of SynCLM's own release, or of its re-implementation `lr-sib`."""

PADDING: Final = -1

Samples = dict[str, NDArray[Any]]

RowsT = TypeVar("RowsT", bound="Rows")


class Rows(Protocol):
    """A named tuple of arrays to fill with samples; the first axis is the sample."""

    def _asdict(self) -> dict[str, NDArray[Any]]: ...


Draw = Callable[[State, IntArray, IntArray, int, int, RowsT], int]
"""Fills rows with samples of one segment; returns the next free row.

Takes the generator, columns and parents of the pieces, the next free row, its bound, and the rows.
"""


@runtime_checkable
class Sampler(Protocol):
    """A frozen specification that draws samples for the examples of a batch."""

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """Arrays to add to a batch; ``keys`` are the ``example_id`` (B,).

        The samples of an example are a pure function of ``seed``, ``epoch``, its key and its own
        rows of the batch. The other examples and its position make no difference.
        """
        ...


def draw_samples(
    name: str, texts: Texts, seeds: Sequence[int], max_samples: int, rows: RowsT, draw: Draw[RowsT]
) -> Samples:
    """Draw ``max_samples`` of each example; ``NAME_offsets`` (B + 1,) begin them in all arrays."""
    bounds = texts.example_offsets.tolist()
    if len(seeds) != len(bounds) - 1:
        raise InputError(
            f"there are {len(seeds)} keys for {len(bounds) - 1} examples; give one each"
        )
    ends = [0]
    for example, seed in enumerate(seeds):
        state = np.array([seed], np.uint64)
        row, end = ends[-1], ends[-1] + max_samples
        for text in range(bounds[example], bounds[example + 1]):
            pieces = slice(texts.offsets[text], texts.offsets[text + 1])
            row = draw(state, texts.column[pieces], texts.parent[pieces], row, end, rows)
        ends.append(row)
    filled = {f"{name}_{field}": array[: ends[-1]] for field, array in rows._asdict().items()}
    return {f"{name}_offsets": offsets_of(np.diff(ends)), **filled}


def example_seeds(keys: Sequence[str], seed: int, epoch: int, purpose: str) -> list[int]:
    return [stream_seed(seed, epoch, purpose, key) for key in keys]
