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
from typer.testing import CliRunner

from featurestore import Drop, FeatureStore, commands, open_store
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.repair import Repair, repair_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.examples import encode_examples
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


def test_the_command_changes_nothing_without_apply(whole) -> None:
    app = typer.Typer()
    commands.register(app)
    run = lambda *words: CliRunner().invoke(app, ["store", *words, "--store", whole.uri])  # noqa: E731
    assert (run("repair").exit_code, run("repair").stdout) == (0, "nothing is damaged\n")
    file = files_of(whole, "parses")[0]
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
    again = run("repair", "--json")
    assert again.exit_code == 0
    assert len(json.loads(again.stdout)["needed"]) == 8
