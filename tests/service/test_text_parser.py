"""The parser of running text that ships: how it reads texts, and that each is read for itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.parsers import find_parser, load_parser
from service.parsers.base import Limits, ParseInput, Parser
from service.parsers.registry import bundled_models_dir
from service.parsers.text.folder import CARD, find_text_parsers, read_card
from service.parsers.text.programs import mean_pieces
from service.settings import Settings
from service.training.evaluation import evaluate_parser
from service.training.own_command import lemma_exceptions
from syntax import Parse
from syntax.errors import ModelLoadError, NoSentenceError, SentenceTooLongError
from syntax.trees.conllu import read_conllu
from tests.text_parser import train_text_parser

BUNDLED = bundled_models_dir() / "parsebank"
LEAST = {
    "raw": {"LAS": 86.5, "UPOS": 95.5, "AllTags": 93, "Lemmas": 96.5, "Words": 99, "Sentences": 88},
    "gold_tokens": {"LAS": 88.7},
}
"""F1 on the test split of UD_English-EWT."""
TEXTS = (
    "Birds sing.",
    "I don't know. Mr. Smith's dogs cannot swim, can they?",
    "No\n\nStop\n\nThe committee that the minister had appointed met on Tuesday in Geneva.",
    "ok",
    "She said: \"We'll see...\" and left at 10:30 a.m., didn't she?",
    "http://www.example.org/a?b=c is down again :-( !!!",
    "Der Hund bellt. 犬が吠える。 Собака лает.",
    "A very long list: " + ", ".join(f"item {number}" for number in range(60)) + ".",
    "One line\nbreaks here. Another\nbreaks there.",
)


@pytest.fixture(scope="module")
def parser() -> Parser:
    return load_parser(find_parser(Settings(), "parsebank/english"))


def raw(*texts: str) -> list[ParseInput]:
    return [ParseInput("raw", text=text) for text in texts]


def parses(parser: Parser, items: Sequence[ParseInput]) -> list[Parse]:
    found = list(parser.parse_many(items, Limits()))
    assert all(isinstance(one, Parse) for one in found), found
    return found  # type: ignore[return-value]


def test_it_answers_for_english_unless_another_is_named() -> None:
    assert find_parser(Settings(), lang="en").name == "parsebank/english"
    assert find_parser(Settings()).name == "parsebank/english"
    assert find_parser(Settings(), "english-ewt").name == "udpipe/english-ewt"


def test_every_column_is_filled(parser: Parser) -> None:
    (parse,) = parses(parser, raw("The dogs didn't bark at 3 o'clock. Birds sang."))
    sentences = parse.sentences()
    assert [sentence.text for sentence in sentences] == [
        "The dogs didn't bark at 3 o'clock.",
        "Birds sang.",
    ]
    words = {word.form: word for word in sentences[0].words}
    assert (words["dogs"].lemma, words["dogs"].upos, words["dogs"].xpos) == ("dog", "NOUN", "NNS")
    assert words["dogs"].feats == "Number=Plur"
    assert [words["did"].lemma, words["n't"].lemma] == ["do", "not"]
    assert sentences[0].tokens[2].form == "didn't"
    assert sentences[0].tokens[2].word_ids == (3, 4)
    assert [word.deprel for word in sentences[1].words] == ["nsubj", "root", "punct"]


@pytest.mark.parametrize(
    ("item", "forms"),
    [
        (ParseInput("sentence", text="It works.\n\nIt does"), "It works . It does"),
        (ParseInput("pretokenized", tokens=("I", "don't", "New York")), "I|don't|New York"),
        (ParseInput("retokenize", tokens=("I", "can't", "go.")), "I ca n't go ."),
        (ParseInput("tokens_mwt", tokens=("I", "can't", "go.")), "I ca n't go."),
    ],
)
def test_sentences_and_words_can_be_given(parser: Parser, item: ParseInput, forms: str) -> None:
    (parse,) = parses(parser, [item])
    assert parse.form == forms.split("|" if "|" in forms else " ")
    assert parse.sentence_first_word == [0]
    assert parse.text == item.joined


@pytest.mark.slow
@given(st.data())
@settings(deadline=None, max_examples=25)
def test_a_text_is_parsed_the_same_in_any_company(parser: Parser, data: st.DataObject) -> None:
    alone = {
        text: parser.parse(item, Limits()) for text, item in zip(TEXTS, raw(*TEXTS), strict=True)
    }
    chosen = data.draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=30))
    for text, parse in zip(chosen, parses(parser, raw(*chosen)), strict=True):
        assert parse == alone[text]


def test_threads_and_forks_give_the_same_parses(parser: Parser) -> None:
    items = raw(*TEXTS)
    alone = parses(parser, items)
    context = get_context("fork")
    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(lambda _: parses(parser, items), range(2)))
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(parses(parser, items)))
    child.start()
    results.append(queue.get(timeout=60))
    child.join()
    assert all(result == alone for result in results)


def test_a_long_text_is_read_in_windows(parser: Parser) -> None:
    paragraph = "The cat sat on the mat. It didn't move. Why should it? " * 200
    (parse,) = parses(parser, raw(paragraph))
    texts = [sentence.text for sentence in parse.sentences()]
    assert texts == ["The cat sat on the mat.", "It didn't move.", "Why should it?"] * 200
    assert parse.text == paragraph


@pytest.mark.slow
def test_a_sentence_that_no_window_holds_is_read_in_several(parser: Parser) -> None:
    text = "and then " * 450
    (parse,) = parses(parser, [ParseInput("sentence", text=text)])
    assert parse.form == text.split()
    assert parse.sentence_first_word == [0]
    words = tuple(f"antidisestablishmentarianism{number}" for number in range(300))
    (parse,) = parses(parser, [ParseInput("pretokenized", tokens=words)])
    assert parse.form == list(words)


ODD = st.text(
    st.one_of(
        st.characters(exclude_categories=("Cs",), exclude_characters="\0"),
        st.sampled_from(" \n\u200b\u200f\u202e👩‍👩‍👧‍👦éİא中.’'\"-"),
    ),
    min_size=1,
    max_size=80,
)


@given(ODD)
@settings(deadline=None, max_examples=150)
def test_odd_texts_are_parsed_whole_or_refused_by_name(parser: Parser, text: str) -> None:
    (outcome,) = parser.parse_many(raw(text), Limits())
    if not isinstance(outcome, Parse):
        assert isinstance(outcome, NoSentenceError)
        assert not text.strip()
        return
    covered = np.zeros(len(text), bool)
    for start, end in zip(outcome.token_start, outcome.token_end, strict=True):
        covered[start:end] = True
    assert all(ok or character.isspace() for ok, character in zip(covered, text, strict=True))
    for sentence in outcome.sentences():
        assert [word.head for word in sentence.words].count(0) == 1


@pytest.mark.parametrize("text", ["x" * 10_000, "😀" * 3_000, "." * 5_000, "א" * 2_000])
def test_long_runs_without_spaces_end(parser: Parser, text: str) -> None:
    (outcome,) = parser.parse_many(raw(text), Limits())
    assert isinstance(outcome, Parse | SentenceTooLongError)


@given(
    st.integers(1, 6).flatmap(
        lambda size: st.lists(
            st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).map(
                lambda pair: (min(pair), max(pair))
            ),
            min_size=1,
            max_size=8,
        ).map(lambda spans: (size, spans))
    )
)
def test_means_of_pieces_are_those_of_their_rows(case: tuple[int, list[tuple[int, int]]]) -> None:
    size, spans = case
    rows = np.random.default_rng(size).normal(size=(size, 3)).astype(np.float32)
    slow = [rows[first : last + 1].mean(0) for first, last in spans]
    np.testing.assert_allclose(mean_pieces(rows, np.array(spans)), slow, atol=1e-6)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A models folder with a copy of the bundled parser."""
    shutil.copytree(BUNDLED / "english", tmp_path / "parsebank" / "copy")
    return tmp_path


