from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake import Transaction as DeltaTransaction
from deltalake.transaction import AddAction

from featurestore import Transaction
from featurestore.tables.delta import Table
from featurestore.tables.layout import TableLayout
from featurestore.tables.location import Location
from featurestore.tables.log import sync_commits
from syntax.errors import StoreError

LAYOUT = TableLayout(
    pa.schema([("part", pa.string()), ("seq", pa.int64()), ("blob", pa.binary())]),
    partition_by=("part",),
    statistics=("seq",),
    plain=("blob",),
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(Location.of(tmp_path / "table"), LAYOUT, on_create=lambda: None)


def rows(*numbers: int, part: str = "a") -> pa.Table:
    blobs = [b"blob" * number for number in numbers]
    return pa.table([[part] * len(numbers), list(numbers), blobs], schema=LAYOUT.schema)


def stored(table: Table, version: int | None = None) -> list[int]:
    handle = table.open(version)
    return [] if handle is None else sorted(handle.to_pyarrow_table()["seq"].to_pylist())


def test_appends_accumulate_rows(table) -> None:
    assert table.open() is None
    assert (table.snapshot().version, table.snapshot().files) == (-1, ())
    assert table.append(rows(1, 2))
    assert table.append(rows(3, part="b"))
    assert stored(table) == [1, 2, 3]
    assert sorted(file.partition["part"] for file in table.snapshot().files) == ["a", "b"]


def test_a_version_of_a_transaction_is_applied_once(table) -> None:
    assert table.append(rows(1), Transaction("writer", 1))
    assert table.append(rows(2), Transaction("writer", 2))
    assert not table.append(rows(1), Transaction("writer", 1))
    assert table.append(rows(3), Transaction("another"))
    assert table.append(rows(), Transaction("nothing"))
    assert not table.append(rows(4), Transaction("nothing"))
    assert stored(table) == [1, 2, 3]


def test_a_racing_commit_of_the_same_transaction_is_noticed(table) -> None:
    table.append(rows(0))
    winner = DeltaTable(table.location.uri)
    beaten = RacingTable(
        table,
        lambda: write_deltalake(
            winner,
            rows(1),
            mode="append",
            commit_properties=CommitProperties(app_transactions=[DeltaTransaction("shard", 1)]),
        ),
    )
    assert not beaten.append(rows(1), Transaction("shard", 1))
    assert stored(table) == [0, 1]


class RacingTable(Table):
    """Lets another writer commit between the look at the log and the append."""

    def __init__(self, table: Table, race) -> None:
        super().__init__(table.location, table.layout, on_create=lambda: None)
        self._race = race

    def open(self, version: int | None = None):
        handle = super().open(version)
        race, self._race = self._race, lambda: None
        race()
        return handle


def test_transactions_survive_checkpoints(table) -> None:
    table.append(rows(1), Transaction("early"))
    for number in range(2, 5):
        table.append(rows(number))
    DeltaTable(table.location.uri).create_checkpoint()
    table.append(rows(5))
    assert not table.append(rows(1), Transaction("early"))
    assert stored(table) == [1, 2, 3, 4, 5]


def test_compaction_can_sort(table) -> None:
    for number in (5, 3, 9, 1):
        table.append(rows(number, number + 10))
    table.sort("seq", row_group=4)
    (file,) = table.snapshot().files
    content = pq.read_table(Path(table.location.uri) / file.path)
    assert content["seq"].to_pylist() == [1, 3, 5, 9, 11, 13, 15, 19]


def test_only_scattered_partitions_are_sorted(table) -> None:
    for number, part in ((5, "a"), (3, "a"), (9, "b"), (1, "c d/%")):
        table.append(rows(number, part=part))
    others = {file.path for file in table.snapshot().files if file.partition["part"] != "a"}
    table.sort("seq")
    after = table.snapshot()
    assert {file.path for file in after.files if file.partition["part"] != "a"} == others
    assert len(after.files) == 3
    table.sort("seq")
    assert table.snapshot() == after
    table.append(rows(7, part="c d/%"))
    table.sort("seq")
    assert len(table.snapshot().files) == 3
    assert stored(table) == [1, 3, 5, 7, 9]


def test_row_groups_and_codec_are_as_asked(table) -> None:
    table.append(rows(*range(10)), row_group=4)
    (file,) = table.snapshot().files
    footer = pq.ParquetFile(Path(table.location.uri) / file.path).metadata
    assert [footer.row_group(group).num_rows for group in range(3)] == [4, 4, 2]
    column = footer.row_group(0).column(1)
    assert (column.path_in_schema, column.compression) == ("blob", "ZSTD")
    assert not column.has_dictionary_page


def test_only_chosen_columns_have_statistics_in_the_log(table) -> None:
    table.append(rows(1, 2))
    actions = pa.table(DeltaTable(table.location.uri).get_add_actions(flatten=True))
    assert {"min.seq", "max.seq"} <= set(actions.column_names)
    assert "min.blob" not in actions.column_names


def test_the_log_is_never_cleaned_up(table) -> None:
    table.append(rows(1))
    properties = DeltaTable(table.location.uri).metadata().configuration
    assert properties["delta.enableExpiredLogCleanup"] == "false"


def test_error_names_a_location_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    table = Table(Location.of(tmp_path / "file" / "table"), LAYOUT, on_create=lambda: None)
    with pytest.raises(StoreError, match="file/table"):
        table.append(rows(1))


def test_a_schema_that_the_library_refuses_is_an_error_of_the_store(tmp_path: Path) -> None:
    schema = pa.schema([("head", pa.string()), ("Head", pa.string())])
    table = Table(Location.of(tmp_path / "table"), TableLayout(schema), on_create=lambda: None)
    with pytest.raises(StoreError, match=r"cannot create .*Duplicate field name"):
        table.append(schema.empty_table())


def test_an_append_returns_once_the_disk_holds_it(table, monkeypatch) -> None:
    synced = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", watched)
    folder = Path(table.location.uri)
    log = folder / "_delta_log"
    for version in (1, 2):  # version 0 creates the table
        synced.clear()
        table.append(rows(version))
        new = [folder / file.path for file in table.snapshot().files]
        assert log / f"{version:020d}.json" in synced
        assert {log, *(file.parent for file in new)} <= set(synced)
        assert [file for file in new if file in synced] == [max(new, key=os.path.getmtime)]
        entry = synced.index(log / f"{version:020d}.json")
        assert any(path.suffix == ".parquet" for path in synced[:entry])


def test_a_vacuum_of_no_hours_spares_the_file_of_a_commit_under_way(table) -> None:
    table.append(rows(1))
    handle = table.open()
    written = Path(table.location.uri, "part=a", "mine.parquet")
    pq.write_table(rows(2).drop_columns(["part"]), written)
    assert table.vacuum([], 0, dry_run=False) == []
    add = AddAction("part=a/mine.parquet", written.stat().st_size, {"part": "a"}, 0, True, "{}")
    schema = pa.schema(LAYOUT.described_schema())
    handle.create_write_transaction([add], "append", Schema.from_arrow(schema), ["part"])
    assert stored(table) == [1, 2]


def test_a_commit_whose_file_is_gone_is_not_acknowledged(table) -> None:
    for number in range(2):
        table.append(rows(number))
    replaced = table.snapshot().version
    table.compact()
    table.vacuum([], 0, dry_run=False)
    sync_commits(table.location, replaced, replaced)  # its rows are in a newer file
    table.append(rows(7))
    (version, files) = table.snapshot().version, table.snapshot().files
    (mine,) = (file.path for file in files if file.rows == 1)
    Path(table.location.uri, mine).unlink()
    with pytest.raises(StoreError, match=f"{mine} of version {version} .* its rows are lost"):
        sync_commits(table.location, version, version)
