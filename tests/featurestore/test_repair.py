"""Damage to data files and logs: found, taken out, and what can be read is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from typer.testing import CliRunner, Result

from featurestore import Drop, FeatureStore, ParseRecord, commands, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.repair import Repair, repair_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.log import paths_of, read_actions
from syntax.errors import StoreError

from .conftest import PARSER, TOKENIZER

CHECKPOINT = 3
"""Version of the checkpoint in the tests that have one."""


@pytest.fixture
def whole(filled: FeatureStore, records) -> FeatureStore:
    """The hundred pairs and all of their parses, in several commits."""
    for start in range(0, 40, 8):
        filled.parses.append(records[start : start + 8])
    for fingerprint, kind in ((PARSER, "parser"), (TOKENIZER, "tokenizer")):
        filled.describe(fingerprint, kind, {"name": "toy"})
    return filled


@pytest.fixture
def run() -> Callable[..., Result]:
    app = typer.Typer()
    commands.register(app)
    return lambda *words: CliRunner().invoke(app, ["store", *words])


def repaired(store: FeatureStore) -> Repair:
    with open_store(store.uri) as opened:
        return repair_store(opened, dry_run=False)


def found(store: FeatureStore) -> Repair:
    with open_store(store.uri) as opened:
        return repair_store(opened)


def problems(store: FeatureStore, deep: bool = True) -> list[str]:
    with open_store(store.uri) as opened:
        return [f"{p.table} {p.row} {p.message}" for p in validate_store(opened, deep).problems]


def has_all(store: FeatureStore, records, rows) -> bool:
    with open_store(store.uri) as opened:
        keys = [record.key for record in records]
        parses = list(opened.parses.get_many(keys)) == keys
        names = opened.dataset("pairs").columns(["example_id"])["example_id"].to_pylist()
        return parses and sorted(names) == sorted(row.example_id for row in rows)


def files_of(store: FeatureStore, table: str) -> list[Path]:
    return sorted(Path(store.uri, table).rglob("*.parquet"))


def dataset_of(store: FeatureStore) -> str:
    return next(info.table for info in inspect_store(store) if info.table.startswith("datasets/"))


def entry(store: FeatureStore, number: int, table: str = "parses") -> Path:
    return Path(store.uri, table, "_delta_log", f"{number:020d}.json")


def test_a_sound_store_is_left_alone(whole) -> None:
    before = inspect_store(whole)
    report = repaired(whole)
    assert (report.is_sound, report.needed, report.unchecked) == (True, [], [])
    assert inspect_store(whole) == before


def test_damaged_parse_files_are_taken_out_and_their_texts_named(whole, records, rows) -> None:
    torn, gone, *_ = files_of(whole, "parses")
    lost = {
        key
        for file in (torn, gone)
        for key in pq.read_table(file, columns=["key"])["key"].to_pylist()
    }
    os.truncate(torn, 50)
    gone.unlink()
    report = found(whole)
    assert {(one.table, one.path, one.rows, one.readable) for one in report.files} == {
        ("parses", torn.name, 8, 0),
        ("parses", gone.name, 8, 0),
    }
    assert {one.key: one.text for one in report.needed} == {
        record.key: record.parse.text for record in records if record.key in lost
    }
    assert torn.exists()
    report = repaired(whole)
    assert len(report.files) == 2
    assert Path(torn.parent, "_damaged", torn.name).stat().st_size == 50
    assert found(whole).is_sound
    with open_store(whole.uri) as store:
        store.compact()
        store.parses.append([record for record in records if record.key in lost])
        assert vacuum_store(store, older_than_hours=0)
    assert Path(torn.parent, "_damaged", torn.name).exists()
    assert found(whole).needed == []
    assert problems(whole) == []
    assert has_all(whole, records, rows)


def test_readable_row_groups_of_a_damaged_file_are_kept(whole, handle, rows) -> None:
    card, table = whole.features.find("pairs")
    more = [replace(row, seq=row.seq + 100, example_key=f"{row.seq:032x}") for row in rows[:40]]
    known = set(files_of(whole, dataset_of(whole)))
    table.append(encode_examples(card, "train", "en", more, matrices=True), row_group=10)
    (file,) = set(files_of(whole, dataset_of(whole))) - known
    with file.open("r+b") as opened:
        opened.seek(pq.ParquetFile(file).metadata.row_group(1).column(0).data_page_offset)
        opened.write(b"\xff" * 64)
    (lost,) = found(whole).files
    assert (lost.rows, lost.readable) == (40, 30)
    repaired(whole)
    with open_store(whole.uri) as store:
        assert len(store.dataset("pairs")) == 130
        assert found(store).is_sound
        assert validate_store(store, deep=True).problem_count == 0


def test_rows_without_a_key_are_taken_out(whole, records) -> None:
    file = files_of(whole, "parses")[0]
    damaged = pq.read_table(file)
    keys = [None, "nothex", *damaged["key"].to_pylist()[2:]]
    pq.write_table(damaged.set_column(0, "key", [keys]), file)
    (lost,) = found(whole).files
    assert (lost.rows, lost.readable) == (8, 6)
    repaired(whole)
    with open_store(whole.uri) as store:
        assert len(store.parses.get_many([record.key for record in records])) == 38
    assert problems(whole, deep=False) == []


def test_drops_need_no_key(whole) -> None:
    drops = [
        Drop("pairs", TOKENIZER, "train", "en", "job", f"bad-{n}", "", "example", "no hypothesis")
        for n in range(3)
    ]
    whole.drops.append(drops[:1])
    whole.drops.append(drops[1:])
    assert found(whole).is_sound
    cut(entry(whole, 2, "drops"))
    assert repaired(whole).recovered == {"drops": 2}
    with open_store(whole.uri) as store:
        assert sorted(store.sql("select example_id from drops").fetchall()) == [
            (f"bad-{n}",) for n in range(3)
        ]
        assert found(store).is_sound


def test_a_damaged_file_of_examples_stops_no_repair_of_parses(whole, records) -> None:
    os.truncate(files_of(whole, dataset_of(whole))[0], 10)
    os.truncate(files_of(whole, "parses")[0], 10)
    assert {one.table for one in repaired(whole).files} == {"parses", dataset_of(whole)}
    assert problems(whole, deep=False) == []
    assert len(found(whole).needed) == 8


def clear(file: Path) -> None:
    file.write_bytes(b"")


def zero(file: Path) -> None:
    file.write_bytes(b"\0" * file.stat().st_size)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("damage", [clear, zero, cut, Path.unlink])
@pytest.mark.parametrize("table", ["parses", "dataset"])
def test_rows_of_damaged_entries_come_back(
    whole, records, rows, damage: Callable[[Path], None], number: int, table: str
) -> None:
    name = "parses" if table == "parses" else dataset_of(whole)
    file = entry(whole, number, name)
    if damage is Path.unlink and not file.with_name(f"{number + 1:020d}.json").exists():
        pytest.skip("nothing says that there was a newest entry")
    damage(file)
    message = "missing" if damage is Path.unlink else "the entry is"
    assert any(file.name in one and message in one for one in problems(whole))
    assert any("store repair" in one for one in problems(whole))
    report = found(whole)
    (fault,) = report.log
    assert (fault.table, fault.file, fault.action) == (name, file.name, "replace")
    assert report.unchecked == [name]
    assert repaired(whole).recovered == {name: 8 if table == "parses" else 25}
    assert problems(whole) == []
    assert has_all(whole, records, rows)
    report = repaired(whole)
    assert (report.is_sound, report.recovered) == (True, {})


def lost_join(store: FeatureStore, table: str, change: Callable[[], object]) -> Path:
    """The file of a join that lost its race against a change."""
    handle = DeltaTable(f"{store.uri}/{table}")
    change()
    before = set(files_of(store, table))
    with pytest.raises(CommitFailedError):
        handle.optimize.compact(target_size=1 << 20)
    (file,) = set(files_of(store, table)) - before
    return file


def newest_entry(store: FeatureStore, table: str) -> Path:
    return max(Path(store.uri, table, "_delta_log").glob("*.json"))


def append_and_damage(store: FeatureStore, new: list[ParseRecord]) -> None:
    """Append parses, and empty the entry of that."""
    store.parses.append(new)
    clear(newest_entry(store, "parses"))


def stored(store: FeatureStore, records: list[ParseRecord]) -> list[str]:
    with open_store(store.uri) as opened:
        return list(opened.parses.get_many([record.key for record in records]))


def test_a_deletion_holds_although_a_join_that_lost_has_its_text(store, records, run) -> None:
    for record in records[:6]:
        store.parses.append([record])
    lost_join(store, "parses", lambda: delete_parses(store, [records[0].key]))
    append_and_damage(store, records[6:8])
    done = run("repair", "--apply", "--store", store.uri).stdout
    assert "parses  2 rows of damaged entries are there again" in done
    assert "parses  1 rows stay out: they were deleted, or may have been" in done
    assert stored(store, records) == [record.key for record in records[1:8]]


def test_a_deletion_of_examples_holds_too(whole, handle, records, rows) -> None:
    table, key = dataset_of(whole), records[0].key
    lost_join(whole, table, lambda: delete_parses(whole, [key]))
    using = [row for row in rows if key in row.parse_keys]
    kept = [row for row in rows if row not in using]
    new = replace(kept[0], example_id="new", example_key=f"{1:032x}")
    whole.features.append(handle, [new])
    clear(newest_entry(whole, table))
    report = repaired(whole)
    assert (report.recovered, report.left_out) == ({table: 1}, {table: len(using)})
    assert has_all(whole, records[1:], [*kept, new])


def test_a_deletion_holds_of_what_a_damaged_entry_had_joined(whole, records, rows) -> None:
    whole.compact()
    table = dataset_of(whole)
    joins = [newest_entry(whole, name) for name in ("parses", table)]
    assert all("OPTIMIZE" in one.read_text() for one in joins)
    report = delete_parses(whole, [records[0].key])
    whole.parses.append(records[:1])
    delete_parses(whole, [records[1].key])
    for one in joins:
        clear(one)
    left_out = repaired(whole).left_out
    assert left_out["parses"] == 1
    assert left_out[table] >= report.examples
    assert stored(whole, records) == [record.key for record in [records[0], *records[2:]]]
    with open_store(whole.uri) as opened:
        used = opened.sql("select distinct unnest(parse_keys) from examples").fetchall()
    assert not {(records[0].key,), (records[1].key,)} & set(used)


def test_after_a_killed_vacuum_only_younger_files_come_back(store, records) -> None:
    for record in records[:6]:
        store.parses.append([record])
    copy = lost_join(store, "parses", lambda: delete_parses(store, [records[0].key]))
    content, times = copy.read_bytes(), copy.stat()
    store.parses.table.vacuum([], 0, dry_run=False)
    copy.write_bytes(content)  # the vacuum was killed before it came to this one
    os.utime(copy, ns=(times.st_atime_ns, times.st_mtime_ns))
    append_and_damage(store, records[6:8])
    report = repaired(store)
    assert (report.recovered, report.left_out) == ({"parses": 2}, {"parses": 1})
    assert stored(store, records) == [record.key for record in records[1:8]]


@pytest.mark.parametrize("vacuumed", [True, False])
def test_files_of_a_copy_have_no_age(store, records, vacuumed) -> None:
    for record in records[:4]:
        store.parses.append([record])
    store.compact()
    if vacuumed:
        store.parses.table.vacuum([], 0, dry_run=False)
    append_and_damage(store, records[4:8])
    for file in Path(store.uri).rglob("*"):
        os.utime(file, (file.stat().st_mtime + 10_000,) * 2)
    report = repaired(store)
    assert (report.recovered, report.left_out) == (
        ({}, {"parses": 4}) if vacuumed else ({"parses": 4}, {})
    )


def test_a_file_that_was_taken_out_is_no_deletion(whole, records) -> None:
    for _ in range(2):
        os.truncate(files_of(whole, "parses")[0], 10)
        append_and_damage(whole, records[:8])
        before = stored(whole, records)
        assert repaired(whole).left_out == {}
        assert set(stored(whole, records)) >= {*before, *(record.key for record in records[:8])}


def torn_checkpoint(log: Path) -> None:
    (file,) = log.glob("*.checkpoint.parquet")
    os.truncate(file, 100)


def missing_checkpoint(log: Path) -> None:
    (file,) = log.glob("*.checkpoint.parquet")
    file.unlink()


def cut_hint(log: Path) -> None:
    os.truncate(log / "_last_checkpoint", 5)


@pytest.mark.parametrize("damage", [torn_checkpoint, missing_checkpoint, cut_hint])
def test_entries_stand_in_for_a_damaged_checkpoint(whole, records, rows, damage) -> None:
    DeltaTable(f"{whole.uri}/parses", version=CHECKPOINT).create_checkpoint()
    damage(Path(whole.uri, "parses", "_delta_log"))
    assert "checkpoint" in "".join(problems(whole))
    assert {fault.action for fault in found(whole).log} == {"remove"}
    repaired(whole)
    assert problems(whole) == []
    assert has_all(whole, records, rows)


def test_an_entry_before_a_checkpoint_only_serves_older_versions(whole, records, rows) -> None:
    DeltaTable(f"{whole.uri}/parses", version=CHECKPOINT).create_checkpoint()
    clear(entry(whole, 1))
    (fault,) = repaired(whole).log
    assert fault.action == "none"
    assert f"versions before {CHECKPOINT} cannot all be read" in fault.message
    assert entry(whole, 1).read_bytes() == b""
    assert has_all(whole, records, rows)


def test_without_its_first_version_a_table_is_not_guessed(whole) -> None:
    cut(entry(whole, 0))
    assert found(whole).log[0].action == "restore"
    with pytest.raises(StoreError, match=r"parses: 0{20}\.json: .*Restore the table from a backup"):
        repaired(whole)


def test_errors_of_a_cut_log_have_no_backtrace(whole) -> None:
    cut(entry(whole, 4))
    with open_store(whole.uri) as store, pytest.raises(StoreError) as raised:
        store.sql("from parses")
    assert "unknown" not in str(raised.value)
    assert "clone3" not in str(raised.value)


def test_the_command_changes_nothing_without_apply(whole, run) -> None:
    command = run
    run = lambda *words: command(*words, "--store", whole.uri)  # noqa: E731
    assert (run("repair").exit_code, run("repair").stdout) == (0, "nothing is damaged\n")
    entries = [read_actions(entry(whole, number).read_bytes()) for number in (2, 5)]
    others = {path for actions in entries for path in paths_of(actions, "add")}
    file = next(file for file in files_of(whole, "parses") if file.name not in others)
    os.truncate(file, 10)
    cut(entry(whole, 5))
    shown = run("repair")
    assert shown.exit_code == 1
    assert "the entry is cut or damaged in line" in shown.stdout
    assert "run again with --apply" in shown.stdout
    assert run("validate").exit_code == 1
    done = run("repair", "--apply")
    assert done.exit_code == 0
    assert f"{file.name}  8 rows, 0 can be read" in done.stdout
    assert "parses  8 rows of damaged entries are there again" in done.stdout
    assert "8 parses that examples refer to are not in the store" in done.stdout
    clear(entry(whole, 2))
    recovered = run("repair", "--apply", "--json")
    assert json.loads(recovered.stdout)["recovered"] == {"parses": 8}
    again = run("repair", "--json")
    assert again.exit_code == 0
    assert len(json.loads(again.stdout)["needed"]) == 8