def load_copy(folder: Path) -> Any:
    return load_parser(find_parser(Settings(models_dir=folder), "parsebank/copy"))


def test_a_parser_of_several_languages_answers_where_no_other_does(copied: Path) -> None:
    path = copied / "parsebank" / "copy" / CARD
    card = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**card, "languages": ["en", "wo"]}), encoding="utf-8")
    settings = Settings(models_dir=copied)
    assert find_parser(settings, lang="wo").name == "parsebank/copy"
    assert find_parser(settings, lang="en").name == "parsebank/english"
    assert find_parser(settings, "parsebank/copy", "en").name == "parsebank/copy"


@pytest.mark.parametrize("missing", ["words.onnx", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_listed_with_its_problem(copied: Path, missing: str) -> None:
    (copied / "parsebank" / "copy" / missing).unlink()
    (model,) = find_text_parsers(copied / "parsebank")
    assert missing in str(model.problem)
    with pytest.raises(ModelLoadError, match=missing):
        load_copy(copied)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("format", 99, "is of format 99"),
        ("labels", {"split": [""], "tags": {"gender": ["m"]}, "deprel": ["root"]}, "labels"),
        ("max_pieces", 4, "max_pieces"),
    ],
)
def test_a_card_that_describes_no_parser_is_refused(copied, key, value, said) -> None:
    path = copied / "parsebank" / "copy" / CARD
    card = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**card, key: value}), encoding="utf-8")
    with pytest.raises(ModelLoadError, match=said):
        read_card(path.parent)


