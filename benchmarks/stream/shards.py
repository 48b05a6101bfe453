"""Peers that go through shards: litdata, webdataset, and pickles as papers' code has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stream.work import Batch, Contender, Epochs, Record, chunks, collate, records
from syntax.batches import SegmentFeatures

SHARD = 1000
"""Examples of a shard."""

SHUFFLED = 2000
"""Examples among which webdataset chooses the next one."""

SOME, FEW = 10_000, 2_000
"""Examples that are read at most, of what takes long; rates hardly depend on them."""

SQUARES = ("distance", "ancestor")
VECTORS = ("input_ids", "word_ids", "parents", "upos", "deprel", "depth", "attention_mask")


def _write_litdata(folder: Path, examples: Sequence[SegmentFeatures]) -> None:
    from litdata.streaming.writer import BinaryWriter

    writer = BinaryWriter(str(folder), chunk_bytes="16MB")
    for index, record in enumerate(records(examples)):
        writer[index] = tuple(record)
    writer.done()
    writer.merge()


def _open_litdata(folder: Path, shuffle: bool) -> Epochs:
    from litdata import StreamingDataset

    return lambda epoch: map(
        collate, chunks(StreamingDataset(str(folder), shuffle=shuffle, seed=epoch))
    )


def _write_webdataset(folder: Path, examples: Sequence[SegmentFeatures]) -> None:
    import webdataset

    with webdataset.ShardWriter(f"{folder}/%06d.tar", maxcount=SHARD, verbose=0) as shards:
        for record in records(examples):
            shards.write({"__key__": record.id, "cls": record.label, "blob": record.blob})


def _open_webdataset(folder: Path, shuffle: int) -> Epochs:
    paths = [str(path) for path in sorted(folder.glob("*.tar"))]
    return lambda epoch: map(collate, chunks(_samples(paths, shuffle, epoch)))


def _samples(paths: list[str], shuffle: int, epoch: int) -> Iterator[Record]:
    import webdataset

    data = webdataset.WebDataset(paths, shardshuffle=shuffle and len(paths), seed=epoch)
    for sample in data.shuffle(shuffle, seed=epoch) if shuffle else data:
        yield Record(sample["__key__"], int(sample["cls"]), sample["blob"])


def _write_records(folder: Path, examples: Sequence[SegmentFeatures]) -> None:
    import torch

    for number, shard in enumerate(chunks(records(examples), SHARD)):
        torch.save([tuple(record) for record in shard], folder / f"{number:06}.pt")


def _write_dense(folder: Path, examples: Sequence[SegmentFeatures]) -> None:
    """Dictionaries of tensors of each example, its matrices among them."""
    import torch

    for number, shard in enumerate(chunks(records(examples), SHARD)):
        torch.save([_dense(record) for record in shard], folder / f"{number:06}.pt")


def _dense(record: Record) -> dict[str, Any]:
    import torch

    batch = collate([record])
    tensors = {name: torch.tensor(batch[name][0]) for name in (*VECTORS, *SQUARES)}
    return {**tensors, "example_id": record.id, "label": record.label}


def _open_records(folder: Path) -> Epochs:
    return lambda epoch: map(collate, _pickles(folder, epoch))


def _open_dense(folder: Path) -> Epochs:
    return lambda epoch: map(_pad, _pickles(folder, epoch))


def _pickles(folder: Path, epoch: int) -> Iterator[list[Any]]:
    """Batches of examples; shards and the examples within a shard in random order."""
    import torch

    rng = np.random.default_rng(epoch)
    for path in rng.permutation(sorted(map(str, folder.glob("*.pt")))):
        shard = torch.load(path, weights_only=True)
        yield from chunks(shard[row] for row in rng.permutation(len(shard)))


def _pad(examples: list[dict[str, Any]]) -> Batch:
    """Padded as papers' code does it, into zeros."""
    import torch

    width = max(len(example["input_ids"]) for example in examples)
    batch = {}
    for name in (*VECTORS, *SQUARES):
        tensors = [example[name] for example in examples]
        shape = (len(examples), *(width,) * tensors[0].ndim)
        batch[name] = torch.zeros(shape, dtype=tensors[0].dtype)
        for row, tensor in zip(batch[name], tensors, strict=True):
            row[tuple(slice(size) for size in tensor.shape)] = tensor
    batch["example_id"] = [example["example_id"] for example in examples]
    batch["label"] = torch.tensor([example["label"] for example in examples])
    return batch


def contenders() -> list[Contender]:
    """All, in each order they have."""
    lit = ("litdata", _write_litdata), "litdata"
    web = ("webdataset", _write_webdataset), "webdataset"
    return [
        _contender(
            "litdata, sequential", "sequential", *lit, partial(_open_litdata, shuffle=False)
        ),
        _contender("litdata, shuffled", "shuffled", *lit, partial(_open_litdata, shuffle=True)),
        _contender(
            "webdataset, sequential", "sequential", *web, partial(_open_webdataset, shuffle=0), SOME
        ),
        _contender(
            "webdataset, shuffled",
            "shuffled",
            *web,
            partial(_open_webdataset, shuffle=SHUFFLED),
            SOME,
        ),
        _contender(
            "torch.save, vectors",
            "shuffled",
            ("pickles", _write_records),
            "torch",
            _open_records,
            SOME,
        ),
        _contender(
            "torch.save, dense matrices",
            "shuffled",
            ("dense", _write_dense),
            "torch",
            _open_dense,
            FEW,
        ),
    ]


def _contender(
    name: str,
    policy: str,
    written: tuple[str, Any],
    package: str,
    opened: Any,
    most: int | None = None,
) -> Contender:
    return Contender(name, policy, *written, opened, package, most)
