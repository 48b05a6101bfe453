"""Keys and rows of large tables, kept on this machine between processes."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from featurestore import DatasetHandle, ExampleRow, FeatureStore, open_store
from featurestore.tables.delta import Table
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.file_cache import FileCache
from featurestore.tables.files import FileReader
from featurestore.tables.index import KEPT_KEYS
from featurestore.tables.layout import TableLayout
from featurestore.tables.lookup import KeyLookup
from featurestore.tables.root import StoreRoot
from featurestore.tables.rows import KEPT_ROWS, open_row_index, read_row_index
from syntax.errors import StoreError

LAYOUT = TableLayout(schema=pa.schema([("key", pa.string())]))


class CountingReader(FileReader):
    """Counts the files whose columns were read."""

    read = 0

    def columns(self, path, columns):
        self.read += 1
        return super().columns(path, columns)


def keys_from(rng: np.random.Generator, count: int) -> list[str]:
    return [f"{high:016x}{low:016x}" for high, low in rng.integers(0, 2**63, (count, 2)).tolist()]


def append(table: Table, keys: list[str]) -> None:
    table.append(pa.table({"key": keys}, schema=LAYOUT.schema))


def opened(table: Table, **options: bool) -> tuple[KeyLookup, CountingReader]:
    reader = CountingReader(table.location)
    return KeyLookup(table, reader, "key", **options), reader


def stored(table: Table) -> Counter[str]:
    reader = FileReader(table.location)
    files = table.snapshot().files
    return Counter(key for f in files for key in reader.columns(f.path, ["key"])["key"].to_pylist())


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "cache", 1 << 30)


@pytest.fixture
def table(tmp_path: Path, cache: FileCache) -> Table:
    return StoreRoot(tmp_path / "store", copies=cache).table(LAYOUT, "keys")


@pytest.fixture
def kept(table: Table) -> list[str]:
    """The keys of a table that one process has opened and kept."""
    keys = keys_from(np.random.default_rng(0), KEPT_KEYS + 100)
    for start in (0, 10_000):
        append(table, keys[start : start + 10_000])
    assert opened(table)[0].find(keys).found.all()
    return keys


def check(table: Table, lookup: KeyLookup, universe: list[str]) -> None:
    truth = stored(table)
    found = lookup.find(universe)
    lookup.refresh(force=True)
    found = lookup.find(universe)
    assert found.found.tolist() == [key in truth for key in universe]
    reader = FileReader(table.location)
    for at in np.flatnonzero(found.found).tolist():
        rows = reader.columns(lookup.path(int(found.file[at])), ["key"])["key"]
        assert rows[int(found.row[at])].as_py() == universe[at]
        assert lookup.find_one(universe[at]) is not None
    assert lookup.repeated_keys() == sorted(key for key, count in truth.items() if count > 1)


@pytest.mark.slow_cases
@pytest.mark.parametrize("seed", range(4))
def test_kept_keys_are_those_of_the_table_whatever_happens_to_it(table, monkeypatch, seed) -> None:
    monkeypatch.setattr("featurestore.tables.index.KEPT_KEYS", 8)
    rng = np.random.default_rng(seed)
    universe = sorted(keys_from(rng, 60))
    lasting, _ = opened(table)
    for _ in range(14):
        some = rng.choice(universe, rng.integers(1, 20), replace=False).tolist()
        what = rng.choice(["append", "append", "append", "delete", "compact"])
        if what == "append" or not stored(table):
            append(table, some)
        elif what == "delete":
            table.delete("key", some[:4])
        else:
            table.compact()
        if rng.integers(2):
            check(table, lasting, universe)
        check(table, opened(table)[0], universe)


def test_a_second_process_reads_no_key_of_the_table(table, kept) -> None:
    lookup, reader = opened(table)
    assert lookup.find(kept).found.all()
    assert reader.read == 0
    append(table, ["0" * 32])
    assert lookup.find([*kept, "0" * 32]).found.all()
    assert reader.read == 1


def test_few_keys_are_not_kept(table, cache) -> None:
    append(table, keys_from(np.random.default_rng(0), 100))
    opened(table)[0].refresh()
    assert not cache.folder.exists()


def tear(path: Path) -> None:
    """In another file, for a process maps this one."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1000] + bytes(1000))


@pytest.mark.parametrize("harm", [Path.unlink, tear])
def test_what_is_kept_may_go_at_any_time(table, kept, cache, harm) -> None:
    (path,) = (one for one in cache.folder.glob("*/*-*"))
    lookup, _ = opened(table)
    assert lookup.find(kept).found.all()
    harm(path)
    assert lookup.find(kept).found.all()
    again, reader = opened(table)
    assert again.find(kept).found.all()
    assert reader.read == 2


def test_without_room_keys_stay_in_memory(tmp_path) -> None:
    cache = FileCache(tmp_path / "cache", 1000)
    table = StoreRoot(tmp_path / "store", copies=cache).table(LAYOUT, "keys")
    keys = keys_from(np.random.default_rng(0), KEPT_KEYS)
    append(table, keys)
    for _ in range(2):
        lookup, reader = opened(table)
        assert lookup.find(keys).found.all()
        assert reader.read == 1


