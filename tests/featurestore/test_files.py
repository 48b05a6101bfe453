"""Rows of Parquet files, from files that stay open for a while."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from featurestore.maintenance.vacuum import vacuum_store
from featurestore.tables.data_files import write_files
from featurestore.tables.files import DamagedFileError, FileGoneError, FileReader
from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location

ROWS = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files of a hundred numbers in groups of eight, in folders that number them."""
    layout = TableLayout(pa.schema([("number", pa.int64())]))
    for file in range(4):
        rows = pa.table({"number": range(file * ROWS, (file + 1) * ROWS)})
        write_files(Location.of(tmp_path), layout, {"file": str(file)}, [rows], row_group=8)
    return tmp_path


def path_of(folder: Path, file: int) -> str:
    (found,) = folder.glob(f"file={file}/*")
    return str(found.relative_to(folder))


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
    first, second = path_of(folder, 0), path_of(folder, 1)
    assert numbers(reader, second, 7) == [107]
    assert numbers(reader, second, 99, 0, 8, 7, 0) == [199, 100, 108, 107, 100]
    assert numbers(reader, first, *range(16)) == list(range(16))
    assert reader.row_group_starts(first).tolist() == [*range(0, 100, 8), 100]


def test_as_many_files_stay_open_as_asked(folder) -> None:
    paths = [path_of(folder, file) for file in range(4)]
    names = [Path(path).name for path in paths]
    for keep_open, kept in ((0, set()), (2, {names[3], names[1]})):
        reader = reader_of(folder, keep_open)
        for file in (0, 1, 2, 3, 1):
            assert numbers(reader, paths[file], 5) == [100 * file + 5]
        assert open_files(folder) == kept
        reader.close()
        assert open_files(folder) == set()
        assert numbers(reader, paths[2], 5) == [205]
        reader.close()


def test_unused_files_are_closed(folder) -> None:
    reader = reader_of(folder, 4)
    paths = [path_of(folder, file) for file in range(4)]
    assert [numbers(reader, path, 0) for path in paths] == [[0], [100], [200], [300]]
    reader.forget([paths[1], "9.parquet"])
    assert open_files(folder) == {Path(path).name for path in paths} - {Path(paths[1]).name}
    (folder / paths[1]).unlink()
    with pytest.raises(FileGoneError, match=f"cannot read {paths[1]}"):
        numbers(reader, paths[1], 0)


def test_threads_share_open_files(folder) -> None:
    reader = reader_of(folder, 2)
    paths = [path_of(folder, file) for file in range(4)]
    rng = np.random.default_rng(0)
    asked = [(int(rng.integers(4)), rng.integers(0, ROWS, 5).tolist()) for _ in range(400)]
    with ThreadPoolExecutor(4) as threads:
        got = list(threads.map(lambda ask: numbers(reader, paths[ask[0]], *ask[1]), asked))
    assert got == [[100 * file + row for row in rows] for file, rows in asked]


@pytest.mark.parametrize("bit", [0, 7])
def test_a_changed_file_is_not_read(folder, bit) -> None:
    reader, path = reader_of(folder), path_of(folder, 2)
    content = (folder / path).read_bytes()
    assert numbers(reader, path, 5) == [205]
    for place in range(0, len(content), len(content) // 20):
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        (folder / path).write_bytes(changed)
        with pytest.raises(DamagedFileError, match=f"{path} .* is damaged"):
            numbers(reader, path, 5)
    (folder / path).write_bytes(content)
    assert numbers(reader, path, 5) == [205]
    (folder / path).write_bytes((folder / path_of(folder, 1)).read_bytes())
    with pytest.raises(DamagedFileError):
        numbers(reader, path, 5)


def test_the_name_of_a_file_is_what_sha256sum_says(folder) -> None:
    path = path_of(folder, 0)
    content = (folder / path).read_bytes()
    assert path.endswith(f"-{hashlib.sha256(content).hexdigest()[:32]}.parquet")


def test_a_page_that_changes_while_its_file_is_open_is_not_read(folder) -> None:
    reader, path = reader_of(folder, keep_open=1), path_of(folder, 0)
    assert numbers(reader, path, 5) == [5]
    column = pq.ParquetFile(folder / path).metadata.row_group(5).column(0)
    with (folder / path).open("r+b") as file:
        file.seek(column.dictionary_page_offset + column.total_compressed_size - 1)
        file.write(b"\xff")
    with pytest.raises(DamagedFileError):
        numbers(reader, path, 45)


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
    reader, path = reader_of(folder, keep_open=1), path_of(folder, 2)
    for row in (0, 7, 8, 99):
        (expected,) = reader.rows(path, np.array([row]), ["number"]).to_pylist()
        assert reader.row(path, row, ["number", "missing"]) == expected


def test_a_column_that_a_file_lacks_reads_as_null(folder) -> None:
    schema = pa.schema([("later", pa.list_(pa.string())), ("number", pa.int64())])
    reader = FileReader(Location.of(folder), schema=schema)
    names, path = ["later", "number"], path_of(folder, 0)
    for table in (
        reader.rows(path, np.array([9, 3]), names),
        reader.row_group(path, 0, names),
        reader.columns(path, names),
    ):
        assert table.schema.equals(schema)
        assert table["later"].null_count == table.num_rows > 0
    assert reader.rows(path, np.array([9, 3]), names)["number"].to_pylist() == [9, 3]
