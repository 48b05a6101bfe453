"""One epoch of batches, with a position that can be saved and restored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from featurestore.stream.batches import BatchSource
from featurestore.stream.options import StreamOptions
from featurestore.stream.order import Lengths, OrderPolicy, drawn_order, epoch_order
from featurestore.stream.prefetch import Prefetched
from featurestore.stream.stored import check_stored
from featurestore.stream.turns import Rounds
from featurestore.stream.window import Streamable
from syntax.batches.batch import Batch
from syntax.drawing.page import plain, summary
from syntax.errors import SpecError

_AT_ONCE: Final = 1 << 16
"""Examples whose lengths are computed together, so that a large dataset takes little memory."""


class FeatureStream(Iterator[Batch]):
    """Batches of one epoch; an iterator that holds a position.

    Each batch has the arrays of `syntax.batches.assemble_batch`, ``example_id`` (a list), and
    each label column by its name, as `featurestore.stream.labels.decode_label` gives it; with
    ``token_ids`` also ``token_counts``, int32 (B, fields), the tokens of each text of the example,
    0 for running text and where they were not recorded. Where examples become several
    sequences, all those of an example are in one batch, each with the example's id and labels.

    Example:
        >>> stream = data.stream(batch_size=32, seed=0, epoch=3)    # doctest: +SKIP
        >>> first = next(stream)                                    # doctest: +SKIP
        >>> saved = stream.state_dict()                             # doctest: +SKIP
        >>> resumed = data.stream(batch_size=32, seed=0, epoch=3)   # doctest: +SKIP
        >>> resumed.load_state_dict(saved)   # goes on with the second batch  # doctest: +SKIP
    """

    def __init__(self, data: Streamable, options: StreamOptions) -> None:
        self.data = data
        self.options = options
        self._assembly = options.assembly.for_fields(data.card.fields)
        if options.stored:
            check_stored(self._assembly)
        self._consumed = 0
        self._source: Iterator[tuple[int, Batch]] | None = None

    def __iter__(self) -> FeatureStream:
        return self

    def __next__(self) -> Batch:
        if self._source is None:
            self._source = self._open()
        self._consumed, batch = next(self._source)
        return batch

    def __getitem__(self, position: object) -> Batch:
        raise TypeError(
            "a stream is read in order and has no items; for a DataLoader of torch, wrap it in "
            "trainer.loader.StreamDataset"
        )

    def __len__(self) -> int:
        """Batches of this rank in the whole epoch."""
        return self._batches.rounds.left(0)

    @property
    def _shown(self) -> dict[str, object]:
        options = self.options
        return {
            "dataset": self.data.name,
            "batches": len(self),
            "remaining": self.remaining,
            "batch_size": options.order.batch_size,
            "seed": options.order.seed,
            "epoch": options.order.epoch,
            "rank": options.rank,
            "world_size": options.world_size,
        }

    def __repr__(self) -> str:
        return plain("FeatureStream", self._shown)

    def _repr_html_(self) -> str:
        return summary("FeatureStream", self._shown)

    @property
    def remaining(self) -> int:
        """Batches of this rank from the position to the end of the epoch."""
        return self._batches.rounds.left(self._consumed)

    def share(self, worker: int, workers: int) -> Iterator[Batch]:
        """The batches that one of several processes reads, of this rank's from the position on.

        Each takes the first of every ``workers`` batches, after leaving out ``worker`` of them; so
        their batches in turn are those of the stream. The stream itself stays where it is.
        """
        source = self._open(worker, workers)
        try:
            for _, batch in source:
                yield batch
        finally:
            _close(source)

    def state_dict(self, after: int = 0) -> dict[str, Any]:
        """The position after the last batch given, as plain JSON; the same on every rank.

        ``after`` counts further batches, which others have read (`share`).
        """
        consumed = self._consumed
        for _ in range(after):
            turn = self._batches.rounds.turn(consumed, self.options.rank)
            if turn is None:
                raise SpecError(f"after is {after}; {self.remaining} batches are left")
            consumed = turn.after
        return {"consumed": consumed, "version": self.data.version, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the batch at which ``state`` was saved, on any rank and world size."""
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
        consumed = int(state["consumed"])
        self._batches.rounds.left(consumed)
        self.close()
        self._consumed = consumed

    def close(self) -> None:
        """End the prefetching thread, if there is one; dropping the stream ends it, too."""
        source, self._source = self._source, None
        _close(source)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_batches"}
        return {**kept, "_source": None}

    def _identity(self) -> dict[str, Any]:
        return {
            "dataset": self.data.name,
            # Not the version: a compaction makes a new one of the same examples.
            "examples": self.data.fingerprints["examples"],
            **self.options.identity(),
        }

    def _open(self, worker: int = 0, workers: int = 1) -> Iterator[tuple[int, Batch]]:
        batches = self._batches.after(self._consumed, worker, workers)
        depth = self.options.prefetch
        return Prefetched(batches, depth) if depth else batches

    @cached_property
    def _batches(self) -> BatchSource:
        options, rows = self.options, self.data.rows
        if options.order.buckets:
            order = drawn_order(self._words() + 1, options.order)
        else:
            lengths = _lengths(self.data, options.order, self._assembly.max_length)
            order = epoch_order(rows.chunk_starts, len(rows), lengths, options.order)
        rounds = Rounds(
            len(order),
            order.batch_ends,
            options.world_size,
            options.order.drop_last,
            joins=options.order.batch_tokens is None,
        )
        return BatchSource(self.data, options, self._assembly, order, rounds)

    def _words(self) -> NDArray[np.int64]:
        """Words of each example. *Shape:* (N,)."""
        counts = getattr(self.data, "word_counts", None)
        if counts is None:
            raise SpecError(
                "buckets are of words, and these examples come without parses; stream a "
                "ParsedDataset, or leave buckets empty"
            )
        found: NDArray[np.int64] = counts()
        return found


def _lengths(data: Streamable, policy: OrderPolicy, max_length: int | None) -> Lengths:
    pieces, special = data.rows.pieces, data.special_tokens.count(len(data.card.fields))
    other = getattr(data, "other_lengths", None) if policy.batch_tokens is not None else None

    def lengths(examples: NDArray[np.integer]) -> NDArray[np.int32]:
        found = np.empty(len(examples), np.int32)
        for start in range(0, len(examples), _AT_ONCE):
            some = examples[start : start + _AT_ONCE]
            assembled = pieces[some] + special
            if max_length is not None:
                assembled = np.minimum(assembled, max_length)
            if other is not None:
                assembled = np.maximum(assembled, other[some])
            found[start : start + len(some)] = assembled
        return found

    return lengths


def _close(source: Iterator[tuple[int, Batch]] | None) -> None:
    if isinstance(source, Prefetched):
        source.close()
