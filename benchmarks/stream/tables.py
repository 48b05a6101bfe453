"""Peers that read tables by position: Hugging Face datasets and Lance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.stream.work import BATCH, Collate, Contender, Epochs, buckets, collate, records
from syntax.batches import BatchBuffers, SegmentFeatures

COLUMNS = ("id", "label", "blob")


def _table(examples: Sequence[SegmentFeatures]) -> pa.Table:
    """Ids, labels and blobs, and lengths for samplers."""
    ids, labels, blobs = zip(*records(examples), strict=True)
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "label": pa.array(labels, pa.int64()),
            "blob": pa.array(blobs, pa.large_binary()),
            "length": pa.array([len(example) for example in examples], pa.int32()),
        }
    )


def _permuted(lengths: np.ndarray, epoch: int) -> Iterator[np.ndarray]:
    """Batches of an exact global shuffle."""
    order = np.random.default_rng(epoch).permutation(len(lengths))
    yield from np.split(order, np.arange(BATCH, len(lengths), BATCH))


Sampler = Callable[[np.ndarray, int], Iterator[np.ndarray]]


def _write_hf(folder: Path, examples: Sequence[SegmentFeatures]) -> None:
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    Dataset(_table(examples)).save_to_disk(folder)


def _open_hf(folder: Path, sampler: Sampler | None, made: Collate = collate) -> Epochs:
    from datasets import load_from_disk

    data = load_from_disk(folder)
    lengths = data.data.column("length").to_numpy()
    rows = data.select_columns(list(COLUMNS)).with_format("arrow")
    if sampler is None:
        return lambda _: map(made.table, rows.iter(BATCH))
    return lambda epoch: (made.table(rows[batch]) for batch in sampler(lengths, epoch))


def _write_lance(folder: Path, examples: Sequence[SegmentFeatures]) -> None:
    import lance

    lance.write_dataset(_table(examples), folder)


def _open_lance(folder: Path, sampler: Sampler | None) -> Epochs:
    import lance

    data = lance.dataset(folder)
    lengths = data.to_table(columns=["length"])["length"].to_numpy()
    names = list(COLUMNS)
    if sampler is None:
        return lambda _: map(collate.table, data.to_batches(columns=names, batch_size=BATCH))
    return lambda epoch: (
        collate.table(data.take(batch, columns=names)) for batch in sampler(lengths, epoch)
    )


def _hf(name: str, policy: str, *options: Any) -> Contender:
    opened = partial(_open_hf, **dict(zip(("sampler", "made"), options, strict=False)))
    return Contender(f"HF datasets, {name}", policy, "datasets", _write_hf, opened, "datasets")


def _lance(name: str, policy: str, sampler: Sampler | None) -> Contender:
    opened = partial(_open_lance, sampler=sampler)
    return Contender(f"Lance, {name}", policy, "lance", _write_lance, opened, "lance")


def contenders() -> list[Contender]:
    """Both, in each order they have."""
    return [
        _hf("sequential", "sequential", None),
        _hf("exact shuffle", "exact", _permuted),
        _hf("bucket sampler", "buckets", buckets),
        _hf("bucket sampler, ring", "buckets, ring", buckets, Collate(BatchBuffers())),
        _lance("scan", "sequential", None),
        _lance("take, exact shuffle", "exact", _permuted),
        _lance("take, bucket sampler", "buckets", buckets),
    ]
