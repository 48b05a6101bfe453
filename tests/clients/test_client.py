"""Both clients against the real service, in process."""

from __future__ import annotations

import logging
from itertools import islice

import numpy as np
import pytest

from clients import AsyncClient, Client
from clients.benchmarks import SAMPLE
from clients.client.results import ItemError, ParsedItem
from syntax import DependencyTree
from syntax.errors import (
    EmptyTextError,
    SpecError,
    UnknownJobError,
    UnknownKeyError,
    UnknownLanguageError,
    UnknownNameError,
    UnknownParserError,
    UnknownTokenizerError,
    UploadGoneError,
)
from syntax.examples import DatasetSpec, Example, LabelSpec, Rejection, Segment
from syntax.trees.conllu import parse_conllu

TOKENIZER = "parsebank-wordpiece-en"
TEXT = "The nurse didn't thank the driver. Then she went home."


def test_info_describes_the_service(client):
    client.parse(TEXT)  # starts the parser, for which `health` waits 5 s, and a busy machine longer
    assert client.health() is True
    assert client.info()["name"] == "parsebank"
    assert "udpipe/english-ewt" in [model["name"] for model in client.models()]


def test_a_text_becomes_sentences_with_trees(client):
    result = client.parse(TEXT, lang="en")
    (item,) = result.parsed()
    assert result.parser.name == "parsebank/english"
    assert len(result.parser.fingerprint) == 32
    assert item.text == TEXT
    assert [sentence.text for sentence in item.sentences] == [
        "The nurse didn't thank the driver.",
        "Then she went home.",
    ]
    assert all(isinstance(sentence.tree, DependencyTree) for sentence in item.sentences)
    spans = zip(item.parse.token_start, item.parse.token_end, strict=True)
    assert [TEXT[start:end] for start, end in spans] == [
        token.form for sentence in item.sentences for token in sentence.tokens
    ]


def test_second_parse_is_cached(client):
    text = "Bees dance before they fly."
    first, second = (client.parse(text).parsed()[0] for _ in range(2))
    assert (first.cached, second.cached) == (False, True)
    assert first.key == second.key
    assert first.parse == second.parse


def test_wordpieces_and_matrices_have_equal_lengths(client):
    names = ("distance", "depth", "ancestor")
    (item,) = client.parse(TEXT, tokenizer=TOKENIZER, matrices=names).parsed()
    pieces, matrices = item.wordpieces, item.matrices
    size = len(pieces)
    assert size >= item.parse.word_count - 1
    assert matrices["distance"].shape == matrices["ancestor"].shape == (size, size)
    assert matrices["depth"].tolist() == [
        0 if parent < 0 else matrices["depth"][parent] + 1 for parent in pieces.parents
    ]
    assert (np.diag(matrices["distance"]) == 0).all()
    assert set(matrices) == set(names)


def test_matrices_are_over_words_without_a_tokenizer(client):
    (item,) = client.parse("Bees dance.", matrices=["depth"]).parsed()
    assert item.wordpieces is None
    assert item.matrices["depth"].shape == (item.parse.word_count,)


def test_parse_accepts_tokens_and_modes(client):
    (item,) = client.parse(tokens=[["Don't", "stop", "!"]]).parsed()
    assert [word.form for word in item.sentences[0].words] == ["Don't", "stop", "!"]
    (item,) = client.parse(TEXT, mode="sentence").parsed()
    assert len(item.sentences) == 1


def test_bad_text_does_not_affect_others(client):
    result = client.parse(texts=["It works.", "", "a\0b", "\ud800", "So does this."])
    assert [getattr(item, "error_type", None) for item in result] == [
        None,
        "empty_text",
        "invalid_character",
        "invalid_character",
        None,
    ]
    assert isinstance(result.items[1], ItemError)
    assert isinstance(result.items[0], ParsedItem)
    with pytest.raises(EmptyTextError):
        result.parsed()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"lang": "xx"}, UnknownLanguageError),
        ({"parser": "udpipe/klingon"}, UnknownParserError),
        ({"tokenizer": "./no/such/tokenizer"}, UnknownTokenizerError),
        ({"policy": "glue"}, UnknownNameError),
        ({"mode": "telepathy"}, SpecError),
    ],
)
def test_refusals_are_the_services_own_errors(client, options, error):
    with pytest.raises(error) as caught:
        client.parse("A text.", **options)
    assert caught.value.message