def test_a_data_file_that_was_torn_after_its_keys_were_kept_is_found(table, kept) -> None:
    torn = table.snapshot().files[0]
    path = Path(table.location.uri) / torn.path
    path.write_bytes(path.read_bytes()[:-100])
    lookup, _ = opened(table)
    assert lookup.find(kept).found.sum() == len(kept) - torn.rows
    assert list(lookup.unreadable) == [torn.path]


@pytest.mark.slow
def test_runs_that_are_joined_leave_no_files_behind(table, cache) -> None:
    rng = np.random.default_rng(1)
    keys = keys_from(rng, 3 * KEPT_KEYS)
    lookup, _ = opened(table)
    for start in range(0, len(keys), KEPT_KEYS):
        append(table, keys[start : start + KEPT_KEYS])
        lookup.refresh()
    assert lookup.find(keys).found.all()
    assert len(list(cache.folder.glob("*/*-*"))) == 1


def many(handle: DatasetHandle, rows: list[ExampleRow], store: FeatureStore) -> pa.Table:
    """More examples than are read anew, as rows of their table."""
    store.features.append(handle, rows[:1])
    (card, _) = store.features.find("pairs")
    base = encode_examples(card, "train", "en", rows, matrices=False)
    size = KEPT_ROWS + 1
    table = base.take(pa.array(np.arange(size) % len(rows)))
    seq = np.random.default_rng(2).permutation(size) + len(rows)
    keys = keys_from(np.random.default_rng(3), size)
    ids = [f"many-{number}" for number in seq]
    for name, values in (("seq", seq), ("example_key", keys), ("example_id", ids)):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values))
    return table


@pytest.fixture
def large(tmp_path, cache, handle, rows) -> Path:
    """A store with a dataset whose index is kept."""
    with open_store(tmp_path / "store", cache_dir=cache.folder) as store:
        table = many(handle, rows, store)
        store.features.append_encoded(handle, table.slice(0, 9000), row_group=2000)
        # Racing writers leave examples in several rows.
        store.features.append_encoded(handle, table.slice(8000), row_group=2000)
    return tmp_path / "store"


def test_a_kept_index_is_the_one_that_is_read(large, cache) -> None:
    with open_store(large, cache_dir=cache.folder) as store:
        data = store.dataset("pairs")
        _, table = store.features.find("pairs")
        files = table.snapshot().files
        fresh = read_row_index(FileReader(table.location), files)
        kept = open_row_index(table, CountingReader(table.location), files)
        assert len(data) == len(fresh) == KEPT_ROWS + 2
        for index in (kept, data.rows, pickle.loads(pickle.dumps(data.rows))):
            assert index.kept is not None
            for name in ("file", "row", "pieces", "part", "parser", "keys"):
                assert np.array_equal(getattr(index, name), getattr(fresh, name))
            for name in ("paths", "parts", "parsers", "content"):
                assert getattr(index, name) == getattr(fresh, name)
            assert np.array_equal(index.counts, fresh.counts)
            assert np.array_equal(index.chunk_starts, fresh.chunk_starts)


def test_a_kept_index_reads_no_column_and_streams_the_same(large, cache) -> None:
    states = []
    for folder in (cache.folder, cache.folder, large.parent / "elsewhere"):
        with open_store(large, cache_dir=folder) as store:
            data = store.dataset("pairs")
            stream = data.stream(batch_size=8, seed=3)
            batches = [next(stream)["example_id"] for _ in range(5)]
            states.append((batches, stream.state_dict(), data.langs, data.parsers, data.parts))
    assert states[0] == states[1] == states[2]


def test_a_dataset_selects_from_a_kept_index(large, cache) -> None:
    with open_store(large, cache_dir=cache.folder) as store:
        data = store.dataset("pairs")
        some = data.where(longest=int(np.median(data.rows.pieces)))
        assert 0 < len(some) < len(data)
        assert some.rows.kept is None
        assert some.rows.content != data.rows.content
        assert some.rows.counts.sum() == len(some)


def test_an_example_file_that_is_gone_is_named_though_the_index_is_kept(large, cache) -> None:
    with open_store(large, cache_dir=cache.folder) as store:
        store.dataset("pairs")
        _, table = store.features.find("pairs")
        gone = max(table.snapshot().files, key=lambda file: file.rows)
        (Path(table.location.uri) / gone.path).unlink()
        with pytest.raises(StoreError, match=gone.path):
            store.dataset("pairs")


def test_appending_to_a_dataset_makes_another_index(large, cache, handle, rows) -> None:
    with open_store(large, cache_dir=cache.folder) as store:
        before = store.dataset("pairs")
        store.features.append(handle, rows[1:3])
        assert len(store.dataset("pairs")) == len(before) + 2
        assert len(store.dataset("pairs", version=before.version)) == len(before)
