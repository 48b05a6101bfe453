"""What it takes to open a store, from 10^4 to 10^7 parses and as many examples.

    python -m benchmarks.scale [--most 6] [--words 1000] [--folder DIR] [--rounds 3]
    python -m benchmarks.scale --rows 3000000 --only pool=None buckets

A store is made of real sentences (of UD_English-EWT where PARSEBANK_DATA is set, else of the thirty
of the test treebank) under keys of their own, in files of 100,000 rows as the store writes them.
Each figure is that of a process of its own: CPU seconds (user and system) after the imports, and
the most memory that it took beyond them. ``first`` is the first process that asks for it, on a
machine that has kept nothing of this store; the others are the best of the rounds after it.

Then one process asks for single parses that nobody asked for before: of files that it has open, and
of all files.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import featurestore.dataset.dataset
import featurestore.sql.session  # noqa: F401 - imports are not measured
from benchmarks.result import four_digits, write_result
from benchmarks.stream.corpus import SPECIAL, read_sentences
from featurestore import (
    DatasetHandle,
    ExampleRow,
    FeatureStore,
    OrderPolicy,
    ParsedDataset,
    ParseRecord,
    open_store,
)
from featurestore.tables.card import DatasetCard
from featurestore.tables.delta import Table
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.features import ROW_GROUP_PIECES
from featurestore.tables.parses import OPEN_FILES, ROW_GROUP
from featurestore.tables.schema import VECTORS
from syntax import fingerprint
from syntax.batches import AssemblySpec, FlatExamples, SegmentFeatures, assemble_batch
from syntax.examples import DatasetSpec, LabelSpec

FILE = 100_000
SINGLES = 320
BUCKETS = (5, 10, 20, 30, 40, 60, 80)
SEED = 7
PARSER = fingerprint({"name": "scale"})
HANDLE = DatasetHandle(
    spec=DatasetSpec("scale", "train", "en", ("text",), labels=(LabelSpec("label", "string"),)),
    tokenizer="pieces-of-four",
    tokenizer_fingerprint=fingerprint({"name": "pieces-of-four"}),
    special_tokens=SPECIAL,
    matrices=False,
)


def keys_at(start: int, count: int) -> list[str]:
    """Keys of the rows from one on: random, and the same in every process."""
    halves = np.random.default_rng([SEED, start]).integers(0, 2**64, (count, 2), dtype=np.uint64)
    return [f"{high:016x}{low:016x}" for high, low in halves.tolist()]


def make_store(folder: Path, count: int, words: int) -> None:
    """A store of ``count`` parses, of at most ``words`` words, and as many examples.

    What a run before this one was stopped at, this one goes on with.
    """
    source = read_sentences()
    pairs = zip(source.parses, source.features, strict=True)
    chosen = [pair for pair in pairs if pair[0].word_count <= words]
    records = [ParseRecord("0" * 32, "en", PARSER, "gold", parse) for parse, _ in chosen]
    parses = encode_parses(records)
    rows = [
        ExampleRow(0, "0", "0" * 32, PARSER, (parse.text,), ("0" * 32,), (features,))
        for parse, features in chosen
    ]
    examples = encode_examples(DatasetCard.of(HANDLE), "train", "en", rows, matrices=False)
    pieces = sum(len(features) for _, features in chosen) / len(chosen)
    with open_store(folder) as store:
        store.describe(PARSER, "parser", {"name": "scale"})
        parses_there = _rows(store.parses.table)
        examples_there = sum(_rows(table) for _, table in store.features.tables())
        for start in range(min(parses_there, examples_there), count, FILE):
            size = min(FILE, count - start)
            drawn = np.random.default_rng([SEED, start, 1]).integers(0, parses.num_rows, size)
            keys = pa.array(keys_at(start, size))
            if parses_there <= start:
                of_parses = parses.take(pa.array(drawn)).set_column(0, "key", keys)
                store.parses.table.append(of_parses, row_group=ROW_GROUP)
            of_examples = _replaced(
                examples.take(pa.array(drawn)),
                seq=pa.array(np.arange(start, start + size)),
                example_id=pa.array(list(map(str, range(start, start + size)))),
                example_key=keys,
                parse_keys=pa.ListArray.from_arrays(np.arange(size + 1, dtype=np.int32), keys),
            )
            group = int(ROW_GROUP_PIECES / pieces)
            store.features.append_encoded(HANDLE, of_examples, row_group=group)


def _rows(table: Table) -> int:
    return sum(file.rows for file in table.snapshot().files)


def _replaced(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), values)
    return table


def first_key(store: FeatureStore) -> None:
    (found,) = store.parses.get_many(keys_at(0, 1)).values()
    if not found.parse.word_count:
        raise SystemExit("the parse has no words")


def opened_dataset(store: FeatureStore) -> None:
    len(store.dataset("scale"))


def first_batch(store: FeatureStore) -> None:
    next(store.dataset("scale").stream(batch_size=32, seed=1)).keys()


def first_batch_and_state(store: FeatureStore) -> None:
    stream = store.dataset("scale").stream(batch_size=32, seed=1)
    next(stream)
    stream.state_dict()


def exact_shuffle(store: FeatureStore) -> None:
    order = OrderPolicy(pool=None)
    next(store.dataset("scale").stream(batch_size=32, seed=1, order=order)).keys()


def drawn_from_buckets(store: FeatureStore) -> None:
    data = ParsedDataset(store, store.dataset("scale"))
    next(data.stream(batch_size=32, seed=1, order=OrderPolicy(buckets=BUCKETS))).keys()


def select_one(store: FeatureStore) -> None:
    store.sql("select 1").fetchall()


def select_parse(store: FeatureStore) -> None:
    store.sql("select key from parses limit 1").fetchall()


def select_example(store: FeatureStore) -> None:
    store.sql("select example_id from examples limit 1").fetchall()


def count_parses(store: FeatureStore) -> None:
    store.sql("select count(*) from parses").fetchall()


def tags_of_words(store: FeatureStore) -> None:
    store.sql("select upos, count(*) from words group by all").fetchall()


def pairs_of_tags(store: FeatureStore) -> None:
    query = """
        select d.upos, h.upos, count(*)
        from words d join words h
            on d.key = h.key and d.sentence = h.sentence and d.head = h.id
        group by all
    """
    store.sql(query).fetchall()


def deepest_words(store: FeatureStore) -> None:
    store.sql("select avg(list_max(depth_vector(head))) from sentences").fetchall()


def widest_trees(store: FeatureStore) -> None:
    query = "select max(list_max(distance_matrix(head)[1])) from sentences where len(head) < 60"
    store.sql(query).fetchall()


PROBES: dict[str, Callable[[FeatureStore], None]] = {
    "first key": first_key,
    "dataset()": opened_dataset,
    "first batch": first_batch,
    "with state": first_batch_and_state,
    "pool=None": exact_shuffle,
    "buckets": drawn_from_buckets,
    "select 1": select_one,
    "from parses": select_parse,
    "from examples": select_example,
    "count(*)": count_parses,
    "tags": tags_of_words,
    "tag pairs": pairs_of_tags,
    "depths": deepest_words,
    "distances": widest_trees,
}


UP_TO = {
    "buckets": 3_000_000,
    **dict.fromkeys(("tags", "tag pairs", "depths", "distances"), 1_000_000),
}
"""Most rows of a store in which a probe is made: these read every parse."""


def probe(folder: str, name: str, answers: Any) -> None:
    """Send what one probe takes, in this process."""
    before = _memory("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    with open_store(folder, cache_dir=f"{folder}.cache") as store:
        PROBES[name](store)
        taken = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    answers.send({**taken, "megabytes": (_memory("VmHWM") - before) / 1024})


def single_parses(folder: str, count: int, answers: Any) -> None:
    """Send microseconds of CPU time and of the clock that one parse takes, in this process."""
    rng = np.random.default_rng(SEED)
    asked = []
    for start in range(0, count, FILE):
        keys = keys_at(start, min(FILE, count - start))
        asked.append([keys[at] for at in rng.permutation(len(keys))[: 2 * SINGLES + 1]])
    few = OPEN_FILES // 2
    in_open = [key for own in asked[:few] for key in own[1 : 1 + SINGLES // len(asked[:few])]]
    in_all = [own[-1 - at] for at in range(-(-SINGLES // len(asked))) for own in asked]
    with open_store(folder, cache_dir=f"{folder}.cache") as store:
        for own in asked[:few]:
            store.parses.get_many(own[:1])
        answers.send(
            {
                "of open files": _each(store, rng.permutation(in_open).tolist()),
                "of all files": _each(store, rng.permutation(in_all).tolist()),
            }
        )


def _each(store: FeatureStore, keys: list[str]) -> dict[str, float]:
    taken = []
    for key in keys:
        cpu, wall = time.process_time(), time.perf_counter()
        store.parses.get_many([key])
        taken.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu, wall = np.median(taken, axis=0) * 1e6
    mean = np.mean(taken, axis=0)[0] * 1e6
    return {"cpu_us": cpu, "mean_cpu_us": mean, "wall_us": wall, "keys": len(keys)}


def _assemble_once() -> None:
    """Load the compiled kernels, which takes the same time whatever the store."""
    arrays = {name: np.zeros(1, dtype) for name, dtype in VECTORS.items()}
    arrays.update(head=np.array([-1], np.int32), offsets=np.zeros((1, 2), np.int32))
    one = SegmentFeatures(**arrays)
    assemble_batch(FlatExamples.from_segments([[one]]), SPECIAL, AssemblySpec())


def _memory(name: str) -> int:
    """Kilobytes, of `/proc/self/status`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _run(call: Callable[..., None], *arguments: object) -> Any:
    """What a call sends from a process that has imported everything and opened nothing."""
    forks = multiprocessing.get_context("fork")
    receiver, sender = forks.Pipe(duplex=False)
    process = forks.Process(target=call, args=(*arguments, sender))
    process.start()
    sender.close()
    measured = receiver.recv()
    process.join()
    return measured


