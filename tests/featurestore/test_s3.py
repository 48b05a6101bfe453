"""A store on an object store: the same promises as on a disk."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from featurestore import FeatureStore, open_store
from featurestore.maintenance.evict import evict_parses
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.files import FileGoneError
from featurestore.tables.log import LOG, entry_name
from syntax import fingerprint
from syntax.errors import StoreError

from .s3 import S3
from .writers import Writers, assert_kept, assert_kept_at, raw_parses, wait_for


@pytest.fixture
def remote(s3) -> Iterator[FeatureStore]:
    with open_store(s3.location(), storage_options=s3.options) as opened:
        yield opened


def rows_and_files(store: FeatureStore, prefix: str) -> tuple[int, int]:
    tables = [table for table in inspect_store(store) if table.table.startswith(prefix)]
    return sum(table.rows for table in tables), sum(table.files for table in tables)


def race(s3: S3, writers: Writers, uri: str, mode: str, *shape: int) -> list[str]:
    """Four processes, told where the store is by their environment; what they acknowledged."""
    names = ["shard"] * 4 if mode in ("same", "repeat") else [f"w{n}" for n in range(4)]
    started = [writers.start(mode, uri, name, *shape, env=s3.options) for name in names]
    return [key for writer in started for key in writer.finish()]


@pytest.mark.slow
def test_racing_processes_apply_a_transaction_once(s3, writers, remote) -> None:
    acknowledged = race(s3, writers, remote.uri, "same", 3, 5)
    assert sorted(acknowledged) == sorted(
        fingerprint(["shard", number, row]) for number in range(3) for row in range(5)
    )
    assert raw_parses(remote) == 15


def test_environment_variable_names_the_store(s3, monkeypatch, records) -> None:
    for name, value in s3.options.items():
        monkeypatch.setenv(name, value)
    uri = s3.location()
    with open_store(uri) as store:
        store.parses.put(records[0], durable=True)
        assert store.sql("select key from parses").fetchall() == [(records[0].key,)]
    with open_store(f"{uri}/") as store:
        assert store.uri == uri
        assert store.parses.get_many([records[0].key]) == {records[0].key: records[0]}


@pytest.mark.slow
def test_damage_is_repaired(s3, remote, records) -> None:
    for start in range(0, 40, 10):
        remote.parses.append(records[start : start + 10])
    table = remote.parses.table
    first = table.snapshot(1).files[0].path
    table.location.write(first, table.location.read(first)[:100])
    table.location.child("_delta_log").write(f"{4:020d}.json", b"")
    with open_store(remote.uri, storage_options=s3.options) as store:
        planned = repair_store(store)
        report = repair_store(store, dry_run=False)
        assert planned.to_json() == {**report.to_json(), "is_done": False}
        assert [(one.path, one.rows, one.kept) for one in report.files] == [(first, 10, 0)]
        assert len(report.unlisted["parses"]) == 1
    with open_store(remote.uri, storage_options=s3.options) as store:
        there = store.parses.get_many([record.key for record in records])
        assert len(there) == 20
        assert validate_store(store).problem_count == 0
        store.parses.append([record for record in records if record.key not in there])
        assert list(store.parses.get_many([x.key for x in records]).values()) == records


@pytest.mark.slow
def test_a_repair_is_repeated_after_a_vacuum(s3, remote, records) -> None:
    for start in range(0, 40, 20):
        remote.parses.append(records[start : start + 20])
    remote.compact()
    table = remote.parses.table
    table.location.child(LOG).write(entry_name(1), b"")
    with open_store(remote.uri, storage_options=s3.options) as store:
        assert len(repair_store(store, dry_run=False).log) == 1
        vacuum_store(store, older_than_hours=0)
        assert repair_store(store).is_sound
        assert len(store.parses.get_many([record.key for record in records])) == 40


def test_a_changed_page_of_a_remote_file_is_not_read(s3, remote, records) -> None:
    remote.parses.append(records)
    table = remote.parses.table
    (file,) = table.snapshot().files
    content = bytearray(table.location.read(file.path))
    footer = pq.ParquetFile(pa.BufferReader(bytes(content))).metadata
    column = footer.row_group(0).column(footer.num_columns - 1)
    assert column.path_in_schema == "record"
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    table.location.write(file.path, bytes(content))
    with open_store(remote.uri, storage_options=s3.options) as store:
        assert store.parses.get_many([record.key for record in records]) == {}
        assert validate_store(store).unreadable == 1
        assert [one.kept for one in repair_store(store, dry_run=False).files] == [40]
    with open_store(remote.uri, storage_options=s3.options) as store:
        assert list(store.parses.get_many([x.key for x in records]).values()) == records


def test_a_store_that_cannot_be_reached_is_named(s3, records) -> None:
    with pytest.raises(StoreError, match="s3://no-such-bucket/store"):
        open_store("s3://no-such-bucket/store", storage_options=s3.options).parses.append(records)


@pytest.mark.slow
def test_a_vacuum_shortens_a_log(remote, handle, rows) -> None:
    remote.features.append(handle, rows)
    remote.dataset("pairs").pin("paper")
    ((_, table),) = remote.features.tables()
    log = table.location.child(LOG)
    for version in range(2, 130):
        log.write(entry_name(version), b'{"commitInfo":{"timestamp":0,"operation":"WRITE"}}\n')
        if version == 20:
            table.open().create_checkpoint()
    assert sum(one.log_files for one in vacuum_store(remote, older_than_hours=1)) == 0
    assert sum(one.log_files for one in vacuum_store(remote, older_than_hours=0)) == 20
    assert log.read(entry_name(19)) is None
    assert log.read(entry_name(20)) is not None
    assert len(remote.dataset("pairs", version="paper")) == len(remote.dataset("pairs")) == 100
    with pytest.raises(FileGoneError, match=r"version 5 .* was vacuumed"):
        remote.dataset("pairs", version=5)
    assert validate_store(remote).problem_count == 0
    assert remote.features.append(handle, [replace(rows[0], seq=100, example_key="f" * 32)])


@pytest.mark.slow
def test_datasets_are_read_compacted_pinned_and_vacuumed(
    remote, handle, rows, records, make_record
) -> None:
    remote.parses.append(records)
    remote.parses.append(records[:7])
    for start in (50, 0, 25):
        remote.features.append(handle, rows[start : start + 50])
    first = remote.dataset("pairs")
    first.pin("paper")
    before = [batch["example_id"] for batch in first.stream(seed=3)]
    assert rows_and_files(remote, "datasets") == (150, 3)
    remote.compact()
    assert rows_and_files(remote, "datasets") == (100, 1)
    assert rows_and_files(remote, "parses") == (len(records), 1)
    remote.compact()
    deleted = {table.table: table.files for table in vacuum_store(remote, older_than_hours=0)}
    assert deleted["parses"] >= 2
    assert [batch["example_id"] for batch in first.stream(seed=3)] == before
    for version in (None, "paper"):
        data = remote.dataset("pairs", version=version)
        assert [batch["example_id"] for batch in data.stream(seed=3)] == before
    assert remote.sql("select count(*), max(seq) from examples").fetchall() == [(100, 99)]
    assert remote.sql("select count(*) from parses").fetchall() == [(len(records),)]
    report = validate_store(remote)
    assert (report.parses, report.examples, report.problem_count) == (len(records), 100, 0)
    remote.parses.append([make_record(records[0].parse, number) for number in range(50, 60)])
    assert evict_parses(remote, 0, spare_hours=0).evicted == 10
    assert remote.sql("select count(form[1]) from parses").fetchall() == [(len(records),)]
    assert remote.parses.get_many([records[3].key]) == {records[3].key: records[3]}
    remote.pins.remove("paper")
    assert sum(table.files for table in vacuum_store(remote, older_than_hours=0)) > 0
    assert sum(table.files for table in vacuum_store(remote, older_than_hours=0)) == 0
    with pytest.raises(StoreError, match="'paper' cannot be pinned: 3 of the 3 files"):
        first.pin("paper")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "groups", "size"),
    [("append", 2, 10), ("put", 5, 12), ("durable", 2, 4), ("repeat", 5, 12), ("examples", 3, 12)],
)
def test_four_processes_write_in_every_way(s3, writers, remote, mode, groups, size) -> None:
    acknowledged = race(s3, writers, remote.uri, mode, groups, size)
    assert len(acknowledged) == 4 * groups * size
    if mode == "examples":
        data = remote.dataset("written")
        assert sorted(data.columns(["example_key"])["example_key"].to_pylist()) == sorted(
            acknowledged
        )
    else:
        assert_kept(remote, acknowledged)
    if mode == "append":
        assert raw_parses(remote) == len(acknowledged)


@pytest.mark.slow
def test_compaction_and_vacuum_run_among_writers(s3, writers, remote) -> None:
    started = [writers.start("repeat", remote.uri, "same", 6, 5, env=s3.options) for _ in range(4)]
    while any(writer.status is None for writer in started):
        remote.compact()
        vacuum_store(remote, older_than_hours=1)
        time.sleep(0.05)
    acknowledged = [key for writer in started for key in writer.finish()]
    assert len(acknowledged) == 4 * 6 * 5
    assert_kept(remote, acknowledged)
    remote.compact()
    assert raw_parses(remote) == 6 * 5


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "durable", "repeat"])
def test_killed_writers_lose_nothing_they_acknowledged(s3, writers, mode) -> None:
    chance = random.Random(mode)
    uri, acknowledged = s3.location(), []
    for trial in range(5):
        names = ["same"] * 2 if mode == "repeat" else [f"{trial}-{n}" for n in range(2)]
        started = [writers.start(mode, uri, name, 100_000, 2, env=s3.options) for name in names]
        started.append(writers.start("compact", uri, groups=100_000, env=s3.options))
        wait_for(lambda started=started: started[0].acknowledged)
        time.sleep(chance.uniform(0, 0.5))
        for writer in started:
            writer.kill()
        acknowledged += [key for writer in started for key in writer.finish()]
        assert_kept_at(uri, acknowledged, storage_options=s3.options)
    with open_store(uri, storage_options=s3.options) as store:
        store.compact()
        assert not store.parses.has_repeats()
        assert_kept(store, acknowledged)
        assert validate_store(store).problem_count == 0


@pytest.mark.slow
def test_sql_finds_rows_by_columns_without_bounds(remote, records) -> None:
    """Keys and texts have no statistics in the log; a filter may not take that for "none"."""
    remote.parses.append(records)
    wanted = records[3]
    rows = remote.sql("select text from parses where key = ?", [wanted.key]).fetchall()
    assert rows == [(wanted.parse.text,)]
