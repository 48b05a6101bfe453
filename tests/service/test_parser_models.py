"""Which parser a name, a language or a file stands for."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from service.parsers import BACKENDS, find_parser, identify, list_models
from service.parsers.languages import language_of, ud_languages
from service.parsers.records import card_las
from service.settings import Settings
from syntax.errors import ModelLoadError, UnknownLanguageError, UnknownParserError


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    """A folder with copies of the bundled model under several names."""
    folder = tmp_path / "models"
    folder.mkdir()
    source = find_parser(Settings(store="unused"), "udpipe/english-ewt").path
    for name in ("german-gsd-ud-2.5", "norwegian-bokmaal", "mystery"):
        shutil.copy(source, folder / f"{name}.udpipe")
    card = {"language": "xx", "licence": "CC0", "treebank": "UD_Mystery"}
    (folder / "mystery.json").write_text(json.dumps(card))
    return folder


@pytest.fixture
def settings(models_dir: Path) -> Settings:
    return Settings(store="unused", models_dir=models_dir)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("udpipe/english-ewt", "udpipe/english-ewt"),
        ("english-ewt", "udpipe/english-ewt"),
        ("english", "parsebank/english"),
        ("udpipe/german", "udpipe/german-gsd-ud-2.5"),
        ("de", "udpipe/german-gsd-ud-2.5"),
        ("xx", "udpipe/mystery"),
    ],
)
def test_a_parser_is_found_by_name_prefix_or_language(settings, name, found) -> None:
    assert find_parser(settings, name).name == found


def test_a_language_is_read_from_the_card_or_the_file_name(settings: Settings) -> None:
    langs = {model.name: model.langs for model in list_models(settings)}
    assert langs["udpipe/mystery"] == ("xx",)
    assert langs["udpipe/norwegian-bokmaal"] == ("no",)
    assert find_parser(settings, lang="no").name == "udpipe/norwegian-bokmaal"


def test_unknown_names_list_the_known_ones(settings: Settings) -> None:
    with pytest.raises(UnknownParserError, match="udpipe/english-ewt"):
        find_parser(settings, "udpipe/englisch")
    with pytest.raises(UnknownLanguageError, match=r"only de, en.* --remote --lang tlh"):
        find_parser(settings, lang="tlh")
    with pytest.raises(UnknownLanguageError, match="serves en"):
        find_parser(settings, "udpipe/english-ewt", "de")
    with pytest.raises(UnknownParserError):
        find_parser(settings, "")


def test_the_operator_chooses_between_models_of_a_language(models_dir: Path) -> None:
    shutil.copy(models_dir / "mystery.udpipe", models_dir / "english-other.udpipe")
    folder_first = Settings(store="unused", models_dir=models_dir)
    chosen = Settings(store="unused", models_dir=models_dir, parsers={"en": "udpipe/english-ewt"})
    assert find_parser(folder_first, lang="en").name == "udpipe/english-other"
    assert find_parser(chosen, lang="en").name == "udpipe/english-ewt"


def test_the_fingerprint_follows_the_files_content_and_name(settings: Settings) -> None:
    german, mystery = find_parser(settings, "german"), find_parser(settings, "mystery")
    before = identify(german)
    assert before.content["sha256"] == identify(mystery).content["sha256"]
    assert before.fingerprint != identify(mystery).fingerprint
    german.path.write_bytes(german.path.read_bytes() + b"\0")
    os.utime(german.path, ns=(1, 1))
    assert identify(german).fingerprint != before.fingerprint


def test_a_broken_card_is_a_named_error(settings: Settings, models_dir: Path) -> None:
    (models_dir / "mystery.json").write_text("{")
    for content, problem in (("{", "not JSON"), ("[" * 100_000, "not JSON"), ("[]", "JSON object")):
        (models_dir / "mystery.json").write_text(content)
        with pytest.raises(ModelLoadError, match=problem):
            identify(find_parser(settings, "mystery"))
    assert identify(find_parser(settings, "german"))


def test_every_backend_says_its_version() -> None:
    backends = ["parsebank.v2", "udpipe.v1", "stanza.v1", "parsebank.v1", "spacy.v1"]
    assert list(BACKENDS) == [*backends, "udpipe2.v1"]
    assert all(backend.version() for backend in BACKENDS.values())


def test_language_names_are_ud_file_names() -> None:
    assert all(name == name.lower() and " " not in name for name in ud_languages())
    assert language_of("Ancient_Greek-PROIEL") == "grc"
    assert language_of("klingon-x") is None


def test_las_is_that_of_running_text_of_a_card_of_one_treebank_or_several() -> None:
    of_test = {"test": {"raw": {"LAS": 80.5}, "gold_tokens": {"LAS": 90.0}}}
    assert card_las({"scores": of_test}) == card_las({"scores": {"UD_A-B": of_test}}) == 80.5
    for other in (None, [], {}, {"dev": {"raw": {"LAS": 1}}}, {"test": {"raw": {"LAS": "x"}}}):
        assert card_las({"scores": other}) is None
