"""Parsers that take many texts at once, in jobs; and what of tokens and long sentences is kept."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from featurestore import open_store
from service.jobs import shard as shard_module
from service.jobs.shard import run_shard
from service.parsers import Limits, ParseInput, find_parser, load_parser
from syntax.alignment.tokens import project_labels, token_words
from syntax.examples import TOKEN_MODES
from tests.service.serving import upload

from .bench import Bench, Recorder, make_bench
from .conftest import Running, Service, ndjson, pairs, run_service, settings_in

HEADS = "select key, head from parses order by key"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with open_store(tmp_path) as store:
        yield make_bench(tmp_path, store)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """One service with one worker, and Stanza if its model is at hand."""
    data = os.environ.get("PARSEBANK_DATA")
    settings = settings_in(
        tmp_path_factory.mktemp("bulk"),
        job_workers=1,
        max_words_per_sentence=12,
        device="cpu",
        models_dir=data and Path(data) / "models",
    )
    async with run_service(settings) as service:
        yield service


@pytest.mark.slow
def test_bulk_parser_gets_many_texts_and_stores_equal_rows(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_module, "STEP_CHARACTERS", 400)
    lines = bench.lines(pairs(20))
    alone, together = Recorder(), Recorder()
    with open_store(tmp_path / "alone") as other:
        expected = run_shard(bench.shard(), lines, bench.tools(store=other), alone)
        heads = other.sql(HEADS).fetchall()
    assert run_shard(bench.shard(), lines, bench.tools(bulk=True), together) == expected
    assert bench.store.sql(HEADS).fetchall() == heads
    assert {len(keys) for keys in alone.watched[:-1]} == {1}
    chunks = together.watched[:-1]
    assert [key for keys in chunks for key in keys] == [key for (key,) in alone.watched[:-1]]
    assert 3 < len(chunks) < 15
    assert together.watched[-1] == ()
    assert together.beats >= len(chunks)


def test_isolated_texts_are_parsed_first_and_alone(bench: Bench) -> None:
    lines = bench.lines(pairs(6))
    chunk = bench.watched(lines, bulk=True)[0]
    signals = Recorder(isolated_keys=frozenset(chunk[2:4]))
    counts = run_shard(bench.shard(), lines, bench.tools(bulk=True), signals)
    assert counts.stored == 6
    assert signals.watched[:2] == [(chunk[2],), (chunk[3],)]
    assert set(signals.watched[2]) == {*chunk} - {*chunk[2:4]}


def test_fatal_text_is_left_out_of_its_chunk(bench: Bench) -> None:
    lines = bench.lines(pairs(6))
    deadly = bench.watched(lines, bulk=True)[0][1]
    signals = Recorder(fatal_keys=frozenset({deadly}), isolated_keys=frozenset({deadly}))
    counts = run_shard(bench.shard(), lines, bench.tools(bulk=True), signals)
    assert set(counts.dropped) == {"worker_died"}
    assert counts.stored + counts.dropped["worker_died"] == 6
    assert all(deadly not in keys for keys in signals.watched)


TEXTS = [
    "Le chat dort sur le canapé.",
    "Marie est partie hier. Elle ne reviendra pas.",
    "Du pain, s'il vous plaît !",
    " \n ",
    *(f"Le train numéro {n} arrive à midi." for n in range(8)),
]


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_a_stanza_job_stores_what_the_parser_says(service: Service, data_dir: Path) -> None:
    body = upload(*TEXTS, lang="fr", parser="stanza/fr")
    job = await service.backfill(body, "french")
    assert (job["state"], job["counts"]["dropped"]) == ("done", {"empty_text": 1})
    assert job["parser"].startswith("stanza/")
    assert job["counts"]["stored"] == len(TEXTS) - 1
    columns = "text, form, head, deprel"
    rows = service.store.sql(f"select {columns} from parses where lang = 'fr'").fetchall()
    parser = load_parser(find_parser(service.settings, job["parser"]), "cpu")
    assert len(rows) == len(TEXTS) - 1
    for text, form, head, deprel in rows:
        parse = parser.parse(ParseInput("raw", text), Limits())
        assert (parse.form, parse.head, parse.deprel) == (form, head, deprel)
    again = await service.backfill(body, "french")
    assert again["counts"]["already_stored"] == len(TEXTS) - 1


TOKENS = {
    "plain": ["She", "won't", "go", "to", "New", "York", "."],
    "wide": ["Prices", "rose", "by", "5%", "in", "Q4/2020", "."],
    "nbsp": ["He", "saw", "New\u00a0York", "and", "don't", "cry", "!"],
}


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_tokens_map_to_the_words_of_either_mode_and_can_be_told_from_the_store(
    service: Service,
) -> None:
    items = [
        {"example": {"example_id": name, "segments": [{"tokens": tokens}]}}
        for name, tokens in TOKENS.items()
    ]
    for mode in TOKEN_MODES:
        job = await service.backfill(ndjson(items, mode=mode, fields=["text"], labels=[]), mode)
        assert (job["state"], job["mode"], job["counts"]["stored"]) == ("done", mode, 3)
    query = "select example_id, dataset, texts[1], parse_keys[1] from examples"
    rows = service.store.sql(f"{query} where dataset in {TOKEN_MODES}").fetchall()
    assert len(rows) == 3 * len(TOKEN_MODES)
    for example, mode, text, key in rows:
        parse = service.store.parses.get_many([key])[key].parse
        tokens = TOKENS[example]
        assert parse.text == text
        assert text.split(" ") == tokens
        words = token_words(tokens, parse)
        assert all(words)
        kept = mode == "pretokenized" or (mode, example) == ("tokens_mwt", "wide")
        assert (parse.form == tokens) == kept
        labels = ["B-X" if "'" in token else "O" for token in tokens]
        projected = project_labels(labels, words, parse.word_count)
        assert projected.count("B-X") == labels.count("B-X")
        if mode != "pretokenized" and example == "plain":
            assert parse.form[1:3] == ["wo", "n't"]
            assert projected[1:3] == ["B-X", "I-X"]


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_long_sentences_are_dropped_or_split_as_the_spec_says(service: Service) -> None:
    long = " ".join(f"word{n}" for n in range(30)) + "."
    refused = await service.backfill(upload(long, mode="sentence"), "long")
    assert refused["counts"]["dropped"] == {"sentence_too_long": 1}
    body = upload(long, mode="sentence", long_sentences="split")
    split = await service.backfill(body, "long")
    assert (split["long_sentences"], split["counts"]["stored"]) == ("split", 1)
    query = "select parse_keys[1] from examples where dataset = 'long'"
    ((key,),) = service.store.sql(query).fetchall()
    stored = service.store.parses.get_many([key])[key].parse
    assert [first for first, _ in stored.word_ranges()] == [0, 12, 24]
    assert stored.misc is not None
    marks = [at for at, misc in enumerate(stored.misc) if misc == "ContinuedSentence=Yes"]
    assert marks == [12, 24]
    again = await service.backfill(body, "long")
    assert again["counts"]["already_stored"] == 1


@pytest.mark.slow
async def test_killed_stanza_workers_lose_nothing(running: Running, data_dir: Path) -> None:
    texts = [
        f"Le train numéro {n} arrive à midi, et personne ne l'attend plus." for n in range(400)
    ]
    changes = {"models_dir": data_dir / "models", "device": "cpu", "job_shard_segments": 200}
    async with running(job_workers=1, **changes) as service:
        job = await service.submit(upload(*texts, lang="fr", parser="stanza/fr"), "french")
        for _ in range(3):
            await service.until_parsing()
            for pid in service.jobs.worker_pids:
                os.kill(pid, signal.SIGKILL)
        job = await service.ended(job, seconds=300)
        assert (job["state"], job["counts"]["dropped"]) == ("done", {})
        assert [row[0] for row in service.rows("french")] == list(range(400))
