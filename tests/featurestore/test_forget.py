"""A vacuum shortens logs and checkpoints; pinned versions and the newest hundred stay readable."""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from featurestore import FeatureStore, Transaction, open_store
from featurestore.maintenance import forget
from featurestore.maintenance.forget import RECENT, forget_files, forget_versions
from featurestore.maintenance.repair import repair_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.delta import Table
from featurestore.tables.files import FileGoneError
from featurestore.tables.pins import Pin
from syntax.errors import StoreError

from .test_delta import rows, stored, table

__all__ = ["table"]

INTERVAL = 100
"""Commits between two checkpoints, by the table library."""


def log_of(table: Table) -> Path:
    return Path(table.location.uri, "_delta_log")


def versions(log: Path, kind: str) -> list[int]:
    return sorted(int(path.name[:20]) for path in log.glob(f"*.{kind}"))


def listed(log: Path, kind: str) -> set[str]:
    """The files that the newest checkpoint adds or removes."""
    actions = pq.read_table(max(log.glob("*.checkpoint.parquet")))
    return {unquote(path) for path in pc.struct_field(actions[kind], "path").to_pylist() if path}


def commit(store: FeatureStore, count: int) -> None:
    """Commits without rows to the dataset, with checkpoints as the table library makes them."""
    table = store.features.tables()[0][1]
    newest = table.snapshot().version
    for version in range(newest + 1, newest + 1 + count):
        entry = '{"commitInfo":{"timestamp":0,"operation":"WRITE"}}\n'
        (log_of(table) / f"{version:020d}.json").write_text(entry)
        if (version + 1) % INTERVAL == 0:
            DeltaTable(table.location.uri).create_checkpoint()


def age(log: Path, until: int, hours: float) -> None:
    """Make entries look older than they are."""
    then = time.time() - 3600 * hours
    for path in log.iterdir():
        if path.name[:20].isdigit() and int(path.name[:20]) < until:
            os.utime(path, (then, then))


def test_a_checkpoint_forgets_files_that_a_vacuum_deleted(table) -> None:
    for number in range(4):
        table.append(rows(number, part="c d/%"), Transaction(f"shard-{number}"))
    table.compact()
    (active,) = {file.path for file in table.snapshot().files}
    deleted = table.vacuum([], 0, dry_run=False)
    assert len(deleted) == 4
    forget_files(table, deleted)
    assert listed(log_of(table), "remove") == set()
    assert listed(log_of(table), "add") == {active}
    assert not table.append(rows(0), Transaction("shard-0"))
    table.append(rows(9, part="c d/%"))
    DeltaTable(table.location.uri).create_checkpoint()
    assert listed(log_of(table), "remove") == set()
    assert stored(table) == [0, 1, 2, 3, 9]
    assert table.vacuum([], 0, dry_run=True) == []


def test_files_that_were_not_deleted_stay_listed(filled) -> None:
    filled.dataset("pairs").pin("paper")
    filled.compact()
    ((_, dataset),) = filled.features.tables()
    vacuum_store(filled, older_than_hours=1)
    assert list(log_of(dataset).glob("*.checkpoint.parquet")) == []
    filled.pins.remove("paper")
    replaced = {file.path for file in dataset.snapshot(4).files}
    dataset.open().create_checkpoint()
    assert listed(log_of(dataset), "remove") == replaced
    vacuum_store(filled, older_than_hours=0)
    assert listed(log_of(dataset), "remove") == set()


@pytest.mark.slow
def test_a_vacuum_forgets_old_versions_except_pinned_ones(filled, handle, rows) -> None:
    first = filled.dataset("pairs")
    ids = first.columns(["example_id"])
    first.pin("paper")
    commit(filled, 2 * INTERVAL)
    extra = replace(rows[0], seq=100, example_id="new", example_key="f" * 32)
    filled.features.append(handle, [extra])
    filled.compact()
    commit(filled, INTERVAL)
    ((_, dataset),) = filled.features.tables()
    log, reader = log_of(dataset), dataset.open(7)
    before = sorted(path.name for path in log.iterdir())
    (promised,) = (t for t in vacuum_store(filled, 0, dry_run=True) if "pairs" in t.table)
    assert sorted(path.name for path in log.iterdir()) == before
    (report,) = (t for t in vacuum_store(filled, 0) if "pairs" in t.table)
    assert report.log_files == promised.log_files == 2 * INTERVAL
    newest = dataset.snapshot().version
    start = versions(log, "json")[0]
    assert (start + 1) % INTERVAL == 0
    assert versions(log, "json") == list(range(start, newest + 1))
    assert start <= newest - RECENT < start + INTERVAL
    assert versions(log, "checkpoint.parquet")[:2] == [first.version, start]
    with open_store(filled.uri) as store:
        assert store.dataset("pairs", version="paper").columns(["example_id"]).equals(ids)
        assert len(store.dataset("pairs", version=newest)) == 101
        assert len(store.dataset("pairs", version=newest - RECENT)) == 101
        with pytest.raises(FileGoneError, match=r"version 7 of .* was vacuumed: read a newer one"):
            store.dataset("pairs", version=7)
        with pytest.raises(FileGoneError, match=r"'late' cannot be pinned: version 8 .* vacuumed"):
            store.pins.add(Pin("late", first.card.path, 8))
        assert validate_store(store).problem_count == 0
        assert all(table.log_files == 0 for table in vacuum_store(store, 0))
    assert dataset.follow(reader).version() == newest
    assert filled.features.append(handle, [replace(extra, example_key="e" * 32, seq=101)])
    filled.pins.remove("paper")
    vacuum_store(filled, older_than_hours=0)
    assert versions(log, "checkpoint.parquet")[0] == start


