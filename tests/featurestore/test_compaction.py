"""Compaction writes only small files again, by writers themselves where there are many."""

from __future__ import annotations

import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pyarrow as pa
import pytest
from deltalake.exceptions import CommitFailedError
from hypothesis import given, settings
from hypothesis import strategies as st

from featurestore import Transaction, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.inspect import inspect_store
from featurestore.tables import features
from featurestore.tables.compaction import joins, to_sort
from featurestore.tables.delta import JOIN_EVERY, Table
from featurestore.tables.files import FileReader
from featurestore.tables.snapshot import DataFile
from syntax.errors import StoreBusyError

from .test_delta import LAYOUT, stored, table

__all__ = ["table"]

LARGE = 4_000_000
"""Bytes of the last tier in these tests; the first is ten commits."""

PART = (("part", "a"),)


def rows(*numbers: int, size: int = 4_000, part: str = "a") -> pa.Table:
    """Rows that do not compress."""
    blobs = [random.Random(number).randbytes(size) for number in numbers]
    return pa.table([[part] * len(numbers), list(numbers), blobs], schema=LAYOUT.schema)


def files_of(table: Table) -> dict[str, int]:
    return {file.path: file.size for file in table.snapshot().files}


def compacted(table: Table, file_bytes: int = LARGE) -> int:
    """Bytes that a compaction wrote; it keeps the rows and their order."""
    before, content = files_of(table), table.open().to_pyarrow_table()
    table.compact(file_bytes=file_bytes)
    written = sum(size for path, size in files_of(table).items() if path not in before)
    assert table.open().to_pyarrow_table().sort_by("seq").equals(content.sort_by("seq"))
    return written


def sized(*sizes: int) -> list[DataFile]:
    return [DataFile(f"{at}.parquet", 1, size, dict(PART)) for at, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ((2, 2), 10),
        ((6, 6), None),
        ((2, 99), None),
        ((12, 13), None),
        ((), None),
        ((2,) * 49, 10),
        ((2,) * 50, 100),
        ((24,) * 4, None),
        ((24,) * 5, 100),
        ((24,) * 41, 100),
        ((24,) * 42, 1000),
        ((600, 600, 2, 2), 10),
        ((900,) * 5, None),
    ],
)
def test_the_largest_tier_that_small_files_fill_is_joined(sizes, target) -> None:
    found = [join.target for join in joins(sized(*sizes), file_bytes=1000)]
    assert found == ([] if target is None else [target])


def test_each_partition_is_joined_for_itself() -> None:
    files = [*sized(2, 2), DataFile("b", 1, 5, {"part": "b"})]
    assert [join.part for join in joins(files, file_bytes=1000)] == [PART]
    assert joins(files, file_bytes=1000, least=3) == []


def test_partitions_with_large_files_are_not_sorted() -> None:
    assert to_sort(sized(5, 5), 1000) == [PART]
    assert to_sort(sized(5), 1000) == []
    assert to_sort(sized(5, 5, 250), 1000) == []


@given(st.lists(st.integers(1, 400), min_size=1, max_size=400), st.floats(0.4, 1.0))
@settings(deadline=None)
def test_a_row_is_written_again_a_few_times(sizes, ratio) -> None:
    """The rule alone, on sizes: files are packed in their order, and joined ones get smaller."""
    held: list[int] = []
    written = 0
    for size in sizes:
        held.append(size)
        for join in joins(sized(*held), file_bytes=10_000):
            held, wrote = packed(held, join.target, ratio)
            written += wrote
    small = [size for size in held if size < 25]
    assert len(held) <= 20 + sum(held) // 1_000
    assert sum(small) < 2 * 100 + 400
    assert written <= 100 * len(sizes) + 12 * sum(sizes)


def packed(held: list[int], target: int, ratio: float) -> tuple[list[int], int]:
    """Sizes after a join, and the bytes that were written: neighbours share a file if they fit."""
    bins: list[list[int]] = []
    for size in held:
        if size < target and bins and max(bins[-1]) < target and sum(bins[-1]) + size <= target:
            bins[-1].append(size)
        else:
            bins.append([size])
    joined = [round(sum(one) * ratio) + 1 if len(one) > 1 else one[0] for one in bins]
    return joined, sum(size for size, one in zip(joined, bins, strict=True) if len(one) > 1)


