"""Files behind a file system that is written in Python, as SQL scans them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.fs as pa_fs
import pytest
from deltalake.fs import DeltaStorageHandler

from featurestore.sql.remote import RemoteFiles


@pytest.fixture
def files(tmp_path: Path) -> pa_dataset.FileSystemDataset:
    """Thirty files of three rows, in two partitions."""
    for number in range(30):
        rows = {"lang": ["en" if number % 2 else "no"] * 3, "n": [number, number, -number]}
        pa_dataset.write_dataset(
            pa.table(rows),
            tmp_path,
            format="parquet",
            partitioning=["lang"],
            partitioning_flavor="hive",
            basename_template=f"{number}-{{i}}.parquet",
            existing_data_behavior="overwrite_or_ignore",
        )
    return pa_dataset.dataset(
        tmp_path.as_posix().lstrip("/"),
        format="parquet",
        partitioning="hive",
        filesystem=pa_fs.PyFileSystem(DeltaStorageHandler("/")),
    )


def test_a_scan_gives_what_the_dataset_holds(files: pa_dataset.FileSystemDataset) -> None:
    options = {"columns": ["n", "lang"], "filter": pa_dataset.field("n") > 7}
    scanned = RemoteFiles.of(files).scanner(**options).to_reader().read_all()
    assert scanned.sort_by("n").equals(files.to_table(**options).sort_by("n"))
    assert scanned.num_rows == 2 * 22


def test_sql_filters_and_joins_them(files: pa_dataset.FileSystemDataset) -> None:
    connection = duckdb.connect()
    connection.from_arrow(RemoteFiles.of(files)).create_view("rows")
    query = "select a.lang, count(*) from rows a join rows b using (n) where a.n > 9 group by 1"
    assert sorted(connection.sql(query).fetchall()) == [("en", 40), ("no", 40)]
    query = "select count(distinct n) from rows where lang = 'no'"
    assert connection.sql(query).fetchall() == [(29,)]