@pytest.mark.parametrize("name", ["pieces.onnx", "tokenizer.json"])
def test_a_damaged_file_is_named(copied: Path, name: str) -> None:
    path = copied / "parsebank" / "copy" / name
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ModelLoadError, match=name):
        load_copy(copied)


def test_lemmas_that_scripts_miss_are_exceptions(parser: Parser) -> None:
    (sentence,) = parser.parse(ParseInput("raw", text="The dogs sleep."), Limits()).sentences()
    assert lemma_exceptions(parser, [sentence]) == {}
    told = tuple(
        replace(word, lemma="hound") if word.form == "dogs" else word for word in sentence.words
    )
    other = replace(sentence, words=told)
    assert lemma_exceptions(parser, [sentence, other]) == {}
    assert lemma_exceptions(parser, [sentence, other, other]) == {"dogs": {"NOUN": "hound"}}
    (found,) = parses(parser, [ParseInput("pretokenized", tokens=("'ve", "sometime$"))])
    assert found.lemma[0] == "have"


@pytest.mark.slow
def test_the_command_trains_scores_describes_and_serves(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "models"
    monkeypatch.setenv("PARSEBANK_MODELS_DIR", str(folder))
    printed = train_text_parser(tmp_path, "--epochs", "2")
    assert f"recorded in {folder}" in printed
    assert "| treebank-tiny test, gold words | 100.00 (+0.00)" in printed
    model = find_parser(Settings(models_dir=folder), "tiny")
    assert (model.name, model.langs, model.problem) == ("parsebank/tiny", ("en",), None)
    card = json.loads((model.path / CARD).read_text(encoding="utf-8"))
    assert card["licence"] == "Apache-2.0"
    assert card["command"].startswith("parsebank models train own --treebank treebank-tiny")
    assert set(card["scores"]["treebank-tiny"]) == {"dev", "test"}
    assert "xpos" not in card["columns"]
    readme = (model.path / "README.md").read_text(encoding="utf-8")
    assert card["command"] in readme
    parse = load_parser(model).parse(ParseInput("raw", text="Birds sing."), Limits())
    assert parse.xpos == [None] * parse.word_count
    # The same command again finds the finished training, and the model serves on.
    again = train_text_parser(tmp_path, "--epochs", "2")
    assert "2/2" not in again
    assert find_parser(Settings(models_dir=folder), "tiny").name == "parsebank/tiny"


@pytest.mark.slow
def test_the_shipped_model_scores_what_its_card_says(parser: Parser, data_dir: Path) -> None:
    card = json.loads((BUNDLED / "english" / CARD).read_text(encoding="utf-8"))
    path = data_dir / "treebanks" / "UD_English-EWT" / "en_ewt-ud-test.conllu"
    scores = evaluate_parser(parser, list(read_conllu(path)))
    for kind, figures in scores.items():
        assert figures == pytest.approx(card["scores"]["UD_English-EWT"]["test"][kind], abs=0.1)


def test_the_shipped_model_is_small_licensed_and_beats_udpipe() -> None:
    assert sum(file.stat().st_size for file in (BUNDLED / "english").iterdir()) <= 25_000_000
    card = json.loads((BUNDLED / "english" / CARD).read_text(encoding="utf-8"))
    assert card["licence"] == "CC BY-SA 4.0"
    small = json.loads((BUNDLED.parent / "english-ewt.json").read_text(encoding="utf-8"))
    for kind, figures in small["scores"]["test"].items():
        ours = card["scores"]["UD_English-EWT"]["test"][kind]
        assert all(ours[metric] >= figure for metric, figure in figures.items())
        assert all(ours[metric] >= figure for metric, figure in LEAST[kind].items())


def test_forked_workers_share_the_pages_of_the_weights(parser: Parser) -> None:
    items = raw(*TEXTS)
    parses(parser, items)
    context = get_context("fork")
    queue = context.Queue()

    def measure() -> None:
        parses(parser, items)
        queue.put(psutil.Process().memory_full_info().uss)

    child = context.Process(target=measure)
    child.start()
    own = queue.get(timeout=60)
    child.join()
    size = sum(file.stat().st_size for file in (BUNDLED / "english").iterdir())
    assert own < 2 * size < psutil.Process().memory_info().rss