def measure(folder: Path, count: int, rounds: int, names: list[str]) -> dict[str, Any]:
    """Probes over one store."""
    row: dict[str, Any] = {}
    shutil.rmtree(f"{folder}.cache", ignore_errors=True)
    for name in names:
        if count > UP_TO.get(name, count):
            continue
        first = _run(probe, str(folder), name)
        again = [_run(probe, str(folder), name) for _ in range(rounds)]
        best = {key: min(one[key] for one in again) for key in first}
        row[name] = {"first": first["cpu"], "first_megabytes": first["megabytes"], **best}
    if names == list(PROBES):
        row["single parse"] = _run(single_parses, str(folder), count)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description="What it takes to open a store, by its size.")
    parser.add_argument("--most", type=int, default=6, help="Rows of the largest store: 10^this.")
    parser.add_argument("--least", type=int, default=4, help="Rows of the smallest: 10^this.")
    parser.add_argument("--rows", type=int, help="Instead: rows of the only store.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(PROBES), help="Only these probes.")
    parser.add_argument("--words", type=int, default=1000, help="Most words of a sentence.")
    parser.add_argument("--folder", help="Where to make the stores; they stay there.")
    arguments = parser.parse_args()
    _assemble_once()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        powers = range(arguments.least, arguments.most + 1)
        for count in [arguments.rows] if arguments.rows else [10**power for power in powers]:
            folder = Path(arguments.folder or temporary) / f"rows-{count}"
            start = time.perf_counter()
            # In another process: what it starts cannot be forked.
            spawned = multiprocessing.get_context("spawn")
            maker = spawned.Process(target=make_store, args=(folder, count, arguments.words))
            maker.start()
            maker.join()
            if maker.exitcode:
                return int(maker.exitcode)
            made = time.perf_counter() - start
            measured = measure(folder, count, arguments.rounds, arguments.only or list(PROBES))
            rows.append({"rows": count, "made_seconds": made, **measured})
            tell(rows[-1])
            if not arguments.folder:
                shutil.rmtree(folder)
    write(rows, arguments.rounds, arguments.words)
    return 0


def tell(row: dict[str, Any]) -> None:
    print(f"{row['rows']:,} rows, made in {row['made_seconds']:.0f} s")
    print(f"  {'':14} {'first':>8} {'cpu s':>8} {'wall s':>8} {'MB':>6} {'MB first':>9}")
    for name in filter(row.__contains__, PROBES):
        one = row[name]
        print(
            f"  {name:14} {one['first']:8.3f} {one['cpu']:8.3f} {one['wall']:8.3f} "
            f"{one['megabytes']:6.0f} {one['first_megabytes']:9.0f}"
        )
    for where, one in row.get("single parse", {}).items():
        print(
            f"  a parse {where}: {one['cpu_us']:.0f} us of CPU time (mean {one['mean_cpu_us']:.0f})"
            f", {one['wall_us']:.0f} us by the clock",
            flush=True,
        )


def write(rows: list[dict[str, Any]], rounds: int, words: int) -> None:
    content = {"rounds": rounds, "most_words": words, "rows": four_digits(rows)}
    libraries = ("pyarrow", "deltalake", "duckdb")
    write_result(f"scale-{rows[-1]['rows']}", content, libraries=libraries)


if __name__ == "__main__":
    raise SystemExit(main())
