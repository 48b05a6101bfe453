"""``parsebank show``, and what notebooks show of answers."""

from __future__ import annotations

import pickle
import re
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest

from clients import AsyncClient, Client

TOKENIZER = "parsebank-wordpiece-en"
TEXT = "The nurse called the driver."
FIXTURES = Path(__file__).parents[1] / "fixtures" / "conllu"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def answer(store):
    """The sample sentences with wordpieces and matrices."""
    texts = [TEXT, "I can't wait. <b>Birds</b> sing & dance!", ""]
    with Client.embedded(str(store), workers=1, job_workers=0, log_level="warning") as client:
        names = ["distance", "depth", "ancestor"]
        yield client.parse(texts=texts, lang="en", tokenizer=TOKENIZER, matrices=names)


@pytest.fixture
def show(invoke):
    return partial(invoke, "show")


def pictures(html: str) -> list[ET.Element]:
    return [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def titles(html: str) -> list[str]:
    return [picture[0].text or "" for picture in pictures(html)]


def test_a_text_is_shown_as_a_tree_in_characters(show, store):
    shown = show(TEXT, "--store", store).stdout
    assert shown.startswith(f"{TEXT}\n└── called  root  VERB\n    ├── nurse  nsubj  NOUN\n")


def test_a_stored_key_is_shown_without_its_text(show, store, answer):
    key = answer.items[0].key
    result = show("--key", key, "--store", store, "--format", "svg", "--layout", "hierarchy")
    assert result.exit_code == 0, result.output
    picture = ET.fromstring(result.stdout)
    assert picture[0].text == TEXT
    assert "nurse: nsubj of called" in (picture[1].text or "")
    unknown = show("--key", "0" * 32, "--store", store)
    assert unknown.exit_code == 1
    assert "0" * 32 in unknown.stderr


def test_a_page_has_trees_wordpieces_and_heat_maps(show, store, tmp_path):
    page = tmp_path / "page.html"
    options = ("--tokenizer", TOKENIZER, "--matrices", "distance,depth", "--format", "html")
    result = show("-", *options, "--output", page, "--store", store, input=f"{TEXT}\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert titles(page.read_text("utf-8")) == [TEXT, f"Wordpieces: {TEXT}", "distance", "depth"]


def test_a_conllu_file_is_shown_without_a_parser(show, tmp_path):
    path = FIXTURES / "everything.conllu"
    assert show("--conllu", path).stdout.count("└── form  root  NOUN") == 1
    whole = show("--conllu", path, "--format", "svg")
    one = show("--conllu", path, "--format", "svg", "--sent-id", "tour-2")
    assert show("--conllu", path, "--output", tmp_path / "trees.svg").exit_code == 0
    assert (tmp_path / "trees.svg").read_text("utf-8") == whole.stdout
    assert len(one.stdout) < len(whole.stdout)
    assert "8.1 guess (not in the text)" in whole.stdout
    assert "8.1 guess (not in the text)" not in one.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of TEXT, --key and --conllu"),
        (("x", "--key", "0"), "give one of TEXT, --key and --conllu"),
        (("x", "--sent-id", "1"), "--sent-id selects sentences"),
        (("--key", "0", "--lang", "en"), "--lang is for a TEXT"),
        (("x", "--tokenizer", "t"), "need --format svg or html"),
        (("x", "--output", "tree.png"), "tree.png: pictures are written as .svg or .html"),
        (("--conllu", FIXTURES / "everything.conllu", "--sent-id", "no"), "tour-1"),
        (("--conllu", FIXTURES / "nine-columns.conllu"), "9 columns instead of 10"),
        (("--conllu", FIXTURES / "no-such-file.conllu"), "No such file"),
    ],
)
def test_what_cannot_be_shown_is_said(show, arguments, message):
    result = show(*arguments)
    assert result.exit_code != 0
    assert message in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())


def test_notebooks_show_items_as_pictures(answer):
    first, second, failed = answer.items
    assert titles(first._repr_html_())[:2] == [TEXT, f"Wordpieces: {TEXT}"]
    assert titles(first.matrices._repr_html_()) == ["distance", "depth", "ancestor"]
    assert sorted(titles(second._repr_html_())[2:4]) == [
        "Wordpieces: <b>Birds</b> sing & dance!",
        "Wordpieces: I can't wait.",
    ]
    assert "<b>" not in second._repr_html_() + answer._repr_html_()
    assert failed.error_type in answer._repr_html_()


def test_each_wordpiece_is_drawn_under_one_sentence(answer):
    item = answer.items[1]
    aligned = [one for one in pictures(item._repr_html_()) if one[0].text.startswith("Wordpieces")]
    drawn = [node.text for one in aligned for node in one.iter(f"{SVG}text")]
    ids = [text for text in drawn if text and text.isdecimal()]
    assert ids == [str(number) for number in item.wordpieces.input_ids]


def test_items_say_what_they_are_in_one_line(answer):
    item = answer.items[0]
    assert repr(item) == (
        f"<ParsedItem text='{TEXT}' words=6 wordpieces=8 "
        f"matrices=['distance', 'depth', 'ancestor'] key='{item.key[:12]}'>"
    )


def test_matrices_are_a_mapping_as_before(answer):
    matrices = answer.items[0].matrices
    copy = pickle.loads(pickle.dumps(matrices))
    assert [*copy] == ["distance", "depth", "ancestor"]
    assert copy.labels == matrices.labels
    assert "".join(copy.labels) == TEXT.replace(" ", "")


async def test_clients_name_their_service_without_secrets() -> None:
    with Client("http://ada:secret@host:8000", api_key="secret") as client:
        assert repr(client) == "<Client url='http://ada:***@host:8000'>"
    async with AsyncClient("http://host:8000", api_key="secret") as other:
        assert repr(other) == "<AsyncClient url='http://host:8000'>"
