"""The dataset ``adhoc``: what /parse and /features append, once, and what a crash may cost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from featurestore import DatasetHandle, ExampleRow, FeatureDataset, FeatureStore, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.evict import evict_parses
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from service.pipeline.adhoc import MOST_SEGMENTS, AdhocDataset, AdhocSegment
from service.tokenizers import LoadedTokenizer, bundled_tokenizers, load_tokenizer
from syntax.errors import StoreError
from syntax.examples import DatasetSpec
from tests.featurestore.writer_process import record_of
from tests.service.adhoc_process import segment

from .contract import ALL, MATRICES, TOKENIZER, ask, items

SHARED = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def tokenizer() -> LoadedTokenizer:
    return load_tokenizer(TOKENIZER)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeatureStore]:
    with open_store(tmp_path / "store") as store:
        yield store


@pytest.fixture
def adhoc(store: FeatureStore) -> Iterator[AdhocDataset]:
    """Commits when it is told to."""
    adhoc = AdhocDataset(store, commit_seconds=3600)
    yield adhoc
    adhoc.close()


def held(store: FeatureStore, **part: str) -> FeatureDataset:
    return store.dataset("adhoc", split="parse", **part)


async def examples(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    response = await client.post("/features", json=body)
    assert response.status_code == 200, response.text
    return list(response.json()["examples"])


def rows(app: FastAPI) -> dict[tuple[str, ...], dict[str, Any]]:
    """The rows that are committed by now, by their texts."""
    app.state.services.adhoc.flush()
    relation = app.state.services.store.sql(
        """select dataset, split, lang, texts, parse_keys, example_id, count(*) over (
            partition by dataset, texts) as copies from examples where dataset like 'adhoc%'"""
    )
    listed = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    return {tuple(row.pop("texts")): row for row in listed}


@SHARED
async def test_adhoc_stores_a_row_per_parse_with_a_tokenizer(client, app) -> None:
    texts = ["It works.", "", "I can't wait. It's over!", "It works."]
    first, _, last, _ = await items(client, texts=texts, tokenizer=TOKENIZER)
    await ask(client, texts=texts, tokenizer=TOKENIZER)
    for item in (first, last):
        place = {"dataset": "adhoc", "split": "parse", "lang": "en", "copies": 1}
        keys = {"parse_keys": [item["key"]], "example_id": item["key"]}
        assert rows(app)[(item["text"],)] == place | keys
    store = app.state.services.store
    assert validate_store(store).problem_count == 0
    data = store.dataset("adhoc", tokenizer=TOKENIZER, split="parse", lang="en")
    assert [parser["name"] for parser in data.parsers.values()] == ["parsebank/english"]
    (batch,) = data.stream(batch_size=len(data), shuffle=False)
    row = batch["example_id"].index(last["key"])
    inner = batch["segment_ids"][row] >= 0
    pieces = last["wordpieces"]
    assert batch["input_ids"][row][inner].tolist() == pieces["input_ids"]
    words = [None if word < 0 else word for word in batch["word_ids"][row][inner].tolist()]
    assert words == pieces["word_ids"]


@SHARED
async def test_adhoc_skips_requests_without_pieces_or_store(client, app) -> None:
    await ask(client, text="No tokenizer.")
    await ask(client, text="Not kept.", tokenizer=TOKENIZER, store=False)
    body = {"examples": [{"segments": [{"text": "Not kept."}]}], "store": False}
    (example,) = await examples(client, **body)
    assert (await client.get(f"/features/{example['key']}")).status_code == 404
    (parsed,) = await items(client, text="Parsed, then only looked at.")
    assert (await client.get(f"/features/{parsed['key']}")).status_code == 200
    texts = {("No tokenizer.",), ("Not kept.",), ("Parsed, then only looked at.",)}
    assert not texts & rows(app).keys()


async def test_a_parse_that_was_evicted_while_in_memory_is_stored_again(serve) -> None:
    async with serve(workers=1, job_workers=0, refresh_seconds=3600) as client:
        await ask(client, text="Evicted.")
        store = client.app.state.services.store
        store.flush()
        with open_store(store.uri) as other:
            evict_parses(other, 0, spare_hours=0)
        (item,) = await items(client, text="Evicted.", tokenizer=TOKENIZER)
        assert item["cached"] is True
        assert ("Evicted.",) in rows(client.app)
        with open_store(store.uri) as other:
            assert item["key"] in other.parses.get_many([item["key"]])


@SHARED
async def test_the_datasets_route_lists_it(client: httpx.AsyncClient, app: FastAPI) -> None:
    await ask(client, text="Listed.", tokenizer=TOKENIZER)
    singles = [row for row in rows(app).values() if row["dataset"] == "adhoc"]
    listed = {entry["name"]: entry for entry in (await client.get("/datasets")).json()}
    assert listed["adhoc"]["fields"] == ["text"]
    assert listed["adhoc"]["parts"] == [
        {"split": "parse", "lang": "en", "rows": len(singles), "dropped": {}}
    ]


@SHARED
async def test_features_of_pairs_have_a_table_of_their_own(client, app) -> None:
    pair = {"segments": [{"text": "Who flies?"}, {"text": "Time flies."}], "example_id": "q1"}
    single = {"segments": [{"text": "Time flies."}]}
    options = {"max_length": 12, "policy": "chain"}
    example, *_ = await examples(client, examples=[pair, single, pair], **options)
    await ask(client, text="Time flies.", tokenizer=TOKENIZER)
    stored = rows(app)
    assert stored["Who flies?", "Time flies."]["dataset"] == "adhoc-2"
    assert stored["Time flies.",]["dataset"] == "adhoc"
    assert {row["copies"] for row in stored.values()} == {1}
    data = app.state.services.store.dataset("adhoc-2", split="parse")
    assert data.card.fields == ("text_1", "text_2")
    (batch,) = data.stream(batch_size=1, **options)
    assert batch["example_id"] == [example["key"]]
    for name in ("input_ids", "parents", "depth", "distance", "ancestor"):
        assert batch[name][0].tolist() == example[name]


@pytest.mark.slow
async def test_shutdown_commits_and_a_restart_repeats_nothing(serve, make_settings) -> None:
    for texts in (["One.", "Two."], ["Two.", "Three.", "One."]):
        async with serve(commit_seconds=3600) as client:
            await ask(client, texts=texts, tokenizer=TOKENIZER)
    with open_store(make_settings().store) as store:
        found = store.sql("select texts[1] from examples order by seq").fetchall()
    assert found == [("One.",), ("Two.",), ("Three.",)]


def test_adhoc_evicts_segments_beyond_its_limit(adhoc, tokenizer) -> None:
    adhoc.add(tokenizer, [segment(f"{number}") for number in range(MOST_SEGMENTS + 1)])
    adhoc.flush()
    assert sum(adhoc.counts.values()) == 0


def test_two_languages_share_a_row(adhoc, store, tokenizer) -> None:
    adhoc.add(tokenizer, [segment("Yes.", "en"), segment("Oui.", "fr")])
    adhoc.flush()
    data = store.dataset("adhoc-2", split="parse", lang="en-fr")
    assert len(data) == 1


def test_a_tokenizer_has_one_table_whatever_it_is_called(adhoc, store, tmp_path, tokenizer) -> None:
    link = tmp_path / "other-name"
    link.symlink_to(bundled_tokenizers()[TOKENIZER])
    same = load_tokenizer(str(link))
    assert same.fingerprint == tokenizer.fingerprint
    adhoc.add(tokenizer, [segment("first")])
    adhoc.flush()
    adhoc.add(same, [segment("first")])
    adhoc.add(same, [segment("second")])
    adhoc.flush()
    assert [info.name for info in store.datasets()] == ["adhoc"]
    assert len(held(store)) == 2


def test_full_adhoc_buffer_drops_rows_without_blocking(store, tokenizer) -> None:
    adhoc = AdhocDataset(store, commit_seconds=3600, room=1_000)
    segments = [segment(f"text {number}", pieces=100) for number in range(20)]
    for one in segments:  # nothing is committed meanwhile, and nobody waits
        adhoc.add(tokenizer, [one])
    assert adhoc.counts["full"] == 15
    adhoc.flush()
    assert len(held(store)) == 5
    adhoc.add(tokenizer, [segments[-1]])
    adhoc.close()
    assert adhoc.counts == {"stored": 6, "known": 0, "full": 15, "refused": 0}


def test_failing_adhoc_table_does_not_block_others(adhoc, store, tokenizer) -> None:
    # A dataset of the same name, of pairs.
    spec = DatasetSpec("adhoc", "parse", "en", ("something", "else"))
    handle = DatasetHandle(spec, TOKENIZER, tokenizer.fingerprint, tokenizer.special_tokens)
    store.features.append(handle, [own_row(segment("x"), segment("y"))])
    adhoc.add(tokenizer, [segment("refused")])
    adhoc.add(tokenizer, [segment("a"), segment("b"), segment("c")])
    adhoc.flush()
    assert adhoc.counts == {"stored": 1, "known": 0, "full": 0, "refused": 1}
    assert len(store.dataset("adhoc-3", split="parse")) == 1
    assert len(held(store)) == 1


def own_row(*pair: AdhocSegment) -> ExampleRow:
    return ExampleRow(
        seq=0,
        example_id="own",
        example_key="0" * 32,
        parser=pair[0].parser,
        texts=tuple(one.text for one in pair),
        parse_keys=tuple(one.key for one in pair),
        segments=tuple(one.features for one in pair),
    )


@pytest.fixture
def obstacle(tmp_path: Path) -> Path:
    """A file where a folder of the store should be."""
    path = tmp_path / "store" / "datasets"
    path.parent.mkdir()
    path.touch()
    return path


def test_adhoc_retries_rows_that_cannot_be_written(adhoc, store, tokenizer, obstacle) -> None:
    adhoc.add(tokenizer, [segment("kept")])
    with pytest.raises((StoreError, OSError)):
        adhoc.flush()
    obstacle.unlink()
    adhoc.flush()
    assert len(held(store)) == 1


@pytest.mark.usefixtures("obstacle")
def test_a_shutdown_that_cannot_write_goes_on(adhoc, tokenizer) -> None:
    adhoc.add(tokenizer, [segment("lost")])
    adhoc.close()
    assert adhoc.counts["stored"] == 0


def test_kill_loses_only_uncommitted_adhoc_rows(tmp_path: Path, tokenizer: LoadedTokenizer) -> None:
    uri = str(tmp_path / "store")
    command = [sys.executable, "-m", "tests.service.adhoc_process", uri, "20", "30"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "committed\n"
        assert process.stdout.readline() == "waiting\n"
        process.kill()
    with open_store(uri) as store:
        assert len(held(store)) == 20
        assert validate_store(store).problem_count == 0
        adhoc = AdhocDataset(store, commit_seconds=3600)
        for number in range(50):
            adhoc.add(tokenizer, [segment(f"text {number}")])
        adhoc.close()
        assert adhoc.counts == {"stored": 30, "known": 20, "full": 0, "refused": 0}
        data = held(store)
        (batch,) = data.stream(batch_size=50, shuffle=False)
        assert len(set(batch["example_id"])) == 50
        assert np.array_equal(batch["depth"][0, :4], [0, 1, 2, 1])


def test_a_row_whose_text_was_deleted_meanwhile_is_not_appended(store, adhoc, tokenizer) -> None:
    other = record_of("another", 0, 0)
    store.parses.append([other])
    generation = store.parses.generation
    delete_parses(store, [other.key])
    adhoc.add(tokenizer, [segment("deleted while it was derived")], generation)
    adhoc.add(tokenizer, [segment("asked for later")])
    adhoc.flush()
    assert adhoc.counts["deleted"] == 1
    assert list(held(store).columns(["texts"])["texts"].to_pylist()) == [["asked for later"]]
    adhoc.add(tokenizer, [segment("deleted while it was derived")])
    adhoc.flush()
    assert len(held(store)) == 2


async def test_matrices_that_were_asked_for_are_stored(serve) -> None:
    text = "The nurse who couldn't wait went home. It rained."
    async with serve(workers=1, job_workers=0, request_deadline_seconds=300) as client:
        await ask(client, text="Without matrices.", tokenizer=TOKENIZER)
        store, flush = client.app.state.services.store, client.app.state.services.adhoc.flush
        await asyncio.to_thread(flush)
        (item,) = await items(client, text=text, **ALL)
        await asyncio.to_thread(flush)
        columns = held(store).columns(["texts", *MATRICES]).to_pylist()
        first, second = sorted(columns, key=lambda row: row["texts"] == [text])
        assert [first[name] for name in MATRICES] == [None, None, None]
        distance, depth, ancestor = (second[name] for name in MATRICES)
        size = len(item["wordpieces"]["input_ids"])
        assert decode_distance(distance[0]).tolist() == item["matrices"]["distance"]
        assert decode_depth(depth[0], size).tolist() == item["matrices"]["depth"]
        assert decode_ancestor(ancestor[0]).tolist() == item["matrices"]["ancestor"]
        report = validate_store(store)
        assert (report.problem_count, report.matrices) == (0, 1)
        (batch,) = held(store).stream(batch_size=2, shuffle=False)
        assert len(batch["example_id"]) == 2
