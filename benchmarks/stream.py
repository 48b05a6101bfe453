"""Streaming a dataset against reading pickled examples with their matrices, in one run.

    python benchmarks/stream.py [--pairs 20000] [--rounds 3]

Pairs of sentences (real ones of UD_English-EWT where PARSEBANK_DATA is set, else the thirty of the
test treebank), pieces of up to four characters, batches of 32, at most 128 pieces. The baseline is
what published systems do: shards of a thousand pickled examples that hold dense matrices, loaded
whole, shuffled, and padded with numpy. Examples per CPU second of the process (user and system,
which other jobs on the machine hardly disturb), medians over interleaved rounds of one epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import numpy as np
import pyarrow as pa

from featurestore import DatasetHandle, ExampleRow, FeatureDataset, open_store
from syntax import Parse, fingerprint, read_conllu
from syntax.alignment import segment_features
from syntax.assembly import SegmentFeatures, SpecialTokens
from syntax.conllu import parse_from_sentences
from syntax.examples import DatasetSpec, LabelSpec

BATCH = 32
LONGEST = 128
SHARD = 1000
TARGET = 20_000
RESULTS = Path(__file__).parent / "results"
TINY = Path(__file__).parents[1] / "tests" / "fixtures" / "treebank-tiny"

VARIANTS: dict[str, dict[str, Any]] = {
    "matrices, length buckets": {},
    "the same, buffers reused": {"buffers": "ring"},
    "the same, one batch ahead": {"prefetch": 1},
    "matrices, no buckets": {"bucket": False},
    "vectors only": {"matrices": ()},
    "stored matrices": {"matrices": "stored"},
}


def sentences() -> tuple[str, list[Parse]]:
    folder = os.environ.get("PARSEBANK_DATA")
    if folder:
        path = Path(folder) / "treebanks" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
        parses = [parse_from_sentences([sentence]) for sentence in read_conllu(path)]
        return path.stem, [parse for parse in parses if 5 <= parse.word_count <= 45]
    paths = sorted(TINY.glob("*.conllu"))
    return TINY.name, [parse_from_sentences([s]) for path in paths for s in read_conllu(path)]


def segment(parse: Parse) -> SegmentFeatures:
    spans = [
        (at, min(at + 4, end))
        for start, end in zip(parse.token_start, parse.token_end, strict=True)
        for at in range(start, end, 4)
    ]
    ids = [10 + zlib.crc32(parse.text[start:end].encode()) % 30_000 for start, end in spans]
    return segment_features(parse, np.array(ids), np.array(spans))


def rows(parses: list[Parse], count: int) -> Iterator[ExampleRow]:
    rng = np.random.default_rng(0)
    segments = [segment(parse) for parse in parses]
    for seq in range(count):
        first, second = rng.integers(0, len(parses), 2).tolist()
        key = fingerprint(seq)
        yield ExampleRow(
            seq=seq,
            example_id=str(seq),
            example_key=key,
            parser=fingerprint("gold"),
            texts=(parses[first].text, parses[second].text),
            parse_keys=(key, key),
            segments=(segments[first], segments[second]),
            labels={"label": "yes" if seq % 2 else "no"},
        )


def fill(folder: Path, parses: list[Parse], count: int) -> FeatureDataset:
    special = SpecialTokens(prefix=(1,), separator=(2,), suffix=(2,), pad_id=0, vocab_size=30_010)
    labels = (LabelSpec("label", "class", ("no", "yes")),)
    spec = DatasetSpec("pairs", "train", "en", ("premise", "hypothesis"), labels)
    handle = DatasetHandle(spec, "four characters", fingerprint("four"), special)
    store = open_store(folder)
    batch: list[ExampleRow] = []
    for row in rows(parses, count):
        batch.append(row)
        if len(batch) == SHARD:
            store.features.append(handle, batch)
            batch = []
    if batch:
        store.features.append(handle, batch)
    return store.dataset("pairs")


def pickle_shards(folder: Path, data: FeatureDataset) -> list[Path]:
    """The same sequences as dictionaries of arrays, in shards."""
    examples = []
    for batch in data.stream(batch_size=SHARD, shuffle=False, max_length=LONGEST):
        for at, length in enumerate(batch["lengths"]):
            examples.append({name: crop(batch[name][at], length) for name in PICKLED})
    paths = []
    for start in range(0, len(examples), SHARD):
        paths.append(folder / f"{start}.pickle")
        paths[-1].write_bytes(pickle.dumps(examples[start : start + SHARD]))
    return paths


PICKLED = ("input_ids", "word_ids", "parents", "upos", "deprel", "depth", "distance", "ancestor")


def crop(array: np.ndarray, length: int) -> np.ndarray:
    return array[(slice(length),) * array.ndim].copy()


def read_pickles(paths: list[Path]) -> int:
    """One epoch of padded, shuffled batches; the number of examples."""
    rng, seen = np.random.default_rng(0), 0
    for path in paths:
        examples = pickle.loads(path.read_bytes())
        order = rng.permutation(len(examples))
        for start in range(0, len(order), BATCH):
            chosen = [examples[at] for at in order[start : start + BATCH]]
            batch = {name: pad([example[name] for example in chosen]) for name in PICKLED}
            seen += len(batch["input_ids"])
    return seen


def pad(arrays: list[np.ndarray]) -> np.ndarray:
    longest = max(len(array) for array in arrays)
    out = np.zeros((len(arrays), *(longest,) * arrays[0].ndim), arrays[0].dtype)
    for row, array in zip(out, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return out


def read_stream(data: FeatureDataset, **options: Any) -> int:
    """One epoch; the number of examples."""
    stream = data.stream(batch_size=BATCH, max_length=LONGEST, **options)
    return sum(len(batch["example_id"]) for batch in stream)


def take_turns(calls: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Median examples per CPU second of each call."""
    rates: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            seen = call()
            rates[name].append(seen / (time.process_time() - start))
    return {name: statistics.median(values) for name, values in rates.items()}