def test_conllu_is_answered_as_conllu(client):
    sentences = list(parse_conllu(client.parse_conllu(texts=["Bees dance.", "Dogs bark."])))
    assert [sentence.text for sentence in sentences] == ["Bees dance.", "Dogs bark."]


@pytest.fixture(scope="module")
def done_job(client):
    spec = SAMPLE.spec("dev", "en", name="clients-sample")
    items = islice(SAMPLE.read(None, "dev", "en"), 60)
    return client.wait(client.backfill(spec, items, tokenizer=TOKENIZER).id)


def test_a_backfill_accounts_for_every_example(done_job):
    assert done_job.state == "done"
    assert done_job.is_over
    counts = done_job.counts
    assert counts.examples == counts.accounted == 60
    assert counts.dropped == {"empty_text": 1}
    assert counts.stored == 59
    assert (done_job.dataset, done_job.split, done_job.lang) == ("clients-sample", "dev", "en")


def test_the_same_backfill_parses_and_stores_nothing(client, done_job):
    spec = SAMPLE.spec("dev", "en", name="clients-sample")
    items = islice(SAMPLE.read(None, "dev", "en"), 60)
    states: list[str] = []
    again = client.backfill(spec, items, tokenizer=TOKENIZER)
    again = client.wait(again.id, lambda job: states.append(job.state))
    assert states[-1] == "done"
    assert again.counts.parses_done == 0
    assert again.counts.parses_reused > 0
    assert (again.counts.stored, again.counts.already_stored) == (0, 59)


def test_jobs_and_datasets_are_listed_and_found(client, done_job):
    assert "clients-sample" in [dataset["name"] for dataset in client.datasets()]
    assert done_job.id in [job.id for job in client.jobs()]
    assert client.job(done_job.id) == done_job
    assert list(client.events(done_job.id)) == [done_job]
    assert client.cancel(done_job.id).state == "done"
    with pytest.raises(UnknownJobError):
        client.job("no-such-job")


def test_the_store_is_searched_by_pattern(client, done_job):
    found = client.sql("pattern { V [upos=VERB]; V -[1=nsubj]-> S; S << V }", limit=2)
    assert found.columns == ("key", "sentence", "text", "V", "V_form", "S", "S_form")
    assert (len(found), found.truncated) == (2, True)
    for row in found:
        assert row["S"] < row["V"]
        assert row["text"] in client.stored_parse(row["key"]).parsed()[0].text
    assert "there are more" in found._repr_html_()
    with pytest.raises(SpecError, match="line 1 of the pattern"):
        client.sql("pattern { V -> }")


def test_backfill_accepts_examples_gold_trees_and_rejections(client):
    conllu = "1\tBees\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tdance\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    items = [
        Example("a", (Segment(conllu=conllu),), {"score": 0.5}),
        Example("b", (Segment(conllu=conllu.replace("root", "dep").replace("\t0\t", "\t1\t")),),
                {"score": 1.0}),
        Rejection("c", "example", "unreadable"),
    ]  # fmt: skip
    spec = DatasetSpec("own", "train", "en", ("text",), (LabelSpec("score", "float"),), "gold")
    job = client.wait(client.backfill(spec, items).id)
    assert (job.state, job.counts.stored) == ("done", 1)
    assert sum(job.counts.dropped.values()) == 2
    assert job.counts.dropped["example"] == 1


def test_a_specification_that_contradicts_itself_is_refused(client):
    spec = DatasetSpec("bad name!", "train", "en", ("text",))
    with pytest.raises(SpecError):
        client.backfill(spec, [])


def test_requests_are_not_logged(client, caplog):
    with caplog.at_level(logging.INFO):
        client.health()
    assert not [record for record in caplog.records if record.name.startswith("http")]


