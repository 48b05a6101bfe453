"""Repeated rows go with a compaction, unused files with a vacuum, pinned versions with neither."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pytest

from featurestore import open_store
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.delta import Table
from featurestore.tables.files import FileGoneError
from featurestore.tables.pins import Pin
from featurestore.tables.schema import PINS
from syntax.errors import SpecError, StoreError, UnknownDatasetError

from .streams import ids


def raw_rows(store, table: str) -> int:
    return sum(one.rows for one in inspect_store(store) if one.table.startswith(table))


def parquet_files(store) -> set[Path]:
    return set(Path(store.uri).rglob("*.parquet")) - set(Path(store.uri).rglob("_delta_log/*"))


def test_compaction_keeps_one_row_of_each_parse(store, records) -> None:
    store.parses.append(records)
    store.parses.append(records[:7])
    store.parses.append(records[5:9])
    assert store.parses.has_repeats()
    before = store.parses.get_many([record.key for record in records])
    store.compact()
    assert not store.parses.has_repeats()
    assert raw_rows(store, "parses") == len(records)
    with open_store(store.uri) as again:
        assert again.parses.get_many([record.key for record in records]) == before


def test_compaction_keeps_the_row_that_streams_read(filled, handle, make_handle, rows) -> None:
    later = [replace(row, seq=row.seq + 500) for row in rows[10:20]]
    filled.features.append(handle, later)
    filled.features.append(make_handle(split="dev"), rows[10:12])
    before = ids(filled.dataset("pairs", split="train").stream(seed=3))
    assert raw_rows(filled, "datasets") == 112
    filled.compact()
    assert raw_rows(filled, "datasets") == 102
    data = filled.dataset("pairs", split="train")
    assert ids(data.stream(seed=3)) == before
    assert len(filled.dataset("pairs", split="dev")) == 2
    assert filled.sql("select max(seq) from examples").fetchall() == [(99,)]


def test_a_vacuum_respects_pins(filled, rows, handle) -> None:
    first = filled.dataset("pairs")
    first.pin("paper", by="me")
    names = ids(first.stream(shuffle=False))
    filled.compact()
    unpinned = filled.dataset("pairs").version
    extra = replace(rows[0], seq=100, example_id="new", example_key="f" * 32)
    filled.features.append(handle, [extra])
    filled.compact()
    newest = filled.dataset("pairs")
    deleted = {t.table: t for t in vacuum_store(filled, older_than_hours=0)}
    (dataset,) = (t for name, t in deleted.items() if name.startswith("datasets/"))
    assert dataset.files > 0
    assert dataset.size > 0
    assert dataset.kept == (first.version,)
    pinned = filled.dataset("pairs", version="paper")
    assert pinned.version == first.version
    assert ids(pinned.stream(shuffle=False)) == names
    assert len(filled.dataset("pairs")) == len(newest) == 101
    with pytest.raises(StoreError, match="was vacuumed"):
        filled.dataset("pairs", version=unpinned)
    filled.pins.remove("paper")
    vacuum_store(filled, older_than_hours=0)
    with pytest.raises(StoreError, match="was vacuumed"):
        filled.dataset("pairs", version=first.version)


def test_a_version_that_was_vacuumed_cannot_be_pinned(filled) -> None:
    old = filled.dataset("pairs")
    filled.compact()
    vacuum_store(filled, older_than_hours=0)
    with pytest.raises(StoreError, match="'paper' cannot be pinned: 4 of the 4 files of version 4"):
        old.pin("paper")
    with pytest.raises(StoreError, match="there is no version 99"):
        filled.pins.add(Pin("paper", old.card.path, 99))
    assert filled.pins.all() == {}


@pytest.mark.parametrize("name", ["", " ", "3"])
def test_pin_name_must_not_be_a_version(filled, name) -> None:
    with pytest.raises(SpecError, match="a pin cannot be called"):
        filled.dataset("pairs").pin(name)


def test_vacuum_keeps_recently_replaced_files(filled) -> None:
    old = filled.dataset("pairs")
    filled.compact()
    before = parquet_files(filled)
    assert all(table.files == 0 for table in vacuum_store(filled))
    assert parquet_files(filled) == before
    assert len(ids(old.stream())) == 100


def test_a_vacuum_deletes_what_its_dry_run_says_once(filled) -> None:
    filled.compact()
    before = parquet_files(filled)
    promised = sum(t.files for t in vacuum_store(filled, older_than_hours=0, dry_run=True))
    assert parquet_files(filled) == before
    assert promised == sum(t.files for t in vacuum_store(filled, older_than_hours=0))
    assert len(before) - len(parquet_files(filled)) == promised > 0
    assert sum(t.files for t in vacuum_store(filled, older_than_hours=0)) == 0
    assert sum(t.size for t in vacuum_store(filled, 0, dry_run=True)) == 0


def test_vacuum_deletes_old_files_that_no_commit_refers_to(filled) -> None:
    table = Path(filled.features.tables()[0][1].location.uri)
    orphans = [table / "split=train" / "lang=en" / f"part-{n}.parquet" for n in range(2)]
    for orphan in orphans:
        orphan.write_bytes(b"half a file")
    week_ago = time.time() - 8 * 24 * 3600
    os.utime(orphans[0], (week_ago, week_ago))
    vacuum_store(filled)
    assert [orphan.exists() for orphan in orphans] == [False, True]


def test_pins_are_listed_and_forgotten(filled) -> None:
    data = filled.dataset("pairs")
    data.pin("one")
    data.pin("one")
    data.pin("two", by="run 7")
    table = data.card.path
    assert filled.pins.all() == {
        "one": Pin("one", table, data.version),
        "two": Pin("two", table, data.version, "run 7"),
    }
    filled.compact()
    with pytest.raises(SpecError, match="'one' is version"):
        filled.dataset("pairs").pin("one")
    assert filled.pins.remove("one").version == data.version
    assert list(filled.pins.all()) == ["two"]
    filled.dataset("pairs").pin("one")
    assert filled.dataset("pairs", version="one").version == data.version + 1
    with pytest.raises(UnknownDatasetError, match="'three'"):
        filled.pins.remove("three")


def write_ahead(store, pin: Pin, kept: bool, hours: int = 1) -> None:
    """Write a change of a pin as a machine does whose clock runs ahead of ours."""
    at = time.time_ns() + hours * 3600 * 10**9
    row = {**asdict(pin), "kept": kept, "at": at}
    store.pins.table.append(pa.Table.from_pylist([row], schema=PINS.schema))


def test_last_change_of_a_pin_wins_even_if_the_clock_goes_back(filled) -> None:
    pin = Pin("paper", filled.dataset("pairs").card.path, filled.dataset("pairs").version)
    write_ahead(filled, pin, kept=True)
    write_ahead(filled, pin, kept=False, hours=2)
    filled.pins.add(pin)
    assert filled.pins.all() == {"paper": pin}
    filled.compact()
    vacuum_store(filled, older_than_hours=0)
    assert len(filled.dataset("pairs", version="paper")) == 100
    assert filled.pins.remove("paper") == pin
    assert filled.pins.all() == {}


def test_concurrent_pins_are_serialised(filled) -> None:
    table, version = filled.dataset("pairs").card.path, filled.dataset("pairs").version
    start = threading.Barrier(4)

    def add(number: int) -> int | None:
        with open_store(filled.uri) as store:
            start.wait()
            try:
                store.pins.add(Pin("paper", table, version - number))
            except SpecError:
                return None
            return version - number

    with ThreadPoolExecutor(4) as threads:
        (winner,) = (won for won in threads.map(add, range(4)) if won is not None)
    assert filled.pins.get("paper").version == winner


def test_pins_compete_also_while_their_table_is_compacted(filled) -> None:
    data = filled.dataset("pairs")
    data.pin("first")
    filled.pins.remove("first")
    with open_store(filled.uri) as other:
        early = filled.pins._rows()
        newest = filled.pins.table.snapshot().version
        filled.pins.table.compact()
        assert filled.pins.table.snapshot().version > newest
        late = other.pins._rows()
        older, newer = (Pin("paper", data.card.path, data.version - n) for n in (1, 0))
        taken = [filled.pins._append(older, True, *early), other.pins._append(newer, True, *late)]
    assert taken == [True, False]
    assert filled.pins.all() == {"paper": older}


def test_a_pin_made_while_a_vacuum_is_at_another_table_is_kept(filled, monkeypatch) -> None:
    old = filled.dataset("pairs")
    filled.compact()
    parses = filled.parses.table
    vacuum = parses.vacuum

    def pin_and_vacuum(*arguments, **options):
        old.pin("paper")
        return vacuum(*arguments, **options)

    monkeypatch.setattr(parses, "vacuum", pin_and_vacuum)
    kept = {table.table: table.kept for table in vacuum_store(filled, older_than_hours=0)}
    assert kept[f"datasets/{old.card.path}"] == (old.version,)
    assert len(filled.dataset("pairs", version="paper").columns(["example_id"])) == 100
    assert validate_store(filled).problem_count == 0


def test_a_pin_whose_files_a_vacuum_deletes_meanwhile_is_taken_back(filled, monkeypatch) -> None:
    old, append = filled.dataset("pairs"), filled.pins.table.append
    filled.compact()
    vacuumed = []

    def vacuum_elsewhere(*arguments) -> bool:
        if not vacuumed:
            with open_store(filled.uri) as other:
                vacuumed.append(sum(one.files for one in vacuum_store(other, older_than_hours=0)))
        return append(*arguments)

    monkeypatch.setattr(filled.pins.table, "append", vacuum_elsewhere)
    with pytest.raises(FileGoneError, match="'paper' cannot be pinned: 4 of the 4 files"):
        old.pin("paper")
    assert vacuumed == [4]
    assert filled.pins.all() == {}
    vacuum_store(filled, older_than_hours=0)


def test_a_vacuum_names_a_pin_that_it_has_just_overtaken(filled, monkeypatch) -> None:
    old = filled.dataset("pairs")
    filled.compact()
    vacuum = Table.vacuum

    def pin_and_vacuum(table, keep, hours, dry_run):
        if old.card.path in table.location.uri and not dry_run:
            old.pin("paper")
        return vacuum(table, keep, hours, dry_run)

    monkeypatch.setattr(Table, "vacuum", pin_and_vacuum)
    named = r"the pin 'paper' cannot be kept: 4 of the 4 files .* `parsebank store unpin paper`"
    with pytest.raises(FileGoneError, match=named):
        vacuum_store(filled, older_than_hours=0)
    monkeypatch.undo()
    for dry_run in (True, False):
        with pytest.raises(FileGoneError, match=named):
            vacuum_store(filled, older_than_hours=0, dry_run=dry_run)
    filled.pins.remove("paper")
    vacuum_store(filled, older_than_hours=0)


def test_a_pin_of_another_dataset_is_refused(filled, make_handle, rows) -> None:
    filled.features.append(make_handle(name="others"), rows[:3])
    filled.dataset("others").pin("mine")
    with pytest.raises(SpecError, match="the pin 'mine' is of others/"):
        filled.dataset("pairs", version="mine")


@pytest.mark.parametrize("hours", [-1, float("inf"), float("nan")])
def test_vacuum_refuses_invalid_ages(store, hours) -> None:
    with pytest.raises(SpecError, match="must not be negative"):
        vacuum_store(store, older_than_hours=hours)


def test_commands_pin_and_vacuum(filled, run) -> None:
    assert "paper: version" in run("pin", "paper", "--dataset", "pairs", "--by", "me").output
    (pin,) = json.loads(run("pins", "--json").output)
    assert (pin["name"], pin["by"]) == ("paper", "me")
    tables = json.loads(run("vacuum", "--json", "--dry-run").output)
    assert all(table["files"] == 0 for table in tables)
    assert "does no more" in run("unpin", "paper").output
    assert json.loads(run("pins", "--json").output) == []
