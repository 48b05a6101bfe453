"""What every parser, mode and format must hold: they say the same, and offsets are exact."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.app import create_app
from service.settings import Settings
from syntax import parse_conllu
from syntax.examples import TOKEN_MODES
from syntax.trees.spacing import attribute
from tests.spacy_parser import NAME as SPACY
from tests.word_parser import NAME as OWN

from .conftest import connected, running
from .contract import ALL, MATRICES, READERS, TOKENIZER, ask, check_item, items, without_pieces

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENGLISH, FRENCH, STANZA = ("udpipe/english-ewt", "udpipe/french-partut-ud-2.5-191206", "stanza/fr")
MODES = ("raw", "sentence", *TOKEN_MODES)
HEAVY = (STANZA, SPACY)
PARSERS = (ENGLISH, FRENCH, OWN, *(pytest.param(x, marks=pytest.mark.slow) for x in HEAVY))
EXTRAS: dict[str, dict[str, Any]] = {
    "bare": {},
    "matrices": {"matrices": list(MATRICES)},
    "pieces": {"tokenizer": TOKENIZER},
    "all": ALL,
    "chain": ALL | {"policy": "chain"},
}
TEXTS = [
    "Don't panic! It's 3½ o'clock in New York.",
    "Le prix du pain n'est pas celui des gâteaux.\n\nIl l'a dit  aux enfants.",
    "",
    "👩‍👩‍👧‍👦 e\u0301t\u0301 — «\u00a0ça\u00a0» 日本 \u05e9\u05dc\u05d5\u05dd",
    "ab\0cd",
    "\tUn \r\n deux.\u2003Trois",
]
TOKENS = [
    ["Don't", "panic", "!"],
    ["Le", "prix", "du", "pain", "des", "gâteaux", "New York"],
    [],
    ["👩‍👩‍👧‍👦", "«", "l'enfant", "日本"],
    ["a", " "],
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(
    tmp_path_factory: pytest.TempPathFactory, own_models: Path, request: pytest.FixtureRequest
) -> AsyncIterator[httpx.AsyncClient]:
    """A service with all models that there are, one worker each."""
    data = os.environ.get("PARSEBANK_DATA")
    folder = tmp_path_factory.mktemp("models")
    models = [own_models / "parsebank", *(Path(data, "models").iterdir() if data else ())]
    if find_spec("spacy"):
        models.append(request.getfixturevalue("spacy_models") / "spacy")
    for place in models:
        (folder / place.name).symlink_to(place)
    patient = {"model_load_seconds": 600, "request_deadline_seconds": 600}
    store = str(tmp_path_factory.mktemp("store"))
    chosen = Settings(store=store, models_dir=folder, workers=1, job_workers=0, **patient)
    async with running(create_app(chosen)) as app, connected(app) as connection:
        yield connection


@pytest.fixture(params=PARSERS)
def parser(request: pytest.FixtureRequest) -> str:
    if request.param in (FRENCH, STANZA):
        request.getfixturevalue("data_dir")
    if request.param == STANZA:
        pytest.importorskip("stanza")
    if request.param == SPACY:
        request.getfixturevalue("spacy_models")
    return str(request.param)


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("mode", MODES)
async def test_all_formats_say_the_same(client, parser, mode, extras) -> None:
    given = {"tokens": TOKENS} if "token" in mode else {"texts": TEXTS}
    body = {"parser": parser, "mode": mode, **given, **EXTRAS[extras]}
    answers = {
        shape: read((await ask(client, shape, **body)).content) for shape, read in READERS.items()
    }
    first = answers["json"]
    assert answers["ndjson"] == first
    assert answers["arrow"] == first
    assert answers["conllu"] == [without_pieces(item) for item in first]


@pytest.mark.parametrize("mode", MODES)
async def test_every_text_has_its_offsets_or_its_error(client, parser, mode) -> None:
    given = {"tokens": TOKENS} if "token" in mode else {"texts": TEXTS}
    texts = [" ".join(tokens) for tokens in TOKENS] if "token" in mode else TEXTS
    body = {"parser": parser, "mode": mode, **given, **ALL}
    errors = {}
    for at, (item, text) in enumerate(zip(await items(client, **body), texts, strict=True)):
        if "error" in item:
            errors[at] = item["error"]["error_type"]
        else:
            check_item(item, text)
    expected = {2: "empty_text", 4: "empty_token" if "token" in mode else "invalid_character"}
    assert errors == expected


@pytest.mark.parametrize("mode", TOKEN_MODES)
async def test_every_token_has_its_words(client: httpx.AsyncClient, parser: str, mode: str) -> None:
    tokens = [sent for sent in TOKENS if all(token.strip() for token in sent) and sent]
    labels = [[f"B-{at}" for at in range(len(sent))] for sent in tokens]
    body = {"parser": parser, "mode": mode, "tokens": tokens, "token_labels": labels}
    for item, sent in zip(await items(client, **body), tokens, strict=True):
        words = [word for sentence in item["sentences"] for word in sentence["words"]]
        assert len(item["token_words"]) == len(sent)
        assert sorted({word for own in item["token_words"] for word in own}) == [*range(len(words))]
        assert len(item["word_labels"]) == len(words)
        if mode != "retokenize":
            assert [own["form"] for one in item["sentences"] for own in one["tokens"]] == sent
            assert [word for own in item["token_words"] for word in own] == [*range(len(words))]
        if mode == "pretokenized":
            assert [word["form"] for word in words] == sent
            assert item["token_words"] == [[at] for at in range(len(sent))]


SCRIPTS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
COMMON = st.sampled_from(
    [" ", "  ", "\n", "\r\n", "\t", ". ", "can't ", "du ", "l'", "e\u0301", "\u200d", "\ufeff"]
)
ANY_TEXT = st.lists(COMMON | st.text(SCRIPTS, max_size=6), max_size=12).map("".join)


async def check_any_texts(client: httpx.AsyncClient, parser: str, texts: list[str]) -> None:
    """In order; the only errors are that there is no text, or no word."""
    for mode in ("raw", "sentence"):
        found = await items(client, parser=parser, mode=mode, texts=texts, store=False, **ALL)
        for item, text in zip(found, texts, strict=True):
            if not text.strip():
                assert item["error"]["error_type"] == "empty_text"
            elif "error" in item:
                assert item["error"]["error_type"] == "no_sentence"
            else:
                check_item(item, text)


ANY_TEXTS = st.lists(ANY_TEXT, min_size=1, max_size=5)
QUICK = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
THOROUGH = settings(QUICK, max_examples=100)


@given(ANY_TEXTS)
@QUICK
async def test_offsets_are_exact_in_all_scripts(client, parser, texts) -> None:
    await check_any_texts(client, parser, texts)


@pytest.mark.slow
@given(ANY_TEXTS)
@THOROUGH
async def test_offsets_are_exact_in_all_scripts_at_length(client, parser, texts) -> None:
    await check_any_texts(client, parser, texts)


@given(st.lists(st.lists(ANY_TEXT, max_size=6), min_size=1, max_size=4))
@QUICK
async def test_any_tokens_find_their_words(client, parser, tokens) -> None:
    for mode in ("pretokenized", "retokenize"):
        found = await items(client, parser=parser, mode=mode, tokens=tokens, store=False, **ALL)
        for item, sent in zip(found, tokens, strict=True):
            if not sent:
                assert item["error"]["error_type"] == "empty_text"
            elif not all(token.strip() for token in sent):
                assert item["error"]["error_type"] == "empty_token"
            elif "error" in item:
                assert item["error"]["error_type"] == "no_sentence"
            else:
                check_tokens(item, sent, mode)


def check_tokens(item: dict[str, Any], tokens: list[str], mode: str) -> None:
    assert item["text"] == " ".join(tokens)
    assert len(item["token_words"]) == len(tokens)
    if mode == "retokenize":
        check_item(item, item["text"])
    else:
        assert item["token_words"] == [[at] for at in range(len(tokens))]


async def test_the_udpipe_api_says_the_same(client: httpx.AsyncClient, parser: str) -> None:
    text = TEXTS[1]
    fields = {"data": text, "model": parser, "tokenizer": "ranges", "tagger": "", "parser": ""}
    answer = (await client.post("/api/process", data=fields, timeout=120)).json()
    found = list(parse_conllu(answer["result"]))
    (item,) = await items(client, parser=parser, texts=[text])
    for sentence, expected in zip(found, item["sentences"], strict=True):
        assert [word.form for word in sentence.words] == [w["form"] for w in expected["words"]]
        assert [word.head for word in sentence.words] == [w["head"] for w in expected["words"]]
        assert [word.lemma for word in sentence.words] == [w["lemma"] for w in expected["words"]]
        ranges = [attribute(sentence.misc_of(token), "TokenRange") for token in sentence.tokens]
        assert ranges == [f"{t['start_char']}:{t['end_char']}" for t in expected["tokens"]]
    plain = await client.post("/api/process", data=fields | {"output": "plaintext"})
    assert plain.json()["result"] == text
