"""Batches of one rank, from a position on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.stream.options import StreamOptions
from featurestore.stream.order import EpochOrder
from featurestore.stream.prefetch import windows_ahead
from featurestore.stream.samples import draw_samples, marked_examples
from featurestore.stream.stored import stored_matrices
from featurestore.stream.turns import Rounds, Turn
from featurestore.stream.window import Streamable, Window
from featurestore.tables.rows import CHUNK_PIECES
from syntax.batches import AssemblySpec, BatchBuffers, assemble_batch
from syntax.batches.batch import Batch
from syntax.batches.naming import number_in, renamed
from syntax.errors import InputError

READ_PIECES: Final = 24 * CHUNK_PIECES
"""Pieces that are read together, at most, unless one batch has more. A random part of a dataset
lies in all its row groups, so that an exact shuffle reads every file once for so many pieces."""


@dataclass(frozen=True)
class BatchSource:
    """Makes the batches of a stream without a reference to it: dropping the stream ends both."""

    data: Streamable
    options: StreamOptions
    assembly: AssemblySpec
    order: EpochOrder
    rounds: Rounds

    def after(
        self, consumed: int, worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[int, Batch]]:
        """Each batch from a position on, with the position after it.

        ``worker`` batches are skipped first; then one batch out of ``workers`` is given.
        """
        reader = self.data.open_reader(
            self.options.stored, self.options.reads_offsets, self.assembly.token_ids
        )
        turns = islice(self._turns(consumed), worker, None, workers)
        ring = _Ring(self.options)
        for together, window in windows_ahead(self._reads(turns), reader):
            start = 0
            for turn in together:
                self.data.renew_lease()
                end = start + turn.end - turn.start
                yield turn.after, self._assemble(window.batch(start, end), ring.next())
                start = end
            del window  # before the next one is read

    def _reads(self, turns: Iterator[Turn]) -> Iterator[tuple[list[Turn], NDArray[np.int64]]]:
        together: list[Turn] = []
        examples: list[NDArray[np.int64]] = []
        last, pieces = 0, 0
        for turn in turns:
            own, pool = self.order.between(turn.start, turn.end), self.order.pool_of(turn.start)
            size = int(self.data.rows.pieces[own].sum())
            if together and (pool != last or pieces + size > READ_PIECES):
                yield together, np.concatenate(examples)
                together, examples, pieces = [], [], 0
            together.append(turn)
            examples.append(own)
            last, pieces = pool, pieces + size
        if together:
            yield together, np.concatenate(examples)

    def _turns(self, consumed: int) -> Iterator[Turn]:
        while turn := self.rounds.turn(consumed, self.options.rank):
            yield turn
            consumed = turn.after

    def _assemble(self, window: Window, out: BatchBuffers | None) -> Batch:
        batch = self._arrays(window, out)
        if self.options.stored:
            kept = (batch["segment_ids"], batch["lengths"])
            special = self.data.special_tokens
            batch.update(stored_matrices(window, special, self.assembly, *kept))
        named = window.named
        if (rows := batch.get("example_index")) is not None:
            named = {
                name: [values[row] for row in rows] if isinstance(values, list) else values[rows]
                for name, values in named.items()
            }
        whole = {**batch, **named}
        return Batch({**whole, **draw_samples(whole, self.options)})

    def _arrays(self, window: Window, out: BatchBuffers | None) -> dict[str, Any]:
        try:
            examples = marked_examples(window, self.options, self.data.card)
            return assemble_batch(examples, self.data.special_tokens, self.assembly, out)
        except InputError as error:
            number = number_in(error)
            if number is None:
                raise
            name = window.example_ids[number]  # users know examples by name, not by place
            raise renamed(error, f"example {name!r}", example_id=name) from error


class _Ring:
    def __init__(self, options: StreamOptions) -> None:
        # One is in use; a thread fills one more, beside those that wait. Fewer stay in the cache.
        count = options.prefetch + 2 if options.prefetch else 1
        count = 0 if options.buffers == "fresh" else count
        self._buffers = [BatchBuffers() for _ in range(count)]
        self._turn = -1

    def next(self) -> BatchBuffers | None:
        if not self._buffers:
            return None
        self._turn = (self._turn + 1) % len(self._buffers)
        return self._buffers[self._turn]
