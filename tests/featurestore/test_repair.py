"""Damage to data files and logs: found, taken out, and what can be read is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from featurestore import FeatureStore, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.evict import evict_parses
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.repair import Repair, repair_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.delta import Table
from featurestore.tables.log import paths_of, read_actions
from syntax.errors import StoreError

from .conftest import PARSER, TOKENIZER
from .damages import empty, spoil, tear, zero, zero_pages

CHECKPOINT = 3
"""Version of the checkpoint in the tests that have one."""


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
    assert (report.is_sound, report.needed, report.unlisted) == (True, [], {})
    assert inspect_store(whole) == before


def same_as_dry_run(store: FeatureStore) -> Repair:
    """What a repair did, which must be what its dry run had said."""
    planned, done = found(store), repaired(store)
    assert planned.to_json() == {**done.to_json(), "is_done": False}
    return done


def test_damaged_parse_files_are_taken_out_and_their_texts_named(whole, records, rows) -> None:
    torn, gone, *_ = files_of(whole, "parses")
    lost = {key for file in (torn, gone) for key in keys_of(file)}
    os.truncate(torn, 50)
    gone.unlink()
    report = same_as_dry_run(whole)
    assert {(one.table, one.path, one.rows, one.kept) for one in report.files} == {
        ("parses", torn.name, 8, 0),
        ("parses", gone.name, 8, 0),
    }
    assert {one.key: one.text for one in report.needed} == {
        record.key: record.parse.text for record in records if record.key in lost
    }
    assert found(whole).is_sound
    with open_store(whole.uri) as store:
        store.compact()
        store.parses.append([record for record in records if record.key in lost])
        assert vacuum_store(store, older_than_hours=0)
    assert not torn.exists()
    assert found(whole).needed == []
    assert problems(whole) == []
    assert has_all(whole, records, rows)


def keys_of(file: Path) -> list[str]:
    return pq.read_table(file, columns=["key"])["key"].to_pylist()


@pytest.mark.slow_cases
@pytest.mark.parametrize("column", ["record", "form", "head", "text", "parser", "misc"])
def test_a_parse_comes_back_from_its_other_copy(whole, records, rows, column) -> None:
    spoil(files_of(whole, "parses")[0], column)
    (file,) = same_as_dry_run(whole).files
    assert (file.rows, file.kept, file.lost) == (8, 8, [])
    assert has_all(whole, records, rows)
    assert problems(whole) == []
    with open_store(whole.uri) as store:
        assert list(store.parses.get_many([one.key for one in records]).values()) == records


@pytest.mark.parametrize("columns", [("key",), ("record", "form")])
def test_a_parse_without_a_whole_copy_is_lost_and_named(whole, records, columns) -> None:
    file = files_of(whole, "parses")[0]
    keys = keys_of(file)
    for column in columns:
        spoil(file, column)
    report = same_as_dry_run(whole)
    (lost,) = report.files
    assert (lost.kept, lost.lost) == (0, [] if columns == ("key",) else keys)
    assert {one.key for one in report.needed} == set(keys)
    with open_store(whole.uri) as store:
        assert not store.parses.get_many(keys)
        store.parses.append([record for record in records if record.key in keys])
    assert problems(whole) == []


def test_two_copies_that_differ_are_both_left(whole) -> None:
    """The log says what the bytes were; nothing says which of the two is right."""
    file = files_of(whole, "parses")[0]
    other = pq.read_table(file)
    changed = [text.upper() for text in other["text"].to_pylist()]
    other = other.set_column(other.column_names.index("text"), "text", [changed])
    pq.write_table(other, file)
    (lost,) = same_as_dry_run(whole).files
    assert (lost.kept, len(lost.lost)) == (0, 8)


@pytest.mark.slow_cases
@pytest.mark.parametrize("column", ["label", "example_id", "input_ids", "seq", "parse_keys"])
def test_examples_come_back_with_the_backfill(whole, handle, records, rows, column) -> None:
    file = files_of(whole, dataset_of(whole))[0]
    spoil(file, column)
    with open_store(whole.uri) as store, pytest.raises(StoreError, match=file.name):
        store.dataset("pairs").columns([column])
    assert any(file.name in problem for problem in problems(whole, deep=False))
    (lost,) = same_as_dry_run(whole).files
    assert (lost.rows, lost.kept) == (25, 0)
    assert len(lost.lost) == (0 if column == "example_id" else 25)
    assert problems(whole) == []
    with open_store(whole.uri) as store:
        assert len(store.dataset("pairs")) == 75
        assert store.features.append_new(handle, rows) == 25
    assert has_all(whole, records, rows)


def lengthen(file: Path) -> None:
    with file.open("ab") as opened:
        opened.write(b"PAR1")


@pytest.mark.slow
@pytest.mark.parametrize("harm", [tear, zero_pages, lengthen, Path.unlink])
def test_damaged_files_of_every_table_are_found_and_taken_out(every_table, run, harm) -> None:
    assert run("validate").exit_code == 0
    tables = {"states", "drops", "pins", "fingerprints"}
    files = {next(iter(files_of(every_table, table))).name: table for table in tables}
    for file in Path(every_table.uri).rglob("*.parquet"):
        if file.name in files:
            harm(file)
    with open_store(every_table.uri) as store:
        report = validate_store(store)
    shown = run("validate")
    assert shown.exit_code == 1
    assert all(name in shown.stdout for name in files)
    lost = same_as_dry_run(every_table).files
    assert report.unreadable == len(lost) == 4
    named = {(one.table, one.row) for one in report.problems}
    assert named == {(one.table, one.path) for one in lost}
    assert {one.table.split("/")[0] for one in lost} == tables
    assert all(one.kept == 0 for one in lost)


def test_a_text_is_not_looked_for_past_a_damaged_file(whole, records) -> None:
    file = files_of(whole, "parses")[0]
    keys = keys_of(file)
    spoil(file, "text")
    texts = [record.parse.text for record in records if record.key in keys]
    with open_store(whole.uri) as store, pytest.raises(StoreError, match=file.name):
        store.parses.keys_of_texts(texts[:1])
    repaired(whole)
    with open_store(whole.uri) as store:
        assert set(store.parses.keys_of_texts(texts)) >= set(keys)


def test_a_file_in_the_place_of_another_is_found(whole) -> None:
    first, second, *_ = files_of(whole, dataset_of(whole))
    first.write_bytes(second.read_bytes())
    with open_store(whole.uri) as store, pytest.raises(StoreError, match=first.name):
        store.dataset("pairs").columns(["label"])
    assert [Path(one.path).name for one in same_as_dry_run(whole).files] == [first.name]


@pytest.mark.parametrize(
    ("view", "harm"),
    [
        ("parses", partial(spoil, column="record")),
        ("examples", partial(spoil, column="label")),
        ("drops", tear),
        ("fingerprints", tear),
    ],
)
def test_sql_leaves_a_damaged_file_out_and_names_it(every_table, view, harm, caplog) -> None:
    file = files_of(every_table, {"examples": "datasets"}.get(view, view))[0]
    rows = pq.ParquetFile(file).metadata.num_rows
    whole = len(every_table.sql(f"from {view}").fetchall())
    harm(file)
    with open_store(every_table.uri) as store:
        assert store.sql("select 1").fetchall() == [(1,)]
        assert file.name not in caplog.text
        assert len(store.sql(f"from {view}").fetchall()) == whole - rows
    assert f"{file.name} in" in caplog.text
    assert f"its {rows} rows are left out" in caplog.text


def test_a_damaged_file_of_examples_stops_no_repair_of_parses(whole, records) -> None:
    tear(files_of(whole, dataset_of(whole))[0])
    tear(files_of(whole, "parses")[0])
    assert {one.table for one in same_as_dry_run(whole).files} == {"parses", dataset_of(whole)}
    assert problems(whole, deep=False) == []


def test_keys_and_ids_in_a_damaged_file_count_as_missing(whole, handle, rows) -> None:
    spoil(files_of(whole, dataset_of(whole))[0], "example_id")
    part = ("pairs", TOKENIZER, "train", "en")
    with open_store(whole.uri) as store:
        assert len(store.features.existing(*part, [row.example_key for row in rows])) == 75
        assert sum(map(len, store.features.example_ids(*part, PARSER))) == 75


def cut_end(file: Path) -> None:
    """The end of the last line: what the others add can still be read."""
    with file.open("a") as entry:
        entry.write('{"txn":')


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("damage", [empty, zero, tear, cut_end, Path.unlink])
@pytest.mark.parametrize("table", ["parses", "dataset"])
def test_files_of_a_damaged_entry_are_named(
    whole, handle, records, rows, damage: Callable[[Path], None], number: int, table: str
) -> None:
    name = "parses" if table == "parses" else dataset_of(whole)
    file = entry(whole, number, name)
    (added,) = paths_of(read_actions(file.read_bytes()), "add")
    is_newest = not file.with_name(f"{number + 1:020d}.json").exists()
    damage(file)
    if damage is Path.unlink and is_newest:
        assert problems(whole) == []
        with open_store(whole.uri) as store:
            assert validate_store(store).unlisted == 1
        assert found(whole).unlisted == {name: [added]}
        return
    message = "missing" if damage is Path.unlink else "the entry is"
    assert any(file.name in one and message in one for one in problems(whole))
    assert any("store repair" in one for one in problems(whole))
    report = same_as_dry_run(whole)
    (fault,) = report.log
    assert (fault.table, fault.file, fault.action) == (name, file.name, "replace")
    assert report.unlisted == {name: [added]}
    assert repaired(whole).unlisted == {name: [added]}
    assert found(whole).is_sound
    with open_store(whole.uri) as store:
        there = store.parses.get_many([record.key for record in records])
        store.parses.append([record for record in records if record.key not in there])
        store.features.append_new(handle, rows)
    assert problems(whole) == []
    assert has_all(whole, records, rows)


def test_a_deletion_holds_of_what_a_damaged_entry_had_joined(whole, records) -> None:
    whole.compact()
    table = dataset_of(whole)
    joins = [max(Path(whole.uri, x, "_delta_log").glob("*.json")) for x in ("parses", table)]
    report = delete_parses(whole, [records[0].key])
    whole.parses.append(records[:1])
    delete_parses(whole, [records[1].key])
    for one in joins:
        tear(one)
    done = same_as_dry_run(whole)
    assert done.deleted["parses"] == [records[1].key]
    assert len(done.deleted[table]) >= report.examples
    with open_store(whole.uri) as store:
        there = store.parses.get_many([record.key for record in records])
        used = store.sql("select distinct unnest(parse_keys) from examples").fetchall()
    assert list(there) == [record.key for record in (records[0], *records[2:])]
    assert not {(records[0].key,), (records[1].key,)} & set(used)
    assert found(whole).is_sound


def test_a_repair_that_was_killed_is_repeated(whole, monkeypatch) -> None:
    empty(entry(whole, 5))
    tear(files_of(whole, dataset_of(whole))[0])
    planned = found(whole)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Table, "swap", killed)
        with pytest.raises(KeyboardInterrupt):
            repaired(whole)
    report = repaired(whole)
    assert (report.files, report.unlisted) == (planned.files, planned.unlisted)
    assert found(whole).is_sound


def torn_checkpoint(log: Path) -> None:
    (file,) = log.glob("*.checkpoint.parquet")
    os.truncate(file, 100)


def missing_checkpoint(log: Path) -> None:
    (file,) = log.glob("*.checkpoint.parquet")
    file.unlink()


def other_path(log: Path) -> None:
    """A bit of a path in a checkpoint, of which all entries are there."""
    (file,) = log.glob("*.checkpoint.parquet")
    actions = pq.read_table(file)
    rows = actions.to_pylist()
    added = next(row["add"] for row in rows if row["add"])
    added["path"] = "x" + added["path"][1:]
    pq.write_table(pa.Table.from_pylist(rows, actions.schema), file)


def cut_hint(log: Path) -> None:
    os.truncate(log / "_last_checkpoint", 5)


@pytest.mark.slow_cases
@pytest.mark.parametrize("damage", [torn_checkpoint, missing_checkpoint, other_path, cut_hint])
def test_entries_stand_in_for_a_damaged_checkpoint(whole, records, rows, damage) -> None:
    DeltaTable(f"{whole.uri}/parses", version=CHECKPOINT).create_checkpoint()
    damage(Path(whole.uri, "parses", "_delta_log"))
    assert "checkpoint" in "".join(problems(whole))
    assert {fault.action for fault in same_as_dry_run(whole).log} == {"remove"}
    assert problems(whole) == []
    assert has_all(whole, records, rows)


def test_versions_before_a_checkpoint_go_with_their_damaged_entry(whole, records, rows) -> None:
    DeltaTable(f"{whole.uri}/parses", version=CHECKPOINT).create_checkpoint()
    empty(entry(whole, 1))
    (problem,) = problems(whole)
    assert f"versions before {CHECKPOINT} cannot all be read" in problem
    (fault,) = same_as_dry_run(whole).log
    assert fault.action == "forget"
    assert not entry(whole, 1).exists()
    assert problems(whole) == []
    assert found(whole).is_sound
    assert has_all(whole, records, rows)


def test_rows_of_files_that_were_joined_before_a_log_starts_are_kept(whole, records, rows) -> None:
    whole.compact()
    joined = whole.parses.table.snapshot().version
    DeltaTable(f"{whole.uri}/parses").create_checkpoint()
    empty(entry(whole, joined - 1))
    report = same_as_dry_run(whole)
    assert ([fault.action for fault in report.log], report.deleted) == (["forget"], {})
    assert entry(whole, joined).exists()
    assert found(whole).is_sound
    assert has_all(whole, records, rows)


@pytest.mark.slow
def test_a_pin_that_needs_a_damaged_entry_is_named(whole) -> None:
    data = whole.dataset("pairs", version=2)
    data.pin("paper")
    table = dataset_of(whole)
    DeltaTable(f"{whole.uri}/{table}", version=CHECKPOINT).create_checkpoint()
    tear(entry(whole, 2, table))
    for work in (vacuum_store, lambda store: evict_parses(store, 0)):
        with open_store(whole.uri) as store, pytest.raises(StoreError, match="unpin paper"):
            work(store)
    repaired(whole)
    assert any("paper" in problem for problem in problems(whole))
    with open_store(whole.uri) as store:
        store.pins.remove("paper")
    assert problems(whole) == []


def test_a_log_is_cut_although_pins_are_damaged(whole) -> None:
    whole.dataset("pairs").pin("paper")
    table = dataset_of(whole)
    DeltaTable(f"{whole.uri}/{table}", version=CHECKPOINT).create_checkpoint()
    empty(entry(whole, 1, table))
    tear(files_of(whole, "pins")[0])
    report = same_as_dry_run(whole)
    assert [fault.action for fault in report.log] == ["forget"]
    assert [lost.table for lost in report.files] == ["pins"]
    assert found(whole).is_sound


def test_a_pin_that_has_a_damaged_file_is_what_an_eviction_asks_to_forget(whole) -> None:
    whole.dataset("pairs").pin("paper")
    tear(files_of(whole, dataset_of(whole))[0])
    repaired(whole)
    with open_store(whole.uri) as store:
        with pytest.raises(StoreError, match="forget its pin"):
            evict_parses(store, 0, spare_hours=0)
        store.pins.remove("paper")
        evict_parses(store, 0, spare_hours=0)


def test_without_its_first_version_a_table_is_not_guessed(whole) -> None:
    tear(entry(whole, 0))
    assert found(whole).log[0].action == "restore"
    with pytest.raises(StoreError, match=r"parses: 0{20}\.json: .*Restore the table from a backup"):
        repaired(whole)


def test_errors_of_a_cut_log_have_no_backtrace(whole) -> None:
    tear(entry(whole, 4))
    with open_store(whole.uri) as store, pytest.raises(StoreError) as raised:
        store.sql("from parses")
    assert "unknown" not in str(raised.value)
    assert "clone3" not in str(raised.value)


def test_the_command_changes_nothing_without_apply(whole, run) -> None:
    assert (run("repair").exit_code, run("repair").stdout) == (0, "nothing is damaged\n")
    added = paths_of(read_actions(entry(whole, 5).read_bytes()), "add")
    file = next(file for file in files_of(whole, "parses") if file.name not in added)
    tear(file)
    tear(entry(whole, 5))
    shown = run("repair")
    assert shown.exit_code == 1
    assert "the entry is cut or damaged in line" in shown.stdout
    assert "run again with --apply" in shown.stdout
    assert run("validate").exit_code == 1
    done = run("repair", "--apply")
    assert done.exit_code == 0
    assert f"{file.name}  8 rows, 0 are kept" in done.stdout
    assert "8 rows are lost until the backfill runs again" in done.stdout
    assert "16 parses that examples refer to are not in the store" in done.stdout
    assert "parses  1 data files are of no version" in done.stdout
    assert shown.stdout.replace("run again with --apply to repair", "repaired") == done.stdout
    again = run("repair", "--json")
    assert again.exit_code == 0
    assert len(json.loads(again.stdout)["needed"]) == 16
