"""One epoch of batches, with a position that can be saved and restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from featurestore.stream.options import STORED, StreamOptions
from featurestore.stream.order import EpochOrder, epoch_order
from featurestore.stream.prefetch import Prefetched, windows_ahead
from featurestore.stream.reader import Window
from featurestore.stream.samples import draw_samples, marked_examples
from featurestore.stream.stored import check_stored, stored_matrices
from featurestore.stream.turns import Rounds, Turn
from featurestore.streamed import StreamedDataset
from syntax.assembly import BatchBuffers, assemble_batch
from syntax.errors import SpecError

Batch = dict[str, Any]


class FeatureStream(Iterator[Batch]):
    """Batches of one epoch; an iterator that holds a position.

    Each batch has the arrays of `syntax.assembly.assemble_batch`, ``example_id`` (a list), and
    each label column by its name, as `featurestore.stream.labels.decode_label` gives it; with
    ``token_ids`` also ``token_counts``, int32 (B, fields), the tokens of each text of the example,
    0 where running text was given or nobody recorded them. Where examples become several
    sequences, all those of an example are in one batch, each with the example's id and labels.

    Args:
        data: The dataset.
        options: See `StreamedDataset.stream`.

    Example:
        >>> stream = data.stream(batch_size=32, seed=0, epoch=3)    # doctest: +SKIP
        >>> first = next(stream)                                    # doctest: +SKIP
        >>> saved = stream.state_dict()                             # doctest: +SKIP
        >>> resumed = data.stream(batch_size=32, seed=0, epoch=3)   # doctest: +SKIP
        >>> resumed.load_state_dict(saved)   # goes on with the second batch  # doctest: +SKIP
    """

    def __init__(self, data: StreamedDataset, options: StreamOptions) -> None:
        self.data = data
        self.options = options
        self._assembly = options.assembly(data.card.fields)
        if options.matrices == STORED:
            check_stored(options)
        self._order: EpochOrder | None = None
        self._consumed = 0
        self._source: Iterator[tuple[int, Batch]] | None = None

    def __iter__(self) -> FeatureStream:
        return self

    def __next__(self) -> Batch:
        if self._source is None:
            self._source = self._open()
        self._consumed, batch = next(self._source)
        return batch

    def __len__(self) -> int:
        """Batches of this rank in the whole epoch."""
        return self._turns_from(0)

    @property
    def remaining(self) -> int:
        """Batches of this rank from the position to the end of the epoch."""
        return self._turns_from(self._consumed)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch given, as plain JSON; the same on every rank."""
        version = {"version": self.data.version}
        return {"consumed": self._consumed, **version, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after the batch at which ``state`` was saved, on any rank and world size.

        Raises:
            SpecError: The state belongs to another order: other examples, another seed, epoch,
                batch size or length.
        """
        mine = self._identity()
        different = [
            f"{name} was {state.get(name)!r} and is {value!r}"
            for name, value in mine.items()
            if state.get(name) != value
        ]
        if different:
            raise SpecError(
                f"the state was saved in another stream, over version {state.get('version')}: "
                f"{'; '.join(different)}"
            )
        self.close()
        self._consumed = int(state["consumed"])

    def close(self) -> None:
        """End the prefetching thread, if there is one."""
        source, self._source = self._source, None
        if isinstance(source, Prefetched):
            source.close()

    def _identity(self) -> dict[str, Any]:
        return {
            "dataset": self.data.name,
            # Not the version: a compaction makes a new one of the same examples.
            "examples": self.data.fingerprints["examples"],
            **self.options.identity(),
        }

    def _turns_from(self, consumed: int) -> int:
        return self._rounds().left(consumed)

    def _rounds(self) -> Rounds:
        options, ends = self.options, self._epoch_order().batch_ends
        return Rounds(len(self.data), ends, options.world_size, options.drop_last)

    def _open(self) -> Iterator[tuple[int, Batch]]:
        batches = self._batches(self._consumed)
        depth = self.options.prefetch
        return Prefetched(batches, depth) if depth else batches

    def _batches(self, consumed: int) -> Iterator[tuple[int, Batch]]:
        """Each batch from a position on, with the position after it."""
        order = self._epoch_order()
        reader = self.data.open_reader(
            self.options.matrices == STORED, self.options.reads_offsets, self.options.token_ids
        )
        ring = _Ring(self.options)
        for turns, window in windows_ahead(self._pools(order, consumed), reader):
            start = 0
            for turn in turns:
                end = start + turn.end - turn.start
                yield turn.after, self._assemble(window.batch(start, end), ring.next())
                start = end

    def _pools(
        self, order: EpochOrder, consumed: int
    ) -> Iterator[tuple[list[Turn], NDArray[np.int64]]]:
        """Turns that are read together, with their examples."""
        groups = groupby(self._turns(consumed), key=lambda turn: order.pool_of(turn.start))
        for turns in (list(group) for _, group in groups):
            yield turns, np.concatenate([order.examples[t.start : t.end] for t in turns])

    def _turns(self, consumed: int) -> Iterator[Turn]:
        rounds = self._rounds()
        while turn := rounds.turn(consumed, self.options.rank):
            yield turn
            consumed = turn.after

    def _epoch_order(self) -> EpochOrder:
        if self._order is None:
            self._order = epoch_order(self.data.rows.pieces, self._lengths(), self.options.order)
        return self._order

    def _lengths(self) -> NDArray[np.int64]:
        """Assembled length of each example."""
        special = self.data.special_tokens.count(len(self.data.card.fields))
        lengths = self.data.rows.pieces + special
        longest = self.options.max_length
        return lengths if longest is None else np.minimum(lengths, longest)

    def _assemble(self, window: Window, out: BatchBuffers | None) -> Batch:
        special = self.data.special_tokens
        examples = marked_examples(window, self.options, self.data.card)
        batch = assemble_batch(examples, special, self._assembly, out)
        if self.options.matrices == STORED:
            kept = (batch["segment_ids"], batch["lengths"])
            batch.update(stored_matrices(window, special, self.options, *kept))
        named = window.named
        rows = batch.get("example_index")
        whole: Batch = {**batch, **(named if rows is None else _repeated(named, rows))}
        return {**whole, **draw_samples(whole, self.options)}


def _repeated(named: dict[str, Any], rows: NDArray[np.int32]) -> dict[str, Any]:
    """What is said of examples, for each of their sequences."""
    return {
        name: [values[row] for row in rows] if isinstance(values, list) else values[rows]
        for name, values in named.items()
    }


class _Ring:
    """Batch buffers taken in turn; none for fresh arrays."""

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
