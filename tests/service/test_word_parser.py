"""Parsers of given words: their folder, their identity, their limits, and the commands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from clients.cli import build_app
from service.parsers import Limits, ParseInput, Parser, find_parser, identify, load_parser
from service.parsers.onnx import wants_gpu
from service.parsers.words.backend import WordParser
from service.parsers.words.encoding import _kept
from service.parsers.words.folder import find_word_parsers, read_card
from service.settings import Settings
from syntax.errors import (
    ModelLoadError,
    SentenceTooLongError,
    UnknownParserError,
    UnparsableTextError,
)
from tests.word_parser import NAME, load_added, run_command

FILES = ("parser.json", "words.onnx", "relations.onnx", "tokenizer.json", "segmentation.udpipe")


@pytest.fixture
def copied(own_models: Path, tmp_path: Path) -> Path:
    """A models folder of the test's own with the tiny parser, without a record."""
    folder = tmp_path / "models"
    shutil.copytree(own_models / NAME, folder / NAME)
    return folder


def named(folder: Path, name: str = NAME):
    return find_parser(Settings(store="unused", models_dir=folder), name)


def edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changes}), "utf-8")


def failing(*arguments: object) -> str:
    found = CliRunner().invoke(build_app(), [*map(str, arguments)])
    assert found.exit_code == 1, found.output
    return " ".join(found.output.split())


def test_an_added_parser_has_all_its_files_and_is_listed(own_models: Path) -> None:
    assert {path.name for path in (own_models / NAME).iterdir()} == set(FILES)
    listed = json.loads(run_command("models", "list", "--json", "--models-dir", own_models))
    (found,) = ((one["languages"], one["treebank"]) for one in listed if one["name"] == NAME)
    assert found == (["en"], "treebank")
    assert "ok" in run_command("models", "verify", NAME, "--models-dir", own_models)


def test_what_the_model_does_not_tag_is_left_open(own_english: Parser) -> None:
    parse = own_english.parse(ParseInput("raw", text="The dog barks."), Limits())
    assert set(parse.lemma) == set(parse.xpos) == set(parse.feats) == {None}
    assert None not in parse.upos


@pytest.mark.parametrize("file", FILES)
def test_every_file_counts_for_the_fingerprint(copied: Path, file: str) -> None:
    before = identify(named(copied)).fingerprint
    path = copied / NAME / file
    path.write_bytes(path.read_bytes() + b"\n")
    assert identify(named(copied)).fingerprint != before


def test_the_options_of_decoding_count_for_the_fingerprint(copied: Path) -> None:
    before = identify(named(copied))
    assert before.content["options"]["decoding"] == "mst"
    edit(copied / NAME / "parser.json", single_root=False)
    assert identify(named(copied)).fingerprint != before.fingerprint


@pytest.mark.parametrize(
    ("file", "message"),
    [("words.onnx", "ONNX Runtime cannot load"), ("tokenizer.json", "no tokenizer")],
)
def test_a_damaged_file_is_a_named_error(copied: Path, file: str, message: str) -> None:
    (copied / NAME / file).write_text("{}")
    with pytest.raises(ModelLoadError, match=message):
        load_added(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "of format 2, and this release reads 1"),
        ({"relations": "nsubj"}, "does not describe a parser"),
        ({"relations": []}, "does not describe a parser"),
        ({"max_pieces": 2}, "does not describe a parser"),
        ({"tags": {"lemma": ["a"]}}, "does not describe a parser"),
        ({"special_tokens": None}, "does not describe a parser"),
    ],
)
def test_a_card_of_another_kind_is_refused(copied: Path, change: dict, message: str) -> None:
    edit(copied / NAME / "parser.json", **change)
    with pytest.raises(ModelLoadError, match=message):
        read_card(copied / NAME)