def test_the_age_of_a_version_counts_from_the_next(filled) -> None:
    commit(filled, 3 * INTERVAL)
    ((_, dataset),) = filled.features.tables()
    log = log_of(dataset)
    assert sum(table.log_files for table in vacuum_store(filled, older_than_hours=5)) == 0
    age(log, INTERVAL, hours=6)
    vacuum_store(filled, older_than_hours=5)
    assert versions(log, "json")[0] == INTERVAL - 1


@pytest.mark.slow
@pytest.mark.parametrize("pinned", [[], [4]])
def test_versions_that_a_killed_vacuum_took_apart_are_gone_by_name(filled, pinned) -> None:
    commit(filled, 3 * INTERVAL)
    ((card, dataset),) = filled.features.tables()
    log = log_of(dataset)
    newest = dataset.snapshot().version
    for version in pinned:
        filled.pins.add(Pin("paper", card.path, version))
        dataset.open(version).create_checkpoint()
    gone = forget_versions(dataset, pinned, time.time(), dry_run=True)
    middle = gone.index(f"{INTERVAL - 1:020d}.checkpoint.parquet")
    assert middle < len(gone) - INTERVAL // 2
    stops = (1, 20, middle, middle + 1, middle + 2, middle + 30)
    for first, stop in pairwise((0, *stops)):
        for name in gone[first:stop]:
            (log / name).unlink()
        start = versions(log, "json")[0]
        whole = versions(log, "checkpoint.parquet")
        readable = next(version for version in whole if version >= start - 1)
        for version in {0, 3, 4, 5, start - 1, start, readable - 1, readable, start + 40, newest}:
            if version in pinned or version >= readable:
                assert sum(file.rows for file in dataset.snapshot(version).files) == 100
            else:
                with pytest.raises(FileGoneError, match=f"version {version} of .* was vacuumed"):
                    dataset.open(version)
                with pytest.raises(FileGoneError, match=r"'late' cannot be pinned: .* vacuumed"):
                    filled.pins.add(Pin("late", card.path, version))
        with open_store(filled.uri) as store:
            assert validate_store(store).problem_count == 0
    vacuum_store(filled, older_than_hours=0)
    assert set(gone).isdisjoint(path.name for path in log.iterdir())
    with open_store(filled.uri) as store:
        assert list(store.pins.all()) == ["paper"] * len(pinned)
        for version in (newest, *pinned):
            assert len(store.dataset("pairs", version=version)) == 100
        assert validate_store(store).problem_count == 0


def test_a_damaged_entry_is_not_taken_for_a_vacuumed_version(filled) -> None:
    commit(filled, 3 * INTERVAL)
    ((_, dataset),) = filled.features.tables()
    vacuum_store(filled, older_than_hours=0)
    log = log_of(dataset)
    start = versions(log, "json")[0]
    (log / f"{start + 1:020d}.json").unlink()
    for version in (start + 1, start + 5):
        with pytest.raises(StoreError, match="cannot read") as raised:
            dataset.open(version)
        assert not isinstance(raised.value, FileGoneError)


@pytest.mark.slow
def test_of_two_vacuums_at_once_both_finish(filled, monkeypatch) -> None:
    commit(filled, 3 * INTERVAL)
    secure, reports = forget._secure, []

    def vacuum_elsewhere(*arguments) -> None:
        secure(*arguments)
        monkeypatch.undo()
        with open_store(filled.uri) as other:
            reports.append(vacuum_store(other, older_than_hours=0))

    monkeypatch.setattr(forget, "_secure", vacuum_elsewhere)
    reports.append(vacuum_store(filled, older_than_hours=0))
    first, second = ([table.log_files for table in report] for report in reports)
    assert first == second
    assert sum(first) > 0
    assert len(filled.dataset("pairs")) == 100
    assert validate_store(filled).problem_count == 0


