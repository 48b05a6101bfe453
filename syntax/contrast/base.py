"""Samplers, which draw contrastive samples for the examples of a batch."""

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
"""Whose rules of sampling: those of SynCLM's own release, or of its re-implementation `lr-sib`."""

PADDING: Final = -1
"""Value of unused cells of samples."""

Samples = dict[str, NDArray[Any]]
"""Arrays of samples by name."""

RowsT = TypeVar("RowsT", bound="Rows")


class Rows(Protocol):
    """A named tuple of arrays to fill with samples; the first axis is the sample."""

    def _asdict(self) -> dict[str, NDArray[Any]]: ...


Draw = Callable[[State, IntArray, IntArray, int, int, RowsT], int]
"""Fills rows with samples of one segment.

Takes the generator, the columns and parents of the segment's pieces, the next free row, the end of
the example's rows, and the rows; returns the row after the last one filled.
"""


@runtime_checkable
class Sampler(Protocol):
    """Draws samples for the examples of a batch; a frozen specification."""

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """Arrays to add to the batch.

        The samples of an example are a pure function of ``seed``, ``epoch``, its key and its own
        rows of the batch. The other examples and its position make no difference.

        Args:
            batch: The arrays that `syntax.batches.assemble_batch` returns.
            keys: Key of each example, its ``example_id``. *Shape:* (B,).
            seed: Seed of the samples.
            epoch: Number of the epoch.
        """
        ...


def draw_samples(
    name: str, texts: Texts, seeds: Sequence[int], max_samples: int, rows: RowsT, draw: Draw[RowsT]
) -> Samples:
    """Draw samples, example by example.

    Args:
        name: Prefix of the arrays' names.
        texts: The segments of B examples.
        seeds: Seed of each example. *Shape:* (B,).
        max_samples: Samples of an example, at most.
        rows: Arrays to fill, with B * max_samples rows each.
        draw: Fills rows from one segment.

    Returns:
        The filled part of each array, and ``NAME_offsets``: first sample of each example, and the
        end of the last. *Shape:* (B + 1,), int64.

    Raises:
        InputError: The number of keys is not the number of examples.
    """
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
    """A seed for each example."""
    return [stream_seed(seed, epoch, purpose, key) for key in keys]
