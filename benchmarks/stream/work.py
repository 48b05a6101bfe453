"""What every contender is given, and what it has to give: a folder, and batches that are checked.

Peers hold an id, a label and one blob per example: the same columns that our batches are made of,
twelve bytes per piece. Their collating calls `assemble_batch` too, so what differs is how examples
are stored, chosen and fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.stream.corpus import LONGEST, SPECIAL
from syntax.batches import (
    AssemblySpec,
    BatchBuffers,
    FlatExamples,
    SegmentFeatures,
    assemble_batch,
)

BATCH = 32
SPEC = AssemblySpec(max_length=LONGEST)
PIECE = np.dtype(
    [
        ("input_ids", "<i4"),
        ("head", "<i2"),
        ("word_ids", "<i2"),
        ("sentence_ids", "<i2"),
        ("upos", "u1"),
        ("deprel", "u1"),
    ]
)

Batch = dict[str, Any]
Epochs = Callable[[int], Iterable[Batch]]


class Totals(NamedTuple):
    """Sums over an epoch that neither order nor padding changes."""

    examples: int = 0
    pieces: int = 0
    ids: int = 0
    labels: int = 0
    depth: int = 0
    ancestors: int = 0

    def plus(self, batch: Batch) -> Totals:
        """With another batch; matrices that it does not have count 0."""
        made = (
            len(batch["input_ids"]),
            int(np.asarray(batch["attention_mask"]).sum()),
            int(np.asarray(batch["input_ids"]).sum()),
            int(np.asarray(batch["label"]).sum()) + sum(map(int, batch["example_id"])),
            *(int(np.asarray(batch[x]).sum()) if x in batch else 0 for x in ("depth", "ancestor")),
        )
        return Totals(*(old + new for old, new in zip(self, made, strict=True)))


@dataclass(frozen=True)
class Contender:
    """One way to batches.

    Attributes:
        name: What the table calls it.
        policy: Order of the examples, for comparisons: like with like.
        package: What must be installed; ``None``: nothing.
        write: Store examples in a folder; contenders of equal ``folder`` share what it writes.
        folder: Name of that folder.
        open: Open the folder, once for all epochs; gives batches by the number of the epoch.
        most: Examples that are read at most, for ways that are slow and large.
        matrices: Whether it makes matrices.
    """

    name: str
    policy: str
    folder: str
    write: Callable[[Path, Sequence[SegmentFeatures]], None]
    open: Callable[[Path], Epochs]
    package: str | None = None
    most: int | None = None
    matrices: bool = True


def total(batches: Iterable[Batch]) -> Totals:
    """Sums over an epoch."""
    sums = Totals()
    for batch in batches:
        sums = sums.plus(batch)
    return sums


def expected(examples: Sequence[SegmentFeatures]) -> Totals:
    """What an epoch over these examples must come to."""
    return total(map(collate, chunks(records(examples))))


class Record(NamedTuple):
    """An example as peers without columns store it."""

    id: str
    label: int
    blob: bytes


def records(examples: Iterable[SegmentFeatures]) -> Iterator[Record]:
    """The records of examples, numbered."""
    for number, example in enumerate(examples):
        yield Record(str(number), number % 2, blob(example))


def blob(example: SegmentFeatures) -> bytes:
    """The columns of an example, piece by piece."""
    pieces = np.empty(len(example), PIECE)
    for name in PIECE.names or ():
        pieces[name] = getattr(example, name)
    return pieces.tobytes()


@dataclass
class Collate:
    """From the blobs of a batch to its arrays; into ``buffers`` again and again, if given."""

    buffers: BatchBuffers | None = None

    def __call__(self, examples: Sequence[Record]) -> Batch:
        """Of records, one by one."""
        ids, labels, blobs = zip(*examples, strict=True)
        batch = self._assemble(b"".join(blobs), np.cumsum([0, *map(len, blobs)]))
        return {**batch, "example_id": list(ids), "label": np.array(labels)}

    def table(self, rows: pa.Table | pa.RecordBatch) -> Batch:
        """Of Arrow columns; no Python object is made for a blob."""
        column = rows["blob"]
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        _, offsets, data = array.buffers()
        bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        batch = self._assemble(data.slice(int(bounds[0])), bounds - bounds[0])
        ids, labels = rows["id"].to_pylist(), rows["label"].to_numpy()
        return {**batch, "example_id": ids, "label": labels}

    def _assemble(self, data: bytes | pa.Buffer, bounds: np.ndarray) -> Batch:
        pieces = np.frombuffer(data, PIECE, count=int(bounds[-1]) // PIECE.itemsize)
        examples = FlatExamples(
            **{name: pieces[name] for name in PIECE.names or ()},
            segment_offsets=bounds // PIECE.itemsize,
            example_offsets=np.arange(len(bounds)),
        )
        return assemble_batch(examples, SPECIAL, SPEC, self.buffers)


collate = Collate()


def chunks(items: Iterable[Any], size: int = BATCH) -> Iterator[list[Any]]:
    """Consecutive items in lists; the last one may be shorter."""
    source = (item for item in items)  # some iterators start again after their end
    while chunk := list(islice(source, size)):
        yield chunk


def buckets(lengths: np.ndarray, epoch: int) -> Iterator[np.ndarray]:
    """Batches of like length in random order, for datasets that are read by position."""
    rng = np.random.default_rng(epoch)
    shuffled = rng.permutation(len(lengths))
    by_length = shuffled[np.argsort(lengths[shuffled], kind="stable")]
    batches = np.split(by_length, np.arange(BATCH, len(lengths), BATCH))
    for at in rng.permutation(len(batches)):
        yield batches[at]
