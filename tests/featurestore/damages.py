"""Damage to files: a part of one, or a single bit that is found, and nothing wrong is read."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from featurestore import DatasetHandle, Drop, ExampleRow, FeatureStore, ParseRecord, open_store
from featurestore.dataset.states import StatedDataset
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.states import WordStates
from syntax.errors import StoreError, UnknownKeyError

QUERIES = {
    "parses": "select * from parses",
    "examples": "select * from examples",
    "drops": "select * from drops",
    "fingerprints": "select * from fingerprints",
}


def empty(file: Path) -> None:
    os.truncate(file, 0)


def tear(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def zero(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def zero_pages(file: Path) -> None:
    """The end, with the footer, stays."""
    content = file.read_bytes()
    end = len(content) // 2
    file.write_bytes(content[:4] + bytes(end - 4) + content[end:])


def flip_bit(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def spoil(file: Path, column: str, group: int = 0) -> None:
    """Change a byte in the last page of a column; footer and the other columns can be read."""
    footer = pq.ParquetFile(file).metadata.row_group(group)
    chunks = map(footer.column, range(footer.num_columns))
    (chunk,) = (one for one in chunks if one.path_in_schema.split(".")[0] == column)
    content = bytearray(file.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start + chunk.total_compressed_size - 1] ^= 16
    file.write_bytes(content)


def fill(
    store: FeatureStore,
    handle: DatasetHandle,
    records: Sequence[ParseRecord],
    rows: Sequence[ExampleRow],
) -> None:
    """Write what is missing of a small store: what a backfill does when it runs again."""
    for start in range(0, len(records), 20):
        keys = [record.key for record in records[start : start + 20]]
        there = store.parses.get_many(keys)
        store.parses.append([x for x in records[start : start + 20] if x.key not in there])
    for start in range(0, len(rows), 50):
        store.features.append_new(handle, rows[start : start + 50])
    name, tokenizer = handle.spec.name, handle.tokenizer_fingerprint
    drop = Drop(name, tokenizer, "train", "en", "job", "ex-x", "", "example", "no hypothesis")
    store.drops.append_new([drop])
    store.describe(records[0].parser, "parser", {"name": "gold"})
    data = stated(store)
    missing = data.without_states()
    ids = missing.columns(["example_id"])["example_id"].to_pylist()
    data.write(missing, [states_of(name) for name in ids])
    if "paper" not in store.pins.all():
        store.dataset(name).pin("paper")


def states_of(example_id: str) -> WordStates:
    chance = np.random.default_rng(int(example_id.removeprefix("ex-")))
    return WordStates(np.array([2, 3], np.int32), chance.random((5, 4)).astype(np.float16))


def stated(store: FeatureStore) -> StatedDataset:
    return StatedDataset(store, store.dataset("pairs"), {"encoder": "of the tests"}, 4)


def content_of(uri: str | Path, keys: Sequence[str]) -> dict[str, Any]:
    """Everything that readers get of a store by what was read; of what raises, the message."""
    found: dict[str, Any] = {}
    with open_store(uri) as store:
        found["get_many"] = store.parses.get_many(keys)
        found["get"] = {key: one for key in keys for one in store.parses.get_many([key]).values()}
        for name, query in QUERIES.items():
            found[name] = Counter(map(repr, store.sql(query).fetchall()))
        for name, read in (("stream", streamed), ("states", read_states)):
            try:
                found[name] = read(store)
            except (StoreError, UnknownKeyError) as error:
                found[name] = str(error)
    return found


def streamed(store: FeatureStore) -> dict[str, Any]:
    """The arrays and labels of a stream, as text."""
    found = {}
    for batch in store.dataset("pairs").stream(batch_size=25, shuffle=False):
        for name, value in batch.items():
            found.setdefault(name, []).append(
                value.tolist() if isinstance(value, np.ndarray) else value
            )
    return found


def read_states(store: FeatureStore) -> list[Any]:
    data = stated(store)
    return [one.states.tolist() for one in data.states.read(data.rows.keys)]


def data_files(uri: str | Path) -> list[Path]:
    return sorted(path for path in Path(uri).rglob("*.parquet") if "_delta_log" not in path.parts)


@contextmanager
def one_bit(uri: str | Path, chance: random.Random) -> Iterator[Path]:
    """A file of which one bit is another for a while; large files are chosen as often as small."""
    path = chance.choice(data_files(uri))
    content = path.read_bytes()
    flip_bit(path, chance)
    yield path
    path.write_bytes(content)


def check_damage(uri: str | Path, path: Path, whole: dict[str, Any]) -> None:
    """What changed is found and named, and readers get nothing else than before, or less."""
    with open_store(uri) as store:
        problems = validate_store(store).problems
    assert any(path.name in f"{one.row} {one.message}" for one in problems)
    found = content_of(uri, list(whole["get_many"]))
    for name in ("get_many", "get"):
        assert found[name].items() <= whole[name].items()
    for name in QUERIES:
        assert found[name] <= whole[name]
    table = path.relative_to(uri).parts[0]
    read = ("datasets", "fingerprints")
    for name, tables in (("stream", read), ("states", (*read, "states"))):
        if found[name] != whole[name]:
            assert isinstance(found[name], str)
            assert table in tables
            assert path.name in found[name] or "have no states" in found[name]
        else:
            assert table not in tables
    others = [name for name in QUERIES if name != {"datasets": "examples"}.get(table, table)]
    assert all(found[name] == whole[name] for name in others)


def check_repair(uri: str | Path, handle: DatasetHandle, given: Any, whole: dict[str, Any]) -> None:
    """A repair does what its dry run says, and the backfill, run again, brings all back."""
    with open_store(uri) as store:
        planned = repair_store(store).to_json()
    with open_store(uri) as store:
        done = repair_store(store, dry_run=False).to_json()
    assert planned == {**done, "is_done": False}
    with open_store(uri) as store:
        assert validate_store(store).problem_count == 0
        assert repair_store(store).is_sound
        fill(store, handle, *given)
    again = content_of(uri, list(whole["get_many"]))
    if any(one["table"] == "fingerprints" for one in done["files"]):
        # The source of a split is described again with its next new example.
        assert again.pop("fingerprints") <= whole["fingerprints"]
    assert all(again[name] == whole[name] for name in again)


def check_many(
    uri: Path, count: int, seed: int, handle: DatasetHandle, given: Any, repairs: int
) -> Counter[str]:
    """Damage a store many times, and repair a copy of it some of these times; what was damaged."""
    chance, counts = random.Random(seed), Counter[str]()
    keys = [record.key for record in given[0]]
    whole = content_of(uri, keys)
    for number in range(count):
        with one_bit(uri, chance) as path:
            check_damage(uri, path, whole)
            if number < repairs:
                copy = uri.with_name(f"{uri.name}-{number}")
                shutil.copytree(uri, copy)
                check_repair(copy, handle, given, whole)
                shutil.rmtree(copy)
            counts[path.relative_to(uri).parts[0]] += 1
    assert content_of(uri, keys) == whole
    return counts