@pytest.mark.slow
async def test_the_asynchronous_client_does_the_same(tmp_path):
    settings = {"workers": 1, "job_workers": 1}
    async with AsyncClient.embedded(str(tmp_path / "store"), **settings) as client:
        (item,) = (await client.parse(TEXT, tokenizer=TOKENIZER)).parsed()
        assert len(item.sentences) == 2
        assert await client.health()
        assert (await client.info())["name"] == "parsebank"
        assert await client.models()
        assert "# text = Bees dance." in await client.parse_conllu("Bees dance.")
        spec = SAMPLE.spec("dev", "en")
        job = await client.backfill(spec, islice(SAMPLE.read(None, "dev", "en"), 10))
        states: list[str] = []
        job = await client.wait(job.id, lambda job: states.append(job.state))
        assert (job.state, states[-1], job.counts.stored) == ("done", "done", 10)
        assert [found.id for found in await client.jobs()] == [job.id]
        assert await client.cancel(job.id) == await client.job(job.id) == job
        assert "sample" in [dataset["name"] for dataset in await client.datasets()]
        assert [*await client.sql("select 1 as one")] == [{"one": 1}]
        with pytest.raises(UnknownLanguageError):
            await client.parse("A text.", lang="xx")


def test_a_setting_that_does_not_exist_is_refused():
    with pytest.raises(SpecError, match="no_such_setting"):
        Client.embedded(no_such_setting=1)


def test_jobs_are_asked_for_by_state_dataset_and_page(script, answer, job_json):
    script.play(answer(200, [job_json]))
    with Client(script.url) as client:
        wanted = {"state": ["failed", "done"], "dataset": "x y", "before": "j0", "limit": 5}
        assert [job.id for job in client.jobs(**wanted)] == ["j1"]
    query = "state=failed&state=done&dataset=x+y&before=j0&limit=5"
    assert script.requests == [("GET", f"/jobs?{query}")]


def test_a_job_is_tried_again_and_a_refusal_is_named(script, answer, job_json):
    gone = {"error_type": "upload_gone", "message": "gone", "detail": {"job": "j1"}}
    script.play(answer(200, {**job_json, "failed_shards": []}), answer(409, gone))
    with Client(script.url) as client:
        assert client.retry("j1").state == "running"
        with pytest.raises(UploadGoneError, match="gone"):
            client.retry("j1")
    assert script.requests == [("POST", "/jobs/j1/retry")] * 2


def test_a_stored_parse_is_shown_and_deleted_by_its_key(client):
    (item,) = client.parse("Please delete me.", tokenizer=TOKENIZER).parsed()
    (stored,) = client.stored_parse(item.key).parsed()
    assert (stored.cached, stored.text, stored.parse) == (True, item.text, item.parse)
    planned = client.delete_parse(item.key, dry_run=True)
    assert (planned.dry_run, planned.keys, planned.examples) == (True, (item.key,), 1)
    assert client.stored_parse(item.key).parsed()
    gone = client.delete_parse(item.key)
    assert (gone.dry_run, gone.datasets) == (False, planned.datasets)
    with pytest.raises(UnknownKeyError):
        client.stored_parse(item.key)
    with pytest.raises(UnknownKeyError):
        client.delete_parse(item.key)


async def test_the_asynchronous_client_streams_stores_features_and_deletes_too(tmp_path):
    texts = ["Please delete me.", "", "It\u2028rains."]
    async with AsyncClient.embedded(str(tmp_path / "store"), workers=1, job_workers=0) as client:
        streamed = {place: item async for place, item in client.parse_iter(texts=texts)}
        assert [type(streamed[place]) for place in range(3)] == [ParsedItem, ItemError, ParsedItem]
        (example,) = (await client.features([("It works.", "Yes.")])).assembled()
        (again,) = (await client.stored_features(example.key)).assembled()
        assert again["input_ids"].tolist() == example["input_ids"].tolist()
        (item,) = (await client.parse(texts[0])).parsed()
        (stored,) = (await client.stored_parse(item.key)).parsed()
        assert stored.parse == item.parse == streamed[0].parse
        assert (await client.delete_parse(item.key)).keys == (item.key,)
        with pytest.raises(UnknownKeyError):
            await client.stored_parse(item.key)
