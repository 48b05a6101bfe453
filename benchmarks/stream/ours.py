"""Our store and its streams."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.stream.corpus import LONGEST, SPECIAL
from benchmarks.stream.work import BATCH, Contender, Epochs
from featurestore import DatasetHandle, ExampleRow, OrderPolicy, open_store
from syntax import fingerprint
from syntax.batches import SegmentFeatures
from syntax.examples import DatasetSpec, LabelSpec

COMMIT = 262_144
"""Pieces in one commit."""


def write(folder: Path, examples: Sequence[SegmentFeatures], matrices: bool = False) -> None:
    """A dataset of labelled texts, in commits of some row groups."""
    labels = (LabelSpec("label", "class", ("no", "yes")),)
    spec = DatasetSpec("texts", "train", "en", ("text",), labels)
    key = fingerprint("four characters")
    handle = DatasetHandle(spec, "four characters", key, SPECIAL, matrices=matrices)
    store = open_store(folder)
    rows: list[ExampleRow] = []
    pieces = 0
    for seq, example in enumerate(examples):
        rows.append(_row(seq, example))
        pieces += len(example)
        if pieces >= COMMIT:
            store.features.append(handle, rows)
            rows, pieces = [], 0
    store.features.append(handle, rows)


def _row(seq: int, example: SegmentFeatures) -> ExampleRow:
    key = fingerprint(seq)
    return ExampleRow(
        seq=seq,
        example_id=str(seq),
        example_key=key,
        parser=fingerprint("gold"),
        texts=("",),
        parse_keys=(key,),
        segments=(example,),
        labels={"label": "yes" if seq % 2 else "no"},
    )


def read(folder: Path, **options: Any) -> Epochs:
    """Streams of a dataset."""
    data = open_store(folder).dataset("texts")
    chosen = {"batch_size": BATCH, "max_length": LONGEST, **options}
    return lambda epoch: data.stream(epoch=epoch, **chosen)


def _contender(name: str, policy: str, **options: Any) -> Contender:
    matrices = options.get("matrices", True) != ()
    return Contender(name, policy, "ours", write, partial(read, **options), matrices=matrices)


def contenders(tokens: int) -> list[Contender]:
    """Our streams; ``tokens`` is the size of a batch by tokens."""
    return [
        _contender("ours, sequential", "sequential", shuffle=False),
        _contender("ours, shuffled in pools", "shuffled", bucket=False),
        _contender("ours, exact shuffle", "exact", bucket=False, order=OrderPolicy(pool=None)),
        _contender("ours, buckets", "buckets"),
        _contender("ours, exact shuffle, buckets", "buckets", order=OrderPolicy(pool=None)),
        _contender("ours, buckets, ring", "buckets, ring", buffers="ring"),
        _contender("ours, token budget", "tokens", order=OrderPolicy(batch_tokens=tokens)),
        _contender("ours, buckets, vectors only", "vectors", matrices=()),
        Contender(
            "ours, stored matrices",
            "stored",
            "ours-stored",
            partial(write, matrices=True),
            partial(read, shuffle=False, matrices="stored"),
            most=1000,
        ),
    ]
