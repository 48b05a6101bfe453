"""A store of format 1: read as it is, refused to writers, migrated, whenever that is killed."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer
from deltalake import DeltaTable, write_deltalake
from typer.testing import CliRunner

from featurestore import FeatureStore, open_store
from featurestore.commands import register
from featurestore.maintenance.evict import evict_parses
from featurestore.maintenance.inspect import inspect_store
from featurestore.maintenance.migrate import migrate_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.packed import unpack_record
from featurestore.tables.encode.parses import encode_parses
from featurestore.tables.root import FORMAT
from featurestore.tables.schema import PARSE_COLUMNS
from syntax.errors import StoreError, StoreFormatError

FIXTURE = Path(__file__).parents[1] / "fixtures" / "store-format-1"
DATASET = "datasets/pairs/toy-31953ecc108a"
TOKENS = ("token_counts", "token_offsets")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return shutil.copytree(FIXTURE, tmp_path / "old")


def formats(store: FeatureStore) -> dict[str, int]:
    return {table.table: table.format for table in inspect_store(store)}


def marker(folder: Path) -> int:
    return json.loads((folder / "parsebank.json").read_text())["format"]


def epoch(store: FeatureStore, version: int | str | None = None) -> list[tuple]:
    data = store.dataset("pairs", version=version)
    batches = list(data.stream(batch_size=4, seed=3))
    return [
        (
            batch["example_id"],
            batch["input_ids"].tolist(),
            batch["distance"].tolist(),
            batch["note"],
        )
        for batch in batches
    ]


def assert_whole(store: FeatureStore, records) -> None:
    assert store.parses.get_many([record.key for record in records]) == {
        record.key: record for record in records
    }
    for record in records[:3]:
        assert store.parses.get_many([record.key]) == {record.key: record}
    packed = store.parses.get_packed([record.key for record in records])
    assert [unpack_record(*one) for one in packed.items()] == records
    assert (len(store.dataset("pairs")), len(store.dataset("pairs", version="paper"))) == (20, 10)
    assert store.dataset("pairs").report == {"empty_text": 1}
    assert store.sql("select count(*) from parses").fetchall() == [(40,)]
    assert "record" not in store.sql("from parses").columns
    assert set(TOKENS) <= set(store.sql("from examples").columns)


def test_store_of_an_older_format_is_readable(old, records) -> None:
    with open_store(old) as store:
        assert_whole(store, records)
        assert formats(store)["parses"] == formats(store)[DATASET] == 1
        tokens = store.dataset("pairs").columns(list(TOKENS))
        assert [tokens[name].null_count for name in TOKENS] == [20, 20]
        report = validate_store(store, deep=True)
        assert (report.parses, report.unpacked, report.examples) == (40, 40, 20)
        assert report.problem_count == 0, report.problems
    assert marker(old) == 1


def test_store_of_an_older_format_refuses_new_rows(old, records, rows, make_handle) -> None:
    with open_store(old) as store:
        for change in (
            lambda: store.parses.append(records[:1]),
            lambda: store.features.append(make_handle(), rows[30:31]),
            lambda: store.parses.put(records[0]),
            lambda: store.parses.offer(records[0]),
            store.parses.check,
            store.compact,
            lambda: evict_parses(store, 0, spare_hours=0),
        ):
            with pytest.raises(StoreFormatError, match="parsebank store migrate --store"):
                change()
        store.dataset("pairs").pin("second")  # runs pin what they read, old or not
        vacuum_store(store, older_than_hours=0)
        assert_whole(store, records)


def test_migrated_store_keeps_its_rows_and_accepts_new_ones(
    old, records, rows, make_handle
) -> None:
    with open_store(old) as store:
        before, pinned = epoch(store), epoch(store, "paper")
        seen: list[int] = []
        parses, dataset = migrate_store(store, watch=seen.append)
        assert (parses.table, parses.format, parses.rewritten, parses.rows) == ("parses", 1, 40, 40)
        assert (parses.added, sum(seen)) == (("record",), 40)
        assert (dataset.table, dataset.rewritten, dataset.added) == (DATASET, 0, TOKENS)
        assert_whole(store, records)
        store.parses.put(records[0], durable=True)  # the same handle may write from now on
    assert marker(old) == FORMAT
    with open_store(old) as store:
        assert formats(store)["parses"] == formats(store)[DATASET] == FORMAT
        assert (epoch(store), epoch(store, "paper")) == (before, pinned)
        store.features.append(make_handle(), rows[20:30])
        store.compact()
        vacuum_store(store, older_than_hours=0)
        report = validate_store(store, deep=True)
        assert (report.parses, report.unpacked, report.examples) == (40, 0, 30)
        assert report.problem_count == 0, report.problems
        assert epoch(store, "paper") == pinned
        assert len(store.dataset("pairs")) == 30


def test_migrating_again_changes_nothing(old) -> None:
    with open_store(old) as store:
        migrate_store(store)
        versions = [table.version for table in inspect_store(store)]
        done = migrate_store(store)
        assert [(table.format, table.added, table.rewritten) for table in done] == [(2, (), 0)] * 2
        assert [table.version for table in inspect_store(store)] == versions


def test_dry_run_of_migrate_changes_nothing(old) -> None:
    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}

    before = content()
    with open_store(old) as store:
        parses, dataset = migrate_store(store, dry_run=True)
    assert (parses.rewritten, dataset.added) == (40, TOKENS)
    assert content() == before


def test_migrate_keeps_rows_that_an_old_release_appends_meanwhile(old, records) -> None:
    """Its rows have no packed record: they are read from their columns, and migrated next time."""
    late = encode_parses([records[0]]).select(PARSE_COLUMNS)
    late = late.set_column(0, "key", pa.array(["f" * 32]))

    with open_store(old) as store:
        raced: list[int] = []

        def race(rows: int) -> None:
            if not raced:
                write_deltalake(old / "parses", late, mode="append")
            raced.append(rows)

        migrate_store(store, watch=race)
        assert (marker(old), validate_store(store).unpacked) == (FORMAT, 1)
        found = store.parses.get_many(["f" * 32, records[1].key])
        assert [record.parse for record in found.values()] == [records[0].parse, records[1].parse]
        assert store.parses.get_many(["f" * 32])["f" * 32].parse == records[0].parse
        assert migrate_store(store)[0].rewritten == 41
        assert validate_store(store).unpacked == 0


def test_missing_rows_stop_the_migration(old) -> None:
    log = old / "parses" / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace('numRecords\\":25', 'numRecords\\":26'))
    with open_store(old) as store:
        with pytest.raises(StoreError, match="40 rows were read where the log has 41"):
            migrate_store(store)
        assert (marker(old), formats(store)["parses"]) == (1, 1)


def test_a_newer_table_is_refused(old) -> None:
    DeltaTable(old / "parses").alter.set_table_properties(
        {"parsebank.format": "3"}, raise_if_not_exists=False
    )
    with open_store(old) as store, pytest.raises(StoreFormatError, match="has format 3"):
        migrate_store(store)
    assert marker(old) == 1


def test_a_folder_without_a_store_has_nothing_to_migrate(tmp_path) -> None:
    with open_store(tmp_path / "none") as store:
        assert [table.rewritten for table in migrate_store(store)] == [0]
    assert not (tmp_path / "none").exists()


def kill_migrations(old: Path, writers, trials: int, delay: Callable[[], float]) -> int:
    """Begin migrations and kill them; how many had left something to do."""
    unfinished = 0
    for _ in range(trials):
        process = writers.start("migrate", old)
        time.sleep(delay())
        process.kill()
        process.finish()
        unfinished += marker(old) == 1
    return unfinished


@pytest.mark.slow
def test_a_killed_migration_is_finished_by_the_next(old, writers, records) -> None:
    with open_store(old) as reader:
        pinned = epoch(reader, "paper")
        kill_migrations(old, writers, 2, lambda: random.Random(1).uniform(0.02, 0.1))
        assert_whole(reader, records)
        migrate_store(reader)
        assert_whole(reader, records)
        assert epoch(reader, "paper") == pinned
        assert validate_store(reader).unpacked == 0


@pytest.mark.slow
def test_killed_migration_loses_nothing(tmp_path, writers, records) -> None:
    chance = random.Random(0)
    unfinished = 0
    for trial in range(40):
        old = shutil.copytree(FIXTURE, tmp_path / f"{trial}")
        unfinished += kill_migrations(old, writers, 2, lambda: chance.uniform(0, 0.25))
        with open_store(old) as store:
            assert_whole(store, records)
            migrate_store(store)
            assert_whole(store, records)
            assert validate_store(store, deep=True).problem_count == 0
            vacuum_store(store, older_than_hours=0)
            assert_whole(store, records)
            assert np.all(store.parses.contains([record.key for record in records]))
    assert 0 < unfinished < 80  # some were killed before the end, and some after


def test_migrate_command_reports_and_migrates(old) -> None:
    app = typer.Typer()
    register(app)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["store", *arguments, "--store", str(old)])
        assert result.exit_code == 0, result.output
        return result.stdout

    planned = json.loads(run("migrate", "--dry-run", "--json"))
    assert [(row["table"], row["rewritten"]) for row in planned] == [("parses", 40), (DATASET, 0)]
    assert json.loads(run("migrate", "--json")) == planned
    assert "0 problems" in run("validate")