def test_a_vacuum_forgets_nothing_where_another_forgot_more(filled, monkeypatch) -> None:
    commit(filled, 3 * INTERVAL)
    ((_, dataset),) = filled.features.tables()
    log = log_of(dataset)
    age(log, INTERVAL, hours=6)
    find_start = forget._start

    def vacuum_elsewhere(*arguments) -> int:
        monkeypatch.undo()
        with open_store(filled.uri) as other:
            forget_versions(other.features.tables()[0][1], [], time.time())
        return find_start(*arguments)

    monkeypatch.setattr(forget, "_start", vacuum_elsewhere)
    assert forget_versions(dataset, [], time.time() - 5 * 3600) == []
    assert versions(log, "json")[0] == 2 * INTERVAL - 1


def test_a_vacuum_names_a_pin_whose_version_the_log_forgot(filled) -> None:
    data = filled.dataset("pairs")
    pin = Pin("paper", data.card.path, 2)
    commit(filled, 3 * INTERVAL)
    vacuum_store(filled, older_than_hours=0)
    # As a writer adds it that looked at the version before the vacuum.
    assert filled.pins._append(pin, True, *filled.pins._rows())
    named = r"the pin 'paper' cannot be kept: .* vacuumed.*forget it with `parsebank store unpin"
    with pytest.raises(FileGoneError, match=named):
        vacuum_store(filled, older_than_hours=0)
    filled.pins.remove("paper")
    vacuum_store(filled, older_than_hours=0)


def test_a_torn_checkpoint_stops_a_vacuum_before_it_forgets(filled) -> None:
    commit(filled, 3 * INTERVAL)
    ((_, dataset),) = filled.features.tables()
    log = log_of(dataset)
    os.truncate(sorted(log.glob("*.checkpoint.parquet"))[1], 100)
    before = versions(log, "json")
    with pytest.raises(StoreError, match=re.escape(str(log.parent))):
        vacuum_store(filled, older_than_hours=0)
    assert versions(log, "json") == before
    repair_store(filled, dry_run=False)
    vacuum_store(filled, older_than_hours=0)
    assert len(filled.dataset("pairs")) == 100


def test_a_repair_names_what_an_entry_of_a_short_log_had_added(filled, handle, rows) -> None:
    commit(filled, 3 * INTERVAL)
    vacuum_store(filled, older_than_hours=0)
    extra = [replace(row, seq=100 + row.seq, example_key=f"{row.seq:032x}") for row in rows[:5]]
    filled.features.append(handle, extra)
    ((_, dataset),) = filled.features.tables()
    (new,) = {file.path for file in dataset.snapshot().files if file.rows == 5}
    newest = max(log_of(dataset).glob("*.json"))
    newest.write_bytes(b"")
    for dry_run in (True, False):
        with open_store(filled.uri) as store:
            report = repair_store(store, dry_run)
        assert [(fault.file, fault.action) for fault in report.log] == [(newest.name, "replace")]
        assert report.unlisted == {report.log[0].table: [new]}
    with open_store(filled.uri) as store:
        assert len(store.dataset("pairs")) == 100
        assert validate_store(store).problem_count == 0
        assert store.features.append_new(handle, extra) == 5


def test_a_checkpoint_is_never_written_again(filled) -> None:
    filled.compact()
    ((_, dataset),) = filled.features.tables()
    vacuum_store(filled, older_than_hours=0)
    (checkpoint,) = log_of(dataset).glob("*.checkpoint.parquet")
    before = checkpoint.stat()
    assert dataset.snapshot().version == int(checkpoint.name[:20])
    forget_files(dataset, ["some.parquet"])
    after = checkpoint.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_the_entry_of_a_checkpoint_is_not_missed(filled) -> None:
    filled.compact()
    vacuum_store(filled, older_than_hours=0)
    ((_, dataset),) = filled.features.tables()
    newest = max(log_of(dataset).glob("*.json"))
    assert versions(log_of(dataset), "checkpoint.parquet") == [int(newest.stem)]
    newest.write_bytes(b"")
    assert "its checkpoint says the same" in validate_store(filled).problems[0].message
    report = repair_store(filled, dry_run=False)
    assert [fault.action for fault in report.log] == ["replace"]
    assert report.unlisted == {}
    with open_store(filled.uri) as store:
        assert len(store.dataset("pairs")) == 100
        assert validate_store(store).problem_count == 0
