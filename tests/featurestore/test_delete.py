"""Deleted texts: gone from parses, datasets, drops and states, and after a vacuum from the disk."""

from __future__ import annotations

import json
import random
import shutil
import time
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

from featurestore import Drop, open_store
from featurestore.dataset.states import StatedDataset
from featurestore.maintenance.delete import delete_parses, keys_of_example, keys_of_text
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.states import WordStates
from syntax.errors import SpecError, UnknownDatasetError, UnknownKeyError

from .writer_process import HANDLE, example_of, record_of


def files_with(folder: str | Path, text: str) -> list[Path]:
    """Files of a store that hold a text; Parquet is read, for its pages are compressed."""
    import pyarrow.parquet as pq

    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix == ".parquet" and "checkpoint" not in path.name:
            table = pq.ParquetFile(path).read()
            content = "\n".join(map(str, table.to_pylist()))
        else:
            content = path.read_text("latin-1") if path.is_file() else ""
        if text in content:
            found.append(path)
    return found


def uses(rows, key: str) -> list[str]:
    """Example keys of the rows that use a parse."""
    return [row.example_key for row in rows if key in row.parse_keys]


def test_a_deleted_text_is_gone_from_parses_and_datasets(whole, records, rows) -> None:
    gone = records[3]
    used = uses(rows, gone.key)
    report = delete_parses(whole, [gone.key])
    assert (report.keys, report.examples, report.pins) == ([gone.key], len(used), [])
    (part,) = report.datasets
    assert (part.dataset, part.split, part.lang, part.examples) == (
        *("pairs", "train", "en"),
        len(used),
    )
    with open_store(whole.uri) as fresh:
        for store in (whole, fresh):
            assert not store.parses.contains([gone.key]).any()
            assert store.parses.get_many([gone.key]) == {}
            left = store.dataset("pairs").columns(["example_key"])["example_key"].to_pylist()
            assert left == [row.example_key for row in rows if row.example_key not in used]
            assert len(store.parses.get_many([r.key for r in records])) == len(records) - 1
    assert validate_store(whole).problem_count == 0


def test_vacuum_removes_a_deleted_text_from_disk(whole, records) -> None:
    gone = records[33]  # three sentences, which no other text holds together
    assert files_with(whole.uri, gone.parse.text)
    delete_parses(whole, [gone.key])
    assert files_with(whole.uri, gone.parse.text)  # in older versions
    vacuum_store(whole, older_than_hours=0)
    assert not files_with(whole.uri, gone.parse.text)


def test_pins_that_hold_a_text_are_named(whole, records, rows) -> None:
    gone, other = records[33], records[5]
    whole.dataset("pairs").pin("paper")
    delete_parses(whole, [other.key])
    whole.dataset("pairs").pin("later")
    assert delete_parses(whole, [gone.key], dry_run=True).pins == ["paper", "later"]
    assert delete_parses(whole, [gone.key]).pins == ["paper", "later"]
    vacuum_store(whole, older_than_hours=0)
    assert files_with(whole.uri, gone.parse.text)
    pinned = whole.dataset("pairs", version="paper").columns(["example_key"])
    assert len(pinned) == len(rows)
    for name in ("paper", "later"):
        whole.pins.remove(name)
    vacuum_store(whole, older_than_hours=0)
    assert not files_with(whole.uri, gone.parse.text)


def test_delete_reports_and_ignores_pins_of_missing_versions(whole, handle, records, rows) -> None:
    whole.dataset("pairs").pin("lost")
    shutil.rmtree(Path(whole.uri, "datasets", whole.dataset("pairs").card.path))
    with open_store(whole.uri) as fresh:
        fresh.features.append(handle, rows)
        gone = records[3]
        assert delete_parses(fresh, [gone.key], dry_run=True).pins == ["lost"]
        assert delete_parses(fresh, [gone.key]).pins == ["lost"]
        assert len(fresh.dataset("pairs")) == len(rows) - len(uses(rows, gone.key))


def test_dry_run_of_delete_reports_the_same_and_deletes_nothing(whole, records) -> None:
    planned = delete_parses(whole, [records[3].key], dry_run=True)
    assert whole.parses.contains([records[3].key]).all()
    assert len(whole.dataset("pairs")) == 100
    done = delete_parses(whole, [records[3].key])
    assert (planned.dry_run, done.dry_run) == (True, False)
    assert {**planned.to_json(), "dry_run": False} == done.to_json()


