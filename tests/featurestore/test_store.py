from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

import featurestore
from featurestore import Drop, Transaction, open_store
from featurestore.tables.parses import RecordCache
from featurestore.tables.root import FORMAT
from syntax import fingerprint
from syntax.errors import SpecError, StoreError, StoreFormatError, UnknownKeyError


def test_opening_writes_nothing(tmp_path) -> None:
    with open_store(tmp_path / "store") as store:
        assert store.datasets() == []
        assert store.sql("from words").fetchall() == []
    assert not (tmp_path / "store").exists()


def test_the_first_write_marks_the_format(tmp_path, records) -> None:
    with open_store(tmp_path / "a" / "store") as store:
        store.parses.append(records[:1])
    marker = json.loads((tmp_path / "a" / "store" / "parsebank.json").read_text())
    assert marker["format"] == FORMAT


@pytest.mark.parametrize("other", [FORMAT - 1, 99])
def test_another_format_is_refused_by_name(tmp_path, other) -> None:
    (tmp_path / "parsebank.json").write_text(f'{{"format": {other}}}')
    with pytest.raises(StoreFormatError, match=f"format {other}; this release reads {FORMAT}"):
        open_store(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", '{"format": "new"}', "\xff"])
def test_foreign_format_marker_is_refused(tmp_path, content) -> None:
    (tmp_path / "parsebank.json").write_text(content, encoding="latin-1")
    with pytest.raises(StoreFormatError):
        open_store(tmp_path)


def test_a_file_is_no_store(tmp_path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(StoreFormatError, match="is a file; a store is a folder"):
        open_store(tmp_path / "file")


@pytest.mark.parametrize("name", ["v[1]", "a|b", "a\\b", "a\nb"])
def test_a_path_that_cannot_hold_tables_is_refused(tmp_path, name) -> None:
    with pytest.raises(StoreError, match="a store cannot lie in"):
        open_store(tmp_path / name)


def test_relative_and_home_paths_are_resolved(tmp_path, monkeypatch, records) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("./here/") as store:
        store.parses.append(records[:1])
    assert store.uri == str(tmp_path / "here")
    assert (tmp_path / "here" / "parses").is_dir()


def test_fingerprints_are_described_once(store) -> None:
    content = {"name": "udpipe/english-ewt", "options": {"beam": 5}}
    key = fingerprint(content)
    assert store.describe(key, "parser", content)
    assert not store.describe(key, "parser", content)
    with open_store(store.uri) as other:
        assert not other.describe(key, "parser", content)
        assert other.resolve(key) == content
        assert other.fingerprints.all("parser") == {key: content}
        assert other.fingerprints.all("tokenizer") == {}
    assert store.sql("select count(*) from fingerprints").fetchall() == [(1,)]


def test_concurrent_processes_can_describe_one_fingerprint(store) -> None:
    with open_store(store.uri) as other:
        with pytest.raises(UnknownKeyError, match="f" * 32):
            store.resolve("f" * 32)
        other.describe("f" * 32, "parser", {"name": "late"})
    assert store.resolve("f" * 32) == {"name": "late"}


def test_drops_are_appended_once_per_transaction(store) -> None:
    drop = Drop("d", "t", "train", "en", "job", "id", "", "deadline", "slow")
    assert store.drops.append([drop], Transaction("shard"))
    assert not store.drops.append([drop], Transaction("shard"))
    assert not store.drops.append([], Transaction("other"))
    assert store.drops.of("d", "t") == [drop]
    assert store.drops.of("d", "t", split="dev") == []


def test_a_drop_is_written_once_for_each_example_and_reason(store) -> None:
    key, other = fingerprint("one"), fingerprint("another")
    drop = Drop("d", "t", "train", "en", "job", "id", key, "label", "odd")
    more = [replace(drop, example_key=other), replace(drop, lang="de"), replace(drop, reason="x")]
    assert store.drops.append_new([drop, drop])
    assert store.drops.append_new([replace(drop, job="again"), *more])
    with open_store(store.uri) as second:
        assert not second.drops.append_new([drop, *more])
        second.drops.table.compact()
    assert not store.drops.append_new([drop, *more])
    assert len(store.drops.of("d", "t")) == 4


def test_cache_evicts_the_least_recently_used(records) -> None:
    cache = RecordCache(2)
    cache.put_many(records[:2])
    cache.get_many([records[0].key])
    cache.put_many(records[2:3])
    keys = [record.key for record in records[:3]]
    assert set(cache.get_many(keys)) == {keys[0], keys[2]}


def test_the_package_imports_nothing_heavy_by_itself() -> None:
    heavy = {"pyarrow", "deltalake", "duckdb", "numba", "numpy"}
    script = (
        "import sys, featurestore, featurestore.commands, typer\n"
        "featurestore.commands.register(typer.Typer())\n"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(featurestore, name) for name in featurestore.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        featurestore.nothing  # noqa: B018


@pytest.mark.parametrize("endpoint", ["htp://joe:secret@x", "s3.example.org", "https://"])
def test_an_endpoint_that_is_no_address_is_refused_by_name(endpoint, monkeypatch) -> None:
    with pytest.raises(SpecError, match=r"AWS_ENDPOINT_URL is .* no address") as raised:
        open_store("s3://bucket/prefix", storage_options={"AWS_ENDPOINT_URL": endpoint})
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(SpecError, match="AWS_ENDPOINT_URL is"):
        open_store("s3://bucket/prefix")
