"""What the checks of stored bytes cost, and how long a writer waits beside other changes.

    python -m benchmarks.integrity [--rows 20000] [--seconds 20] [--waits-only]

*checks*: parses and pairs with matrices are written and compacted; then a stream, a single parse
and a query are read with no check at all, in a process that has not seen the files (all bytes are
compared with their names, all pages with their CRCs), and in one that has (pages alone). CPU
seconds of this process, medians of five, in turn.

*waits*: processes append a parse each 50 ms, while two compact, one deletes single parses, for some
seconds each; wall-clock seconds that an append took.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq

from benchmarks.result import four_digits, write_result
from benchmarks.scale import PARSER, keys_at
from benchmarks.stream.corpus import read_sentences
from featurestore import DatasetHandle, ExampleRow, FeatureStore, ParseRecord, open_store
from featurestore.maintenance.delete import delete_parses
from syntax.alignment import segment_features
from syntax.batches import SpecialTokens
from syntax.errors import StoreError
from syntax.examples import DatasetSpec

SAMPLES = 5
HANDLE = DatasetHandle(
    DatasetSpec("pairs", "train", "en", ("text",), (), "the benchmark", "Apache-2.0"),
    tokenizer="words",
    tokenizer_fingerprint="e" * 32,
    special_tokens=SpecialTokens(
        prefix=(2,), separator=(3,), suffix=(3,), pad_id=0, vocab_size=5000
    ),
)


def records(count: int, first: int = 0) -> Iterator[ParseRecord]:
    parses = read_sentences().parses
    for number, key in enumerate(keys_at(first, count)):
        yield ParseRecord(key, "en", PARSER, "gold", parses[number % len(parses)])


def example(record: ParseRecord, seq: int) -> ExampleRow:
    parse = record.parse
    spans = np.array(list(zip(parse.token_start, parse.token_end, strict=True)), np.int32)
    segment = segment_features(parse, 5 + np.arange(len(spans), dtype=np.int32) % 4000, spans)
    key = record.key
    return ExampleRow(seq, f"{seq}", key, PARSER, (parse.text,), (key,), (segment,))


def fill(uri: Path, rows: int) -> list[str]:
    keys = []
    with open_store(uri) as store:
        for start in range(0, rows, 2_000):
            some = list(records(min(2_000, rows - start), start))
            store.parses.append(some)
            store.features.append(HANDLE, [example(x, start + n) for n, x in enumerate(some)])
            keys += [record.key for record in some]
        store.compact()
    return keys


@contextmanager
def checking(how: str) -> Iterator[None]:
    """Read without a check; as the first look of a process; or as a later one."""
    from featurestore.tables import data_files, files

    if how == "none":
        unchecked = pq.ParquetFile

        def opened(source: Any, **given: Any) -> Any:
            return unchecked(source, **{**given, "page_checksum_verification": False})

        with (
            mock.patch.object(files, "was_intact", return_value=True),
            mock.patch.object(files.pq, "ParquetFile", opened),
        ):
            yield
        return
    if how == "first":
        data_files._INTACT.clear()
    yield


def stream(store: FeatureStore, _: str) -> None:
    for _batch in store.dataset("pairs").stream(batch_size=32, shuffle=True, seed=0):
        pass


def get(store: FeatureStore, key: str) -> None:
    assert store.parses.get_many([key])


def query(store: FeatureStore, _: str) -> None:
    store.sql("select lang, count(distinct text) from parses group by all").fetchall()


def checks(rows: int) -> list[dict[str, Any]]:
    works: dict[str, Callable[[FeatureStore, str], None]] = {
        "stream, an epoch": stream,
        "one parse": get,
        "SQL, a group": query,
    }
    found = []
    with tempfile.TemporaryDirectory() as place:
        uri = Path(place) / "store"
        keys = fill(uri, rows)
        files = [path.stat().st_size for path in uri.rglob("*-*.parquet")]
        for name, work in works.items():
            taken: dict[str, list[float]] = {"none": [], "first": [], "later": []}
            for sample in range(SAMPLES + 1):
                for how, seconds in taken.items():
                    with checking(how), open_store(uri) as store:
                        store.parses.contains(["0" * 32])
                        if how == "first":  # the look for keys has read the parses
                            from featurestore.tables import data_files

                            data_files._INTACT.clear()
                        start = time.process_time()
                        work(store, keys[(7919 * sample) % len(keys)])
                        if sample:
                            seconds.append(time.process_time() - start)
            medians = {how: statistics.median(each) for how, each in taken.items()}
            found.append({"work": name, **medians, "megabytes": sum(files) / 1e6})
    return found


def append(uri: Path, seconds: float, first: int, out: Any) -> None:
    taken, some = [], records(10_000, first)
    with open_store(uri) as store:
        store.parses.append([next(some)])
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            record = next(some)
            start = time.monotonic()
            store.parses.append([record])
            taken.append(time.monotonic() - start)
            time.sleep(0.05)
    out.put(taken)


def compact(uri: Path, seconds: float) -> None:
    end = time.monotonic() + 2 * seconds  # the writers begin later
    while time.monotonic() < end:
        with open_store(uri) as store, suppress(StoreError):
            store.compact()


def delete(uri: Path, seconds: float, keys: list[str]) -> None:
    end = time.monotonic() + 2 * seconds
    with open_store(uri) as store:
        while keys and time.monotonic() < end:
            with suppress(StoreError):
                delete_parses(store, [keys.pop()])


def waits(seconds: float) -> list[dict[str, Any]]:
    found = []
    spawn = multiprocessing.get_context("spawn")
    for beside in ("nothing", "two compactions, a deletion"):
        with tempfile.TemporaryDirectory() as place:
            uri = Path(place) / "store"
            keys = fill(uri, 4_000)
            out = spawn.Queue()
            writers = [
                spawn.Process(target=append, args=(uri, seconds, 10**6 * (n + 1), out))
                for n in range(2)
            ]
            others = [spawn.Process(target=compact, args=(uri, seconds)) for _ in range(2)]
            others.append(spawn.Process(target=delete, args=(uri, seconds, keys)))
            started = writers if beside == "nothing" else writers + others
            for process in started:
                process.start()
            taken = [one for _ in writers for one in out.get()]
            for process in started:
                process.join()
            quantiles = np.quantile(taken, [0.5, 0.99, 1.0]).tolist()
            row = dict(zip(("median", "p99", "longest"), quantiles, strict=True))
            with open_store(uri) as store:
                left = {"deleted": len(keys) - int(store.parses.contains(keys).sum())}
            found.append({"beside": beside, "appends": len(taken), **row, **left})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of checks, and the waits of writers.")
    parser.add_argument("--rows", type=int, default=20_000, help="Parses and examples.")
    parser.add_argument("--seconds", type=float, default=20, help="Seconds of each kind of wait.")
    parser.add_argument("--waits-only", action="store_true", help="Only the waits; print them.")
    arguments = parser.parse_args()
    rows = [] if arguments.waits_only else checks(arguments.rows)
    rows += waits(arguments.seconds)
    for one in rows:
        shown = (f"{k} {v:,.4g}" if isinstance(v, float | int) else v for k, v in one.items())
        print("  ".join(shown), flush=True)
    if arguments.waits_only:
        return 0
    libraries = ("pyarrow", "deltalake")
    write_result("integrity", {"rows": four_digits(rows)}, libraries=libraries)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
