"""How the key index grows, and what a look for keys costs, from 10^4 to 10^7 keys, in one run.

    python -m benchmarks.store [--most 7] [--rounds 5] [--records 1000000]

The index is filled with random keys, as the keys of parses are, in files of 100,000; beside it
stands a Python set of the same keys. Then a store with real sentences (of UD_English-EWT where
PARSEBANK_DATA is set, else the thirty of the test treebank), up to ``--records`` of them under keys
of their own, is asked for single records that nobody asked for before, and for 10,000 at a time.
CPU time of the process (user and system, which other jobs on the machine hardly disturb); the best
of the rounds for single operations, since a shared core only ever adds.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.result import write_result
from featurestore import FeatureStore, ParseRecord, open_store
from featurestore.records import key_bytes
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.index import KeyIndex, keys_of
from featurestore.tables.parses import ROW_GROUP
from syntax import Parse, parse_from_sentences, read_conllu

FILE = 100_000
BATCH = 10_000
SINGLES = 300
COMMITS = 100
TARGETS = {"batch_membership_ms": 10.0, "single_hit_us": 250.0}
AT = 1_000_000
TINY = Path(__file__).parents[1] / "tests" / "fixtures" / "treebank-tiny"


def sentences() -> tuple[str, list[Parse]]:
    """Sentences of 5 to 45 words, and where they are from."""
    folder = os.environ.get("PARSEBANK_DATA")
    paths = sorted(TINY.glob("*.conllu"))
    if folder:
        paths = [Path(folder) / "treebanks" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"]
    parses = [parse_from_sentences([s]) for path in paths for s in read_conllu(path)]
    chosen = [parse for parse in parses if 5 <= parse.word_count <= 45]
    return paths[0].stem if folder else TINY.name, chosen


def cpu(call: Callable[[], object], rounds: int = 1) -> float:
    """CPU seconds of a call, the best of some."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def resident() -> int:
    return psutil.Process().memory_info().rss


def random_keys(count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2**64, (count, 2), dtype=np.uint64)


def texts_of(keys: np.ndarray) -> list[str]:
    return [f"{high:016x}{low:016x}" for high, low in keys.tolist()]


def fill_index(keys: np.ndarray) -> KeyIndex:
    index = KeyIndex()
    for number, start in enumerate(range(0, len(keys), FILE)):
        index.add(keys[start : start + FILE], number)
    return index