def contenders(data: FeatureDataset, paths: list[Path]) -> dict[str, Callable[[], int]]:
    calls: dict[str, Callable[[], int]] = {
        name: lambda options=options: read_stream(data, **options)
        for name, options in VARIANTS.items()
    }
    calls["pickled examples"] = lambda: read_pickles(paths)
    return calls


def bytes_per_example(folder: Path, count: int) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // count


def main() -> int:
    parser = argparse.ArgumentParser(description="Streaming against pickled examples.")
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    source, parses = sentences()
    with tempfile.TemporaryDirectory() as folder:
        store, shards = Path(folder) / "store", Path(folder) / "pickles"
        shards.mkdir()
        start = time.process_time()
        data = fill(store, parses, arguments.pairs)
        written = arguments.pairs / (time.process_time() - start)
        calls = contenders(data, pickle_shards(shards, data))
        read_stream(data)  # compiles
        rates = take_turns(calls, arguments.rounds)
        sizes = {path.name: bytes_per_example(path, arguments.pairs) for path in (store, shards)}
        pieces = float(data.rows.pieces.mean()) + 3
    tell(source, pieces, rates, sizes, written)
    write(source, arguments, pieces, rates, sizes, written)
    return 0 if rates["matrices, length buckets"] >= TARGET else 1


def tell(
    source: str, pieces: float, rates: dict[str, float], sizes: dict[str, int], written: float
) -> None:
    print(f"pairs of {source}, {pieces:.0f} pieces, batches of {BATCH}; examples per CPU second")
    for name, rate in rates.items():
        print(f"{name:28}{rate:12,.0f}   {rate / rates['pickled examples']:6.1f} x pickled")
    print(f"written with matrices: {written:,.0f} examples per CPU second, {sizes['store']} bytes")
    print(f"pickled: {sizes['pickles']} bytes an example")


def write(
    source: str,
    arguments: argparse.Namespace,
    pieces: float,
    rates: dict[str, float],
    sizes: dict[str, int],
    written: float,
) -> None:
    now = datetime.now(UTC)
    content = {
        "date": now.isoformat(timespec="seconds"),
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count()},
        "versions": {"pyarrow": pa.__version__, "deltalake": deltalake.__version__},
        "pairs": f"{arguments.pairs} of {source}",
        "pieces": round(pieces, 1),
        "batch": BATCH,
        "rounds": arguments.rounds,
        "examples_per_cpu_second": {name: round(rate) for name, rate in rates.items()},
        "written_per_cpu_second": round(written),
        "bytes_per_example": sizes,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"stream-{now:%Y-%m-%d}.json"
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    raise SystemExit(main())