@pytest.mark.parametrize("file", ["words.onnx", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_listed_with_its_problem(copied: Path, file: str) -> None:
    (copied / NAME / file).unlink()
    (model,) = find_word_parsers(copied / "parsebank")
    assert model.problem is not None
    assert f"lacks {file}" in model.problem
    assert model.size > 0
    with pytest.raises(ModelLoadError, match="lacks"):
        load_parser(named(copied))


def test_more_words_than_positions_are_too_long_or_cut(own_english: Parser) -> None:
    """The tiny encoder reads 128 pieces, two of which are special tokens."""
    tokens = ("go",) * 127
    with pytest.raises(SentenceTooLongError) as caught:
        own_english.parse(ParseInput("pretokenized", tokens=tokens), Limits())
    assert caught.value.detail == {"words": 127, "limit": 126}
    assert "choose a parser that reads longer ones" in str(caught.value)
    with pytest.raises(SentenceTooLongError, match="raise max_words_per_sentence, or ask"):
        own_english.parse(
            ParseInput("pretokenized", tokens=tokens), Limits(max_words_per_sentence=100)
        )
    parts = own_english.parse(ParseInput("pretokenized", None, tokens, "split"), Limits())
    assert parts.sentence_first_word == [0, 126]
    whole = own_english.parse(ParseInput("pretokenized", tokens=tokens[:126]), Limits())
    assert parts.head[:126] == whole.head


def test_more_pieces_than_positions_are_parsed_by_the_first_of_each_word(own_english) -> None:
    tokens = ("internationalization",) * 125 + ("go",)
    parse = own_english.parse(ParseInput("pretokenized", tokens=tokens), Limits())
    assert parse.form == list(tokens)
    assert len(parse.sentence_start) == 1


@settings(max_examples=60)
@given(st.lists(st.integers(-1, 8), max_size=60), st.integers(9, 40))
def test_words_keep_as_many_first_pieces_as_fit(owners: list[int], limit: int) -> None:
    words = np.array(sorted(owners), np.int64)
    kept = _kept(words, limit)
    assert kept.sum() <= limit
    if len(words) <= limit:
        assert kept.all()
        return
    counts = {word: int(((words == word) & kept).sum()) for word in {*owners} - {-1}}
    had = {word: owners.count(word) for word in counts}
    most = max(counts.values(), default=0)
    assert counts == {word: min(most, had[word]) for word in counts}
    if any(had[word] > most for word in had):
        assert sum(min(most + 1, count) for count in had.values()) > limit


def test_words_that_the_tokenizer_drops_are_parsed_too(own_english: Parser) -> None:
    parse = own_english.parse(
        ParseInput("pretokenized", tokens=("\u200b", "dog", "\x85")), Limits()
    )
    assert parse.word_count == 3
    alone = own_english.parse(ParseInput("pretokenized", tokens=("\x90",)), Limits())
    assert alone.head == [0]


@settings(max_examples=25)
@given(
    tokens=st.lists(
        st.sampled_from(["the", "dog", "cats", "go", "was", "eaten", "by", ".", "Venez", "parc"])
    )
)
def test_a_root_is_called_root_and_nothing_else_is(own_english: Parser, tokens: list[str]) -> None:
    item = ParseInput("pretokenized", tokens=("Go", *tokens[:20]))
    parse = own_english.parse(item, Limits())
    assert [name == "root" for name in parse.deprel] == [head == 0 for head in parse.head]
    assert parse.head.count(0) == 1


def test_a_worker_that_loads_the_parser_itself_says_the_same(own_models, own_english) -> None:
    """As workers on a GPU do, where loaded weights cannot be inherited."""
    later = WordParser(named(own_models), own_english.identity)
    item = ParseInput("raw", text="The dog barks. Cats go.")
    assert later.parse(item, Limits()) == own_english.parse(item, Limits())


@pytest.mark.skipif(wants_gpu("auto"), reason="ONNX Runtime is built for a GPU")
def test_a_missing_gpu_is_a_named_error(own_models: Path) -> None:
    with pytest.raises(ModelLoadError, match="was not built for a GPU"):
        load_parser(named(own_models), "cuda")


def test_a_parser_without_a_udpipe_model_takes_tokens_alone(exported_parser, tmp_path) -> None:
    folder = tmp_path / "models"
    run_command(
        *("models", "add", "bare", "--from", exported_parser, "--words-from", "none"),
        *("--models-dir", folder),
    )
    parser = load_added(folder, "parsebank/bare")
    assert parser.parse(ParseInput("pretokenized", tokens=("Go",)), Limits()).head == [0]
    for item in (ParseInput("raw", text="Go."), ParseInput("retokenize", tokens=("Go", "."))):
        with pytest.raises(UnparsableTextError, match="has no UDPipe model"):
            parser.parse(item, Limits())


def test_a_parser_is_removed_and_a_name_taken_once(exported_parser: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    command = ("models", "add", "tiny", "--from", exported_parser, "--models-dir", folder)
    run_command(*command)
    record = json.loads((folder / "registry.json").read_text("utf-8"))["models"][NAME]
    assert record["source"] == str(exported_parser)
    assert record["language"] == "en"
    assert "is there already" in failing(*command)
    run_command("models", "remove", NAME, "--models-dir", folder)
    assert not (folder / "parsebank").exists()
    with pytest.raises(UnknownParserError):
        named(folder)


@pytest.mark.slow
def test_a_run_is_added_without_being_exported_first(parser_run: Path, tmp_path: Path) -> None:
    run_command("models", "add", "tiny", "--from", parser_run, "--models-dir", tmp_path)
    assert identify(named(tmp_path)).name == NAME


def test_a_mirror_gives_it_to_others(own_models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    run_command("models", "pull", NAME, "--from", own_models, "--models-dir", folder)
    assert identify(named(folder)).fingerprint == identify(named(own_models)).fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lang", "fi"), "no UDPipe model serves the language 'fi'"),
        (("--words-from", "nowhere"), "unknown parser 'nowhere'"),
        (("--words-from", NAME), "is not a UDPipe model"),
        (("--tokenizer", "nowhere/at-all"), "nowhere/at-all"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_installed(
    own_models: Path,
    exported_parser: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, str],
    message: str,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    command = ("models", "add", "other", "--from", exported_parser, "--models-dir", own_models)
    assert message in failing(*command, *options)
    assert not (own_models / "parsebank" / "other").exists()


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", ""])
def test_a_name_that_leads_elsewhere_is_refused(exported_parser, tmp_path, name) -> None:
    message = failing("models", "add", name, "--from", exported_parser, "--models-dir", tmp_path)
    assert "is no name for a model" in message


def test_a_folder_that_is_neither_is_refused(tmp_path: Path) -> None:
    message = failing("models", "add", "x", "--from", tmp_path, "--models-dir", tmp_path / "models")
    assert "is it the output of a finished run?" in message