def index_growth(count: int, rounds: int) -> dict[str, float]:
    """One size of the index beside a set."""
    rng = np.random.default_rng(count)
    keys = random_keys(count, rng)
    tracemalloc.start()
    index = fill_index(keys)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    build = cpu(lambda: fill_index(keys))
    new = [random_keys(256, rng) for _ in range(COMMITS)]
    refresh = cpu(lambda: [index.add(keys, FILE + n) for n, keys in enumerate(new)]) / COMMITS
    half = np.concatenate([keys[rng.integers(0, count, BATCH // 2)], random_keys(BATCH // 2, rng)])
    asked = texts_of(half[rng.permutation(BATCH)])
    one = asked[0]
    row = {
        "keys": count,
        "bytes_per_key": size / count,
        "build_us_per_key": build / count * 1e6,
        "refresh_us": refresh * 1e6,
        "batch_ms": cpu(lambda: find(index, asked), rounds) * 1e3,
        "single_us": cpu(lambda: [index.find_one(one) for _ in range(100)], rounds) * 1e4,
    }
    return {**row, **set_growth(texts_of(keys), asked, rounds)}


def find(index: KeyIndex, asked: list[str]) -> object:
    return index.find(keys_of(key_bytes(asked)))


def set_growth(keys: list[str], asked: list[str], rounds: int) -> dict[str, float]:
    """A set of the same keys as strings: it knows only whether, not where."""
    before = resident()
    known = set(keys)
    grown = resident() - before
    return {
        "set_bytes_per_key": grown / len(keys) + 81,  # the string itself: 32 digits and its head
        "set_build_us_per_key": cpu(lambda: set(keys)) / len(keys) * 1e6,
        "set_batch_ms": cpu(lambda: [key in known for key in asked], rounds) * 1e3,
    }


def fill_store(folder: Path, base: pa.Table, count: int) -> None:
    rng = np.random.default_rng(count)
    with open_store(folder) as store:
        for start in range(0, count, FILE):
            size = min(FILE, count - start)
            keys = pa.array(texts_of(random_keys(size, rng)))
            rows = base.take(pa.array(rng.integers(0, base.num_rows, size)))
            store.parses.table.append(rows.set_column(0, "key", keys), row_group=ROW_GROUP)


def stored_keys(store: FeatureStore) -> list[str]:
    return [key for (key,) in store.sql("select key from parses").fetchall()]


def store_growth(folder: Path, base: pa.Table, count: int, rounds: int) -> dict[str, Any]:
    """One size of a store, cold of cache: no record is asked for twice."""
    fill_store(folder, base, count)
    with open_store(folder, cache_items=0) as store:
        opened = cpu(lambda: store.parses.contains(["0" * 32]))
        keys = random.Random(count).sample(stored_keys(store), min(count, 2 * BATCH))
        new = commit(folder, base)
        refresh = cpu(lambda: store.parses.contains(new))
        batch = cpu(lambda: store.parses.contains(keys[:BATCH]), rounds)
        store.parses.get_many(keys[:64])  # opens the files
        single, wall = singles(store, keys[64:-1000], rounds)
        many = cpu(lambda: store.parses.get_many(keys[-1000:]))
        files = store.parses.table.snapshot().files
    return {
        "records": count,
        "files": len(files),
        "bytes_per_record": sum(file.size for file in files) / count,
        "open_ms": opened * 1e3,
        "refresh_after_a_commit_ms": refresh * 1e3,
        "batch_membership_ms": batch * 1e3,
        "single_hit_us": single * 1e6,
        "single_hit_wall_us": wall * 1e6,
        "hit_of_a_thousand_us": many / 1000 * 1e6,
    }


def singles(store: FeatureStore, keys: list[str], rounds: int) -> tuple[float, float]:
    """CPU and wall seconds of a hit, of the best round; each round asks for keys of its own."""
    found = []
    for number in range(rounds):
        asked = keys[number * SINGLES : (number + 1) * SINGLES]
        before = time.perf_counter()
        taken = cpu(lambda asked=asked: [store.parses.get_many([key]) for key in asked])
        found.append((taken / SINGLES, (time.perf_counter() - before) / SINGLES))
    return min(found)


def commit(folder: Path, base: pa.Table) -> list[str]:
    """Append 256 records through another handle; their keys."""
    keys = texts_of(random_keys(256, np.random.default_rng(0)))
    rows = base.take(pa.array(np.arange(256) % base.num_rows)).set_column(0, "key", pa.array(keys))
    with open_store(folder) as store:
        store.parses.table.append(rows, row_group=ROW_GROUP)
    return keys


def main() -> int:
    parser = argparse.ArgumentParser(description="Growth of the key index and of hits.")
    parser.add_argument("--most", type=int, default=7, help="Keys of the largest index: 10^this.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=1_000_000)
    arguments = parser.parse_args()
    source, parses = sentences()
    records = [ParseRecord("0" * 32, "en", "f" * 32, "gold", parse) for parse in parses]
    base = encode_parses(records)
    encode = cpu(lambda: encode_parses(records), arguments.rounds) / len(records)
    index = []
    for power in range(4, arguments.most + 1):
        index.append(index_growth(10**power, arguments.rounds))
        tell(index[-1])
    stores = []
    sizes = [size for size in (10_000, 100_000, 1_000_000) if size <= arguments.records]
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            stores.append(store_growth(Path(folder), base, size, arguments.rounds))
        tell(stores[-1])
    write(source, arguments, encode, index, stores)
    at = [row for row in stores if row["records"] == AT]
    return 0 if all(row[name] <= most for row in at for name, most in TARGETS.items()) else 1


def tell(row: dict[str, Any]) -> None:
    print("  ".join(f"{name} {value:,.4g}" for name, value in row.items()), flush=True)


def rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in row}
        for row in (row.items() for row in rows)
    ]


def write(
    source: str,
    arguments: argparse.Namespace,
    encode: float,
    index: list[dict],
    stores: list[dict],
) -> None:
    content = {
        "records": f"sentences of {source} under random keys",
        "rounds": arguments.rounds,
        "row_group": ROW_GROUP,
        "batch": BATCH,
        "encode_us_per_record": float(f"{encode * 1e6:.4g}"),
        "index": rounded(index),
        "store": rounded(stores),
    }
    write_result("store", content, libraries=("pyarrow", "deltalake"))


if __name__ == "__main__":
    raise SystemExit(main())
