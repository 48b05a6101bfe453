"""A UDPipe 2 service as a parser: its answers, what is sent to it, and what goes wrong.

No test asks LINDAT: a server of ours speaks its protocol over HTTP, with parses of UDPipe 1.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients import Client
from service.models.add import add_remote
from service.parsers import Limits, ParseInput, Parser, find_parser, identify, load_parser
from service.parsers.udpipe2 import backend
from service.parsers.udpipe2.backend import RemoteParserError
from service.settings import Settings
from syntax.errors import (
    ConflictError,
    ModelLoadError,
    ParsebankError,
    SpecError,
    UnknownModelError,
    UnknownParserError,
    UnparsableTextError,
)
from tests.word_parser import run_command

from .udpipe2_server import MODEL, UdpipeServer

NAME = f"udpipe2/{MODEL}"
TEXT = "I can't go. \r\n\r\n 👩‍👩‍👧 Really?\n"
TOKENS = ("New York", "can't", "a\tb", "sleep", ".")
ITEMS = [
    ParseInput("raw", text=TEXT),
    ParseInput("raw", text="The dog barks. It's late."),
    ParseInput("sentence", text=TEXT),
    *(ParseInput(mode, tokens=TOKENS) for mode in ("pretokenized", "retokenize", "tokens_mwt")),
]


@pytest.fixture
def service(udpipe_service: UdpipeServer) -> UdpipeServer:
    udpipe_service.asked.clear()
    return udpipe_service


def test_answers_are_those_of_the_model_behind_the_service(remote_english, english) -> None:
    limits = Limits(max_words_per_sentence=6)
    cut = [ParseInput(item.mode, item.text, item.tokens, "split") for item in ITEMS]
    found = list(remote_english.parse_many([*ITEMS, *cut], limits))
    expected = list(english.parse_many([*ITEMS, *cut], limits))
    assert [str(one) if isinstance(one, Exception) else one for one in found] == [
        str(one) if isinstance(one, Exception) else one for one in expected
    ]


def test_sentences_of_many_texts_are_analysed_in_one_request(service, remote_english) -> None:
    list(remote_english.parse_many([ITEMS[3]] * 5, Limits()))
    (asked,) = service.asked
    assert set(asked) == {"model", "data", "input", "tagger", "parser"}
    assert asked["model"] == MODEL
    service.asked.clear()
    list(remote_english.parse_many(ITEMS[:3], Limits()))
    *tokenized, analysed = service.asked
    assert [one["data"] for one in tokenized[:2]] == [TEXT, ITEMS[1].text]
    assert all("parser" not in one for one in tokenized)
    assert [one["tokenizer"] for one in tokenized] == ["ranges", "ranges", "ranges;presegmented"]
    assert analysed["data"].count("\n\n") == 5


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("status:500", "/api/process answers 500 Internal Server Error"),
        ("status:302", "answers 302 Found"),
        ("hang", r"took too long to answer \(ReadTimeout\)"),
        ("page", "has no 'result'"),
        ("lose", "answers 1 sentences for 2"),
    ],
)
def test_a_fault_of_the_service_is_no_fault_of_a_text(
    service, remote_models, monkeypatch, fault, message
) -> None:
    monkeypatch.setattr(backend, "ANSWER_SECONDS", 0.3)
    parser = fresh(remote_models)
    service.faults.append(fault)
    outcomes = list(parser.parse_many([ITEMS[3], ITEMS[3]], Limits()))
    assert all(isinstance(one, RemoteParserError) for one in outcomes)
    with pytest.raises(RemoteParserError, match=message):
        raise outcomes[0]
    assert parser.parse(ITEMS[3], Limits()).form == [*TOKENS]


def fresh(models: Path) -> Parser:
    return load_parser(find_parser(Settings(store="unused", models_dir=models), NAME))


def test_other_words_than_given_fail_the_text_alone(service, remote_english) -> None:
    service.faults.append("drop")
    one, other = remote_english.parse_many([ITEMS[3], ITEMS[3]], Limits())
    assert isinstance(one, UnparsableTextError)
    assert f"{NAME} answers 4 words, not the 5 that it was sent" in one.message
    assert not isinstance(other, ParsebankError)


def test_a_model_that_was_replaced_and_a_service_that_is_gone_are_named(
    service, remote_models, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(service, "model", "english-ewt-ud-2.16-260101")
    with pytest.raises(RemoteParserError, match=r"'english-ewt-ud-2.16-260101' for 'english-ewt-"):
        fresh(remote_models).parse(ITEMS[0], Limits())
    card = {"url": "http://127.0.0.1:9/api", "model": MODEL}
    (tmp_path / f"{MODEL}.udpipe2").write_text(json.dumps(card), "utf-8")
    with pytest.raises(RemoteParserError, match=r"127.0.0.1:9/api/process cannot be reached"):
        fresh(tmp_path).parse(ITEMS[0], Limits())


def test_a_remote_model_answers_to_its_full_name_alone(remote_models) -> None:
    settings = Settings(store="unused", models_dir=remote_models)
    assert find_parser(settings, NAME.upper()).name == NAME
    assert find_parser(settings, lang="en").name == "parsebank/english"
    assert find_parser(settings, "english-ewt").name == "udpipe/english-ewt"
    for short in (MODEL, "udpipe2/english-ewt"):
        with pytest.raises(UnknownParserError):
            find_parser(settings, short)
    chosen = Settings(store="unused", models_dir=remote_models, parsers={"en": NAME})
    assert find_parser(chosen, lang="en").name == NAME


def test_fingerprint_and_origin_are_of_the_card(remote_models, tmp_path) -> None:
    identity = identify(find_parser(Settings(store="unused", models_dir=remote_models), NAME))
    assert identity.content["model"] == NAME
    for card, message in (
        ({"model": MODEL}, "names no service: `url` is None"),
        ({"url": "https://example.org", "model": 3}, "names no model: `model` is 3"),
    ):
        (tmp_path / f"{MODEL}.udpipe2").write_text(json.dumps(card), "utf-8")
        model = find_parser(Settings(store="unused", models_dir=tmp_path), NAME)
        with pytest.raises(ModelLoadError, match=message):
            identify(model)


def test_the_command_adds_a_model_that_the_service_lists(service, tmp_path) -> None:
    run_command("models", "add", MODEL, "--from", f"{service.url}/", "--models-dir", tmp_path)
    (path,) = tmp_path.rglob("*.udpipe2")
    card = {"url": service.url, "model": MODEL, "language": "en", "licence": None}
    assert json.loads(path.read_text("utf-8")) == card
    for name, error, message in (
        (MODEL, ConflictError, f"{NAME} is there already"),
        ("english", UnknownModelError, f"'english'.*{MODEL}"),
        ("english-tags-ud-2.15-241121", SpecError, "has no parser"),
    ):
        with pytest.raises(error, match=message):
            add_remote(name, service.url, tmp_path)
    assert service.asked == [], "no text was sent"
    run_command("models", "remove", NAME, "--models-dir", tmp_path)
    assert not [*tmp_path.rglob("*.udpipe2")]


@pytest.mark.slow
def test_the_service_parses_with_it_and_sends_a_text_once(service, remote_models, tmp_path) -> None:
    with Client.embedded(str(tmp_path / "store"), models_dir=remote_models) as client:
        client.parse("The dog barks.", lang="en")
        assert service.asked == []
        (found,) = client.parse("The dog barks.", parser=NAME).items
        assert found.parse.form == ["The", "dog", "barks", "."]
        before = len(service.asked)
        client.parse("The dog barks.", parser=NAME)
        assert len(service.asked) == before == 2
        service.faults.append("status:503")
        (failed,) = client.parse("It rains.", parser=NAME).items
        assert failed.error_type == "remote_parser"