def test_a_text_is_deleted_under_all_its_keys(whole, records, make_record, make_row) -> None:
    again = make_record(records[3].parse, 99, parser="a" * 32)
    whole.parses.append([again])
    assert delete_parses(whole, [again.key], dry_run=True).same_text == [records[3].key]
    keys = keys_of_text(whole, records[3].parse.text)
    assert keys == sorted([records[3].key, again.key])
    assert delete_parses(whole, keys).same_text == []
    with pytest.raises(UnknownKeyError, match="no parse of this text"):
        keys_of_text(whole, records[3].parse.text)


def test_an_example_is_deleted_by_its_id(whole, handle, make_handle, rows) -> None:
    keys = keys_of_example(whole, "pairs", "ex-7")
    assert set(keys) == set(rows[7].parse_keys)
    report = delete_parses(whole, keys)
    assert report.examples == len({k for key in keys for k in uses(rows, key)}) > 1
    with pytest.raises(UnknownKeyError, match="no example 'ex-7'"):
        keys_of_example(whole, "pairs", "ex-7")
    whole.features.append(make_handle(split="dev"), [rows[9]])
    with pytest.raises(SpecError, match="dev/en, train/en"):
        keys_of_example(whole, "pairs", "ex-9")
    assert keys_of_example(whole, "pairs", "ex-9", split="dev") == list(
        dict.fromkeys(rows[9].parse_keys)
    )


def test_drops_and_states_of_the_examples_go_too(store) -> None:
    first, second = record_of("x", 0, 0), record_of("x", 0, 1)
    store.parses.append([first, second])
    store.features.append(HANDLE, [example_of(first, 0), example_of(second, 1)])
    drop = Drop("written", "other", "train", "en", "job", "id", first.key, "label", "it says why")
    store.drops.append([drop])
    data = StatedDataset(store, store.dataset("written"), {"encoder": "toy"}, width=2)
    one = WordStates(np.array([2], np.int32), np.ones((2, 2), np.float16))
    assert data.write(data.without_states(), [one, one]) == 2
    delete_parses(store, [first.key])
    assert store.drops.of("written", "other") == []
    ((states,),) = ([file.rows for file in table.snapshot().files] for table in [data.states.table])
    assert states == 1
    again = StatedDataset(store, store.dataset("written"), {"encoder": "toy"}, width=2)
    assert len(again.without_states()) == 0
    store.drops.append_new([drop])
    assert store.drops.of("written", "other") == [drop]


def test_an_unknown_key_deletes_nothing(whole, records) -> None:
    with pytest.raises(UnknownKeyError, match="no parse under " + "0" * 32):
        delete_parses(whole, [records[3].key, "0" * 32])
    assert whole.parses.contains([records[3].key]).all()
    with pytest.raises(SpecError, match="keys have 32"):
        delete_parses(whole, ["yes"])


def test_a_text_whose_parse_is_gone_is_deleted_from_examples(whole, records, rows) -> None:
    gone, text = records[3], records[3].parse.text
    whole.parses.table.delete("key", [gone.key])
    with open_store(whole.uri) as store:
        assert keys_of_text(store, text) == [gone.key]
        report = delete_parses(store, [gone.key])
        assert (report.keys, report.examples) == ([gone.key], len(uses(rows, gone.key)))
        for find in (lambda: delete_parses(store, [gone.key]), lambda: keys_of_text(store, text)):
            with pytest.raises(UnknownKeyError):
                find()
        assert validate_store(store).problem_count == 0


@pytest.mark.parametrize("stopped_in", ["drops.table", "features", "parses"])
def test_a_deletion_that_died_is_repeated_by_key(store, monkeypatch, stopped_in) -> None:
    first = record_of("x", 0, 0)
    store.parses.append([first])
    store.features.append(HANDLE, [example_of(first, 0)])
    drop = Drop("written", "other", "train", "en", "job", "id", first.key, "label", "it says why")
    store.drops.append([drop])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(attrgetter(stopped_in)(store), "delete", die)
        with pytest.raises(KeyboardInterrupt):
            delete_parses(store, [first.key])
    assert delete_parses(store, [first.key]).keys == [first.key]
    assert (store.drops.of("written", "other"), len(store.sql("from examples"))) == ([], 0)
    # An example that comes after its parse went is found by its own copy of the key.
    store.features.append(HANDLE, [example_of(first, 0)])
    assert delete_parses(store, [first.key]).examples == 1


def test_a_buffered_parse_is_deleted(store) -> None:
    record = record_of("x", 0, 0)
    store.parses.put(record)
    delete_parses(store, [record.key])
    store.flush()
    with open_store(store.uri) as fresh:
        assert fresh.parses.get_many([record.key]) == store.parses.get_many([record.key]) == {}


