"""Rows of Parquet files, from files that stay open for a while."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from featurestore.maintenance.vacuum import vacuum_store
from featurestore.tables.files import FileGoneError, FileReader
from featurestore.tables.location import Location

ROWS = 100
ALL = {f"{file}.parquet" for file in range(4)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files of a hundred numbers in groups of eight."""
    for file in range(4):
        numbers = pa.table({"number": range(file * ROWS, (file + 1) * ROWS)})
        pq.write_table(numbers, tmp_path / f"{file}.parquet", row_group_size=8)
    return tmp_path


def reader_of(folder: Path, keep_open: int = 0) -> FileReader:
    return FileReader(Location.of(folder), keep_open)


def open_files(folder: Path) -> set[str]:
    """Names of the files below a folder that this process has open."""
    # The handle that lists the others is gone when its turn comes.
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    targets = {str(link.readlink()).removesuffix(" (deleted)") for link in links}
    return {Path(target).name for target in targets if target.startswith(str(folder))}


def numbers(reader: FileReader, path: str, *rows: int) -> list[int]:
    return reader.rows(path, np.array(rows), ["number"])["number"].to_pylist()


def test_rows_come_in_the_order_asked(folder) -> None:
    reader = reader_of(folder)
    assert numbers(reader, "1.parquet", 7) == [107]
    assert numbers(reader, "1.parquet", 99, 0, 8, 7, 0) == [199, 100, 108, 107, 100]
    assert numbers(reader, "0.parquet", *range(16)) == list(range(16))
    assert reader.row_group_starts("0.parquet").tolist() == [*range(0, 100, 8), 100]


def test_as_many_files_stay_open_as_asked(folder) -> None:
    for keep_open, kept in ((0, set()), (2, {"3.parquet", "1.parquet"})):
        reader = reader_of(folder, keep_open)
        for file in (0, 1, 2, 3, 1):
            assert numbers(reader, f"{file}.parquet", 5) == [100 * file + 5]
        assert open_files(folder) == kept
        reader.close()
        assert open_files(folder) == set()
        assert numbers(reader, "2.parquet", 5) == [205]
        reader.close()


def test_unused_files_are_closed(folder) -> None:
    reader = reader_of(folder, 4)
    assert [numbers(reader, path, 0) for path in sorted(ALL)] == [[0], [100], [200], [300]]
    reader.forget(["1.parquet", "9.parquet"])
    assert open_files(folder) == ALL - {"1.parquet"}
    (folder / "1.parquet").unlink()
    with pytest.raises(FileGoneError, match=r"cannot read 1\.parquet"):
        numbers(reader, "1.parquet", 0)


def test_threads_share_open_files(folder) -> None:
    reader = reader_of(folder, 2)
    rng = np.random.default_rng(0)
    asked = [(int(rng.integers(4)), rng.integers(0, ROWS, 5).tolist()) for _ in range(400)]
    with ThreadPoolExecutor(4) as threads:
        got = list(threads.map(lambda ask: numbers(reader, f"{ask[0]}.parquet", *ask[1]), asked))
    assert got == [[100 * file + row for row in rows] for file, rows in asked]


def test_refresh_after_compaction_closes_old_files(store, records) -> None:
    for start in (0, 20):
        store.parses.append(records[start : start + 20])
    keys = [record.key for record in records]
    assert len(store.parses.get_many(keys)) == 40
    before = open_files(Path(store.uri))
    store.compact()
    vacuum_store(store, older_than_hours=0)
    store.parses.contains(["0" * 32])
    assert len(before) == 2
    assert not open_files(Path(store.uri)) & before
    assert len(store.parses.get_many(keys)) == 40


def test_single_row_read_agrees_with_many(folder) -> None:
    reader = reader_of(folder, keep_open=1)
    for row in (0, 7, 8, 99):
        (expected,) = reader.rows("2.parquet", np.array([row]), ["number"]).to_pylist()
        assert reader.row("2.parquet", row, ["number", "missing"]) == expected


def test_a_column_that_a_file_lacks_reads_as_null(folder) -> None:
    schema = pa.schema([("later", pa.list_(pa.string())), ("number", pa.int64())])
    reader = FileReader(Location.of(folder), schema=schema)
    names = ["later", "number"]
    for table in (
        reader.rows("0.parquet", np.array([9, 3]), names),
        reader.row_group("0.parquet", 0, names),
        reader.columns("0.parquet", names),
    ):
        assert table.schema.equals(schema)
        assert table["later"].null_count == table.num_rows > 0
    assert reader.rows("0.parquet", np.array([9, 3]), names)["number"].to_pylist() == [9, 3]
