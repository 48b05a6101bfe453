"""A backfill from the upload to the rows in the store, by real workers."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.parsers import Limits, ParseInput, find_parser, load_parser
from service.tokenizers import bundled_tokenizers, load_tokenizer

from .conftest import Running, Service, ndjson, pair, pairs

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_example_is_stored_once_in_order_and_accounted_for(shared: Service) -> None:
    items = pairs(60, "Ada")
    job = await shared.submit(ndjson([*items, *items[:3], items[0]]), "whole")
    assert (job["state"], job["dataset"], job["split"]) == ("queued", "whole", "dev")
    assert (job["parser"], job["tokenizer"]) == ("parsebank/english", "parsebank-wordpiece-en")
    assert job["counts"]["examples"] == 64
    job = await shared.ended(job)
    assert job["state"] == "done"
    shards = job["shards"]
    assert shards == {"total": shards["done"], "done": shards["done"], "failed": 0}
    assert shards["done"] >= 3
    counts = job["counts"]
    assert (counts["stored"], counts["already_stored"], counts["dropped"]) == (60, 4, {})
    parses = counts["parses"]
    assert parses["done"] + parses["reused"] == 128
    assert parses["done"] >= 90  # 60 hypotheses and 30 premises; shards may share a premise
    assert shared.rows("whole") == [(n, f"pair-{n}") for n in range(60)]
    data = shared.store.dataset("whole")
    assert len(data) == 60
    assert data.report == {}


async def test_a_second_backfill_parses_and_writes_nothing(shared: Service) -> None:
    body = ndjson([*pairs(30, "Ben"), pair(30, first="  ")])
    first = await shared.backfill(body, "twice")
    version = shared.store.dataset("twice").version
    parses = shared.store.sql("select count(*) from parses").fetchall()
    second = await shared.backfill(body, "twice")
    assert second["state"] == "done"
    assert second["counts"] == {
        "examples": 31,
        "stored": 0,
        "already_stored": 30,
        "dropped": {"empty_text": 1},
        "parses": {"done": 0, "reused": 60},
    }
    data = shared.store.dataset("twice")
    assert (data.version, len(data), data.report) == (version, 30, {"empty_text": 1})
    assert shared.store.sql("select count(*) from parses").fetchall() == parses
    assert first["counts"]["stored"] == 30
    query = "select count(*) from drops where dataset = 'twice'"
    assert shared.store.sql(query).fetchall() == [(1,)]


def other_tokenizer(folder: Path, normalizer: dict[str, str] | None) -> Path:
    """The bundled tokenizer with another normalizer."""
    (bundled,) = bundled_tokenizers().values()
    other = shutil.copytree(bundled, folder / "other", dirs_exist_ok=True)
    content = json.loads((other / "tokenizer.json").read_text("utf-8"))
    (other / "tokenizer.json").write_text(json.dumps(content | {"normalizer": normalizer}), "utf-8")
    return other


@pytest.mark.slow
async def test_two_tokenizers_at_once_cost_one_parse_whatever_the_workers_do(
    shared: Service, tmp_path: Path
) -> None:
    # One premise keeps all examples in one shard, which leaves the second worker free.
    items = [pair(n, "Tom", first="It rained.") for n in range(40)]
    other = other_tokenizer(tmp_path, None)
    first = await shared.submit(ndjson(items), "tokenizers")
    second = await shared.submit(ndjson(items, tokenizer=str(other)), "tokenizers")
    assert first["shards"]["total"] == 1
    assert (await shared.ended(first))["counts"]["parses"] == {"done": 41, "reused": 39}
    counts = (await shared.ended(second))["counts"]
    assert (counts["stored"], counts["parses"]) == (40, {"done": 0, "reused": 80})


async def test_the_rows_are_what_parser_and_tokenizer_say(shared: Service) -> None:
    await shared.backfill(ndjson(pairs(4)), "rows")
    parser = load_parser(find_parser(shared.settings, lang="en"))
    tokenizer = load_tokenizer("parsebank-wordpiece-en")
    rows = shared.store.sql(
        "select text, input_ids, head, word_ids from segments where dataset = 'rows'"
    ).fetchall()
    assert len(rows) == 8
    for text, input_ids, head, word_ids in rows:
        parents = parser.parse(ParseInput("raw", text), Limits()).parents()
        assert input_ids == tokenizer.encode(text)[0].tolist()
        for piece, word in enumerate(word_ids):
            first = word_ids.index(word)
            if first != piece:
                assert head[piece] == first
            elif parents[word] < 0:
                assert head[piece] == -1
            else:
                assert head[piece] == word_ids.index(parents[word])
    described = shared.store.resolve(parser.identity.fingerprint)
    assert described["name"] == "parsebank/english"
    assert shared.store.resolve(tokenizer.fingerprint)["name"] == "parsebank-wordpiece-en"


async def test_unusable_examples_are_dropped_by_name(
    shared: Service,
) -> None:
    bad = {
        "empty_text": ["", " \n\t "],
        "invalid_character": ["a\0b", "\ud800 alone"],
        "text_too_long": ["a" * 250_000],
        "sentence_too_long": ["word " * 1500],
    }
    texts = [text for group in bad.values() for text in group]
    items = pairs(30, "Dan")
    items += [pair(100 + n, first=text) for n, text in enumerate(texts)]
    items += [pair(200, second="\0"), pair(201, first="", second="\0")]
    items += [{"rejected": {"example_id": "r1", "reason": "example", "message": "2 fields"}}] * 2
    job = await shared.backfill(ndjson(items, parser="udpipe/english-ewt"), "mixed")
    assert job["state"] == "done"
    counts = job["counts"]
    expected = {
        "empty_text": 3,
        "invalid_character": 3,
        "text_too_long": 1,
        "sentence_too_long": 1,
        "example": 2,
    }
    assert counts["dropped"] == expected
    assert counts["stored"] == 30
    assert counts["stored"] + sum(counts["dropped"].values()) == counts["examples"] == 40
    named = shared.store.sql(
        "select example_id, reason from drops where dataset = 'mixed'"
    ).fetchall()
    assert set(named) >= {
        ("pair-100", "empty_text"),
        ("pair-200", "invalid_character"),
        ("r1", "example"),
    }
    (listed,) = [
        entry for entry in (await shared.client.get("/datasets")).json() if entry["name"] == "mixed"
    ]
    (part,) = listed["parts"]
    assert (part["split"], part["lang"], part["rows"]) == ("dev", "en", 30)
    assert part["dropped"] == expected | {"example": 1}  # one rejection, reported twice


def conllu(words: list[tuple[str, int, str]]) -> dict[str, str]:
    lines = [f"# text = {' '.join(form for form, _, _ in words)}"]
    lines += [
        f"{n}\t{form}\t_\tNOUN\t_\t_\t{head}\t{deprel}\t_\t_"
        for n, (form, head, deprel) in enumerate(words, 1)
    ]
    return {"conllu": "\n".join(lines) + "\n\n"}


async def test_gold_trees_are_stored_and_broken_ones_named(shared: Service) -> None:
    segments = {
        "good": conllu([("Dogs", 2, "nsubj"), ("bark", 0, "root"), ("loudly", 2, "advmod")]),
        "cycle": conllu([("a", 0, "root"), ("b", 3, "dep"), ("c", 2, "dep")]),
        "two-roots": conllu([("a", 0, "root"), ("b", 0, "root")]),
        "far-head": conllu([("a", 0, "root"), ("b", 7, "dep")]),
        "no-columns": {"conllu": "1\ta\n\n"},
        "empty": {"conllu": ""},
    }
    items = [
        {"example": {"example_id": name, "segments": [segment], "labels": {}}}
        for name, segment in segments.items()
    ]
    spec: dict[str, Any] = {"fields": ["text"], "labels": [], "mode": "gold"}
    job = await shared.backfill(ndjson(items, **spec), "trees")
    assert (job["state"], job["parser"]) == ("done", "gold")
    assert job["counts"]["dropped"] == {
        "cycle": 1,
        "multiple_roots": 1,
        "head_out_of_range": 1,
        "conllu": 1,
        "empty_text": 1,
    }
    assert job["counts"]["stored"] == 1
    words = shared.store.sql(
        "select form, head, deprel from words where mode = 'gold' order by id"
    ).fetchall()
    assert words == [("Dogs", 2, "nsubj"), ("bark", 0, "root"), ("loudly", 2, "advmod")]
    again = await shared.backfill(ndjson(items, **spec), "trees")
    assert again["counts"]["already_stored"] == 1
    assert again["counts"]["parses"] == {"done": 0, "reused": 1}


async def test_tokens_are_stored_unchanged(shared: Service) -> None:
    examples = {"good": ["Don't", "stop", "."], "hole": ["a", " ", "b"], "none": []}
    items = [
        {"example": {"example_id": name, "segments": [{"tokens": tokens}]}}
        for name, tokens in examples.items()
    ]
    body = ndjson(items, fields=["text"], labels=[], mode="pretokenized")
    job = await shared.backfill(body, "tokens")
    assert job["counts"]["dropped"] == {"empty_token": 1, "empty_text": 1}
    forms = shared.store.sql(
        "select form from words where mode = 'pretokenized' order by id"
    ).fetchall()
    assert forms == [("Don't",), ("stop",), (".",)]


async def test_upload_with_other_labels_than_the_dataset_is_refused(shared: Service) -> None:
    await shared.backfill(ndjson(pairs(2)), "labelled")
    labels = [{"name": "label", "kind": "class", "names": ["no", "yes"]}]
    answer = await shared.client.post(
        "/datasets/labelled/backfill", content=ndjson(pairs(2), labels=labels)
    )
    assert answer.status_code == 422
    assert "label" in answer.json()["message"]


@pytest.mark.slow
async def test_a_running_job_stops_when_it_is_cancelled(shared: Service) -> None:
    job = await shared.submit(ndjson(pairs(300, "Hal")), "stopped")
    while job["shards"]["done"] == 0:
        await asyncio.sleep(0.02)
        job = await shared.job(job)
    await shared.client.delete(f"/jobs/{job['id']}")
    again = await shared.backfill(ndjson(pairs(300, "Hal")), "stopped")  # waits for its workers
    job = await shared.job(job)
    assert job["state"] == "cancelled"
    assert 0 < job["counts"]["stored"] < 300
    assert again["counts"]["already_stored"] == job["counts"]["stored"]
    assert again["counts"]["stored"] == 300 - job["counts"]["stored"]
    assert {row[1] for row in shared.rows("stopped")} == {f"pair-{n}" for n in range(300)}
    assert len(shared.rows("stopped")) == 300


@pytest.mark.slow
async def test_changed_tokenizer_fails_the_job_by_name(running: Running, tmp_path: Path) -> None:
    folder = other_tokenizer(tmp_path, {"type": "Lowercase"})
    async with running(job_workers=0) as service:
        job = await service.submit(ndjson(pairs(3), tokenizer=str(folder)))
    other_tokenizer(tmp_path, None)
    async with running(job_workers=1) as service:
        job = await service.ended(job)
        assert job["state"] == "failed"
        assert job["error"]["error_type"] == "spec"
        assert "send the backfill again" in job["error"]["message"]


@pytest.mark.slow
async def test_idle_workers_exit_and_new_jobs_start_new_ones(running: Running) -> None:
    async with running(job_idle_seconds=0.5, job_workers=1) as service:
        assert service.jobs.worker_pids == []
        await service.backfill(ndjson(pairs(2)))
        before = set(service.jobs.worker_pids)
        await until_no_workers(service)
        job = await service.backfill(ndjson(pairs(4)))
        assert job["counts"]["stored"] == 2
        assert before.isdisjoint(service.jobs.worker_pids)


async def until_no_workers(service: Service) -> None:
    for _ in range(100):
        if not service.jobs.worker_pids:
            return
        await asyncio.sleep(0.1)
    pytest.fail("the workers never ended")