@pytest.mark.slow
def test_a_compacted_table_is_left_alone(table) -> None:
    for number in range(60):
        table.append(rows(number, number + 100, part="c d/%" if number % 3 else "a"))
    assert compacted(table) > 0
    version = table.snapshot().version
    assert compacted(table) == 0
    assert table.snapshot().version == version
    table.sort("seq", file_bytes=LARGE)
    version = table.snapshot().version
    table.sort("seq", file_bytes=LARGE)
    assert table.snapshot().version == version


@pytest.mark.slow
def test_only_small_files_are_written_again(table) -> None:
    for number in range(120):
        table.append(rows(number))
    compacted(table)
    large = {path: size for path, size in files_of(table).items() if size >= LARGE / 100}
    assert sum(large.values()) > LARGE / 10
    for number in range(120, 125):
        table.append(rows(number))
    new = sum(files_of(table).values()) - sum(large.values())
    assert 0 < compacted(table) <= new
    assert large.items() <= files_of(table).items()
    for number in range(200, 210):
        table.append(rows(number, size=1))
    count = len(table.snapshot().files)
    table.sort("seq", file_bytes=LARGE // 10)
    assert len(table.snapshot().files) < count
    assert large.items() <= files_of(table).items()


@pytest.mark.slow
def test_writers_join_many_small_files(table) -> None:
    for number in range(JOIN_EVERY + 20):
        assert table.append(rows(number, size=10), Transaction(f"shard-{number}"))
    assert len(table.snapshot().files) < JOIN_EVERY / 2
    assert stored(table) == list(range(JOIN_EVERY + 20))
    assert not table.append(rows(7), Transaction("shard-7"))
    assert stored(table, version=JOIN_EVERY) == list(range(JOIN_EVERY))


@pytest.mark.slow
def test_rows_of_newer_files_come_first_in_a_joined_one(table) -> None:
    for number in range(0, 3 * JOIN_EVERY, 3):
        table.append(rows(number, number + 1, number + 2, size=10))
    joined = max(table.snapshot().files, key=lambda file: file.rows)
    for number in range(3 * JOIN_EVERY, 3 * JOIN_EVERY + 30, 3):
        table.append(rows(number, number + 1, number + 2, size=10))
    table.compact()
    for found in (joined, *table.snapshot().files):
        seq = FileReader(table.location).columns(found.path, ["seq"])["seq"].to_numpy()
        assert len(seq) >= 100
        assert (seq // 3 == sorted(seq // 3, reverse=True)).all()


@pytest.mark.slow
def test_writers_leave_few_small_files_alone(table) -> None:
    for number in range(JOIN_EVERY + 1):
        table.append(rows(number, size=10, part=f"{number % 5}"))
    assert len(table.snapshot().files) == JOIN_EVERY + 1


@pytest.mark.slow
def test_a_writer_that_loses_the_race_to_join_goes_on(table, caplog) -> None:
    for number in range(JOIN_EVERY - 1):
        table.append(rows(number, size=10))
    stale = table.snapshot().files
    table.compact()
    table._join(stale, joins(stale), 1024)
    assert stored(table) == list(range(JOIN_EVERY - 1))
    assert len(table.snapshot().files) == 1
    assert not [record for record in caplog.records if record.levelname != "INFO"]


def test_of_two_changes_of_a_file_the_second_changes_nothing(table) -> None:
    for number in range(6):
        table.append(rows(number))
    files = table.snapshot().files
    table.append(rows(6))  # need not be looked at
    assert table.swap(files[:3], table._written(rows(10), 1024))
    assert not table.swap(files[:1], table._written(rows(12), 1024))
    assert table.swap(files[3:], table._written(rows(11), 1024))
    assert stored(table) == [6, 10, 11]


def test_the_table_library_refuses_a_change_that_lost_a_race(table) -> None:
    """What `Table.swap` finds to be in use may go before it commits."""
    for number in range(3):
        table.append(rows(number))
    files, late = table.snapshot().files, table.open()
    table.swap(files, table._written(rows(3), 1024))
    with pytest.raises(CommitFailedError):
        table._commit(late, table._written(rows(4), 1024), files)
    assert stored(table) == [3]


@pytest.mark.slow
def test_compactions_at_once_leave_each_row_once(filled, records) -> None:
    for record in records:
        filled.parses.append([record])
    start = threading.Barrier(4)

    def compact(_: int) -> None:
        with open_store(filled.uri) as store:
            start.wait()
            with suppress(StoreBusyError):
                store.compact()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(compact, range(4)))
    assert not filled.parses.has_repeats()
    assert {one.table.split("/")[0]: one.rows for one in inspect_store(filled)} == {
        "parses": len(records),
        "datasets": 100,
        "drops": 0,
        "fingerprints": 1,
        "pins": 0,
    }


@pytest.mark.slow
def test_a_join_that_fails_does_not_fail_the_append(table, caplog) -> None:
    for number in range(JOIN_EVERY - 1):
        table.append(rows(number, size=10))
    files = table.snapshot().files
    (gone,) = table.location.files.get_file_info([files[0].path])
    table.location.files.delete_file(gone.path)
    assert table.append(rows(1000, size=10), Transaction("last"))
    assert "cannot join files of" in caplog.text
    assert table.open().transaction_version("last") == 1


@pytest.mark.slow
def test_readers_follow_parses_that_writers_join(store, records) -> None:
    with open_store(store.uri) as reader:
        for number in range(JOIN_EVERY + 5):
            store.parses.append([records[number % 40]])
            assert reader.parses.get_many([records[number % 40].key])
        keys = [record.key for record in records]
        assert set(reader.parses.get_many(keys)) == set(keys)
    assert len(store.parses.table.snapshot().files) < JOIN_EVERY / 2


def test_a_parse_that_is_deleted_during_a_compaction_stays_deleted(
    store, records, monkeypatch
) -> None:
    store.parses.append(records[:5])
    store.parses.append(records[:4])
    read, deleted = store.parses._read, []

    def read_and_delete(keys):
        found = read(keys)
        if not deleted:
            with open_store(store.uri) as other:
                deleted.extend(delete_parses(other, [records[3].key, records[4].key]).keys)
        return found

    monkeypatch.setattr(store.parses, "_read", read_and_delete)
    store.compact()
    assert len(deleted) == 2
    with open_store(store.uri) as after:
        kept = {record.key for record in records[:3]}
        assert set(after.parses.get_many([record.key for record in records])) == kept
        assert not after.parses.has_repeats()


@pytest.mark.parametrize("count", [1, 10], ids=["all repeated", "some repeated"])
def test_examples_that_are_deleted_during_a_compaction_stay_deleted(
    store, handle, records, rows, monkeypatch, count
) -> None:
    store.parses.append(records)
    store.features.append(handle, rows)
    store.features.append(handle, rows[3 : 3 + count])
    seen_rows, deleted = features._seen_rows, []

    def read_and_delete(*arguments):
        found = seen_rows(*arguments)
        if not deleted:
            with open_store(store.uri) as other:
                deleted.append(delete_parses(other, rows[3].parse_keys[:1]).examples)
        return found

    monkeypatch.setattr(features, "_seen_rows", read_and_delete)
    store.compact()
    gone = {row.example_key for row in rows if rows[3].parse_keys[0] in row.parse_keys}
    assert deleted == [len(gone)]
    with open_store(store.uri) as after:
        keys = [key for (key,) in after.sql("select example_key from examples").fetchall()]
    assert sorted(keys) == sorted({row.example_key for row in rows} - gone)


@pytest.mark.slow
def test_a_deletion_ends_beside_a_steady_writer(table) -> None:
    for number in range(40):
        table.append(rows(number, part=str(number)))
    stop, numbers = threading.Event(), itertools.count(100)

    def write() -> None:
        while not stop.is_set():
            writer.append(rows(next(numbers), part="late", size=10))

    writer = Table(table.location, LAYOUT, lambda: None)
    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            table.delete("part", [str(number)])
    finally:
        stop.set()
        thread.join()
    left = stored(table)
    assert left == [*range(5, 40), *range(100, next(numbers))]