def test_other_processes_forget_a_deleted_text_when_they_refresh(whole, records) -> None:
    with open_store(whole.uri, refresh_seconds=3600) as other:
        assert len(other.parses.get_many([records[3].key, records[4].key])) == 2
        generation = other.parses.generation
        delete_parses(whole, [records[3].key])
        other.parses.refresh()
        assert list(other.parses.get_many([records[3].key, records[4].key])) == [records[4].key]
        assert other.parses.generation > generation


@pytest.mark.parametrize("refresh_seconds", [0, 3600])
def test_deleted_text_can_be_stored_again(whole, handle, records, rows, refresh_seconds) -> None:
    gone, used = records[3], uses(rows, records[3].key)
    with open_store(whole.uri, refresh_seconds=refresh_seconds) as other:
        card = other.features.tables()[0][0]
        place = (card.name, card.tokenizer_fingerprint, "train", "en")
        assert len(other.features.existing(*place, used)) == len(used)
        delete_parses(whole, [gone.key])
        for store in (whole, other):
            assert store.features.existing(*place, used) == set()
        other.parses.append([gone])
        again = [row for row in rows if row.example_key in used]
        assert other.features.append_new(handle, again) == len(again)
    assert len(whole.dataset("pairs")) == 100
    assert validate_store(whole).problem_count == 0


def test_delete_command_reports_and_deletes(whole, records, rows, run) -> None:
    for words, said in (
        ([], "one of"),
        ([records[3].key, "--text", "x"], "one of"),
        (["--example", "ex-7"], "together"),
    ):
        refused = run("delete", *words)
        assert (refused.exit_code, said in refused.output) == (2, True)
    done = run("delete", "--text", records[3].parse.text, "--dry-run", "--json")
    report = json.loads(done.output)
    assert (report["dry_run"], report["keys"]) == (True, [records[3].key])
    assert run("delete", records[3].key).exit_code == 0
    assert run("delete", "--dataset", "pairs", "--example", "ex-8").exit_code == 0
    with open_store(whole.uri) as fresh:
        gone = [records[3].key, *rows[8].parse_keys]
        assert not fresh.parses.contains(gone).any()
    assert validate_store(whole).problem_count == 0


def stored_examples(store) -> set[str]:
    try:
        return set(store.dataset("written").columns(["example_key"])["example_key"].to_pylist())
    except UnknownDatasetError:
        return set()


@pytest.mark.slow
def test_a_kill_leaves_no_example_without_its_parse(tmp_path, writers) -> None:
    """Deletions and appends of other examples are killed at random moments, again and again."""
    chance = random.Random(0)
    uri = tmp_path / "store"
    with open_store(uri) as store:
        for trial in range(8):
            doomed = writers.start("complete", uri, f"{trial}", 1, 8).finish()
            kept = writers.start("complete", uri, f"{trial}-kept", 1, 3).finish()
            deleting = writers.start("delete", uri, f"{trial}", 8, 1)
            writing = writers.start("complete", uri, f"{trial}-more", 100_000, 3)
            time.sleep(chance.uniform(0, 0.6))
            deleting.kill()
            writing.kill()
            acknowledged = deleting.finish()
            kept += writing.finish()
            with open_store(uri) as fresh:
                assert not fresh.parses.contains(acknowledged).any()
                assert not stored_examples(fresh) & set(acknowledged)
                assert set(kept) <= stored_examples(fresh)
                assert validate_store(fresh).problem_count == 0
                held = fresh.parses.contains(doomed).tolist()
                left = [key for key, here in zip(doomed, held, strict=True) if here]
                if left:
                    delete_parses(fresh, left)
                assert not stored_examples(fresh) & set(doomed)
            store.parses.refresh()
            assert store.parses.get_many(doomed) == {}


@pytest.mark.slow
def test_examples_appended_during_a_deletion_have_their_parses(tmp_path, writers) -> None:
    """A job writes the same texts while they are deleted: whatever is left is whole."""
    uri = tmp_path / "store"
    with open_store(uri) as store:
        for _ in range(5):
            writing = writers.start("complete", uri, "same", 2, 8)
            deleting = writers.start("delete", uri, "same", 8, 1)
            deleting.finish()
            writing.finish()
            store.parses.refresh()
            assert store.parses.contains(list(stored_examples(store))).all()
            assert validate_store(store).problem_count == 0
