"""Pictures of trees, wordpieces and matrices."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import (
    DependencyTree,
    EmptyNode,
    Sentence,
    Token,
    Word,
    ancestor_mask,
    read_conllu,
    tree_depth,
    tree_distance,
)
from syntax.drawing.alignment import Piece, draw_alignment
from syntax.drawing.characters import tree_text
from syntax.drawing.graph import graph_of_sentence, graph_of_tree
from syntax.drawing.heatmap import LARGEST, draw_matrix
from syntax.drawing.page import listing, page, plain, summary
from syntax.drawing.svg import stacked, width_of
from syntax.drawing.trees import LAYOUTS, arc_levels, draw_sentence, draw_tree
from syntax.errors import InputError
from tests.syntax.parses import tree_heads

FIXTURES = Path(__file__).parents[1] / "fixtures" / "conllu"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = """<script>alert("1")</script> & 'quotes' \x00\ud800"""


trees = tree_heads().map(lambda heads: DependencyTree(heads, ["dep"] * len(heads)))


@st.composite
def sentences(draw) -> Sentence:
    """A sentence of any words and heads, which may form no tree."""
    forms = draw(st.lists(st.text(max_size=8), min_size=1, max_size=8))
    size = len(forms)
    heads = draw(st.lists(st.integers(0, size) | st.none(), min_size=size, max_size=size))
    words = [
        Word(at, form, head=head, deprel=draw(st.none() | st.text(max_size=5)))
        for at, (form, head) in enumerate(zip(forms, heads, strict=True), 1)
    ]
    tokens = [Token(form, (at,)) for at, form in enumerate(forms, 1)]
    if size > 1:
        tokens[:2] = [Token(draw(st.text(max_size=20)), (1, 2))]
    deps = draw(st.sampled_from(["_", "0:root", "1:obj", "1.1:dep|2:conj", "x"]))
    empty = EmptyNode((1, 1), ("_", "made", *"_____", deps, "_"))
    return Sentence(tuple(words), tuple(tokens), empty_nodes=(empty,))


def texts_of(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text")]


def everything() -> list[Sentence]:
    return list(read_conllu(FIXTURES / "everything.conllu"))


@given(trees)
def test_an_arc_is_above_all_that_it_spans_and_none_of_a_height_overlap(tree) -> None:
    edges = graph_of_tree(tree).edges
    levels = arc_levels(edges)
    arcs = [
        (*sorted((edge.head, edge.dependent)), level)
        for edge, level in zip(edges, levels, strict=True)
        if edge.head >= 0
    ]
    for one, other in combinations(arcs, 2):
        (low, high) = sorted((one, other), key=lambda arc: arc[1] - arc[0])
        if high[0] <= low[0] and low[1] <= high[1]:
            assert low[2] < high[2]
        if max(one[0], other[0]) < min(one[1], other[1]):
            assert one[2] != other[2]
    roots = [level for edge, level in zip(edges, levels, strict=True) if edge.head < 0]
    assert roots == [1 + max((arc[2] for arc in arcs), default=0)]


@given(trees)
def test_labels_of_arcs_do_not_touch(tree) -> None:
    drawn = ET.fromstring(draw_tree(tree).svg())
    labels = [
        (float(node.get("x", 0)), node.get("y"))
        for node in drawn.iter(f"{SVG}text")
        if node.text == "dep"
    ]
    wide = width_of("dep", 11)
    for (x, y), (other_x, other_y) in combinations(labels, 2):
        assert y != other_y or abs(x - other_x) >= wide


@given(sentences(), st.sampled_from(sorted(LAYOUTS)))
def test_any_sentence_gives_the_same_well_formed_picture(sentence, layout) -> None:
    svg = draw_sentence(sentence, layout).svg()
    assert svg == draw_sentence(sentence, layout).svg()
    assert ET.fromstring(svg).get("role") == "img"
    lines = tree_text(sentence).splitlines()
    assert len(lines) >= 1 + len(sentence.words)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_words_empty_nodes_and_multiword_tokens_are_drawn(layout) -> None:
    sentence = everything()[0]
    picture = draw_sentence(sentence, layout)
    drawn = texts_of(picture.svg())
    assert {word.form for word in sentence.words} <= set(drawn)
    assert {"Its", "(so)", "nsubj", "root"} <= set(drawn)
    assert "It: nsubj of mine; " in picture.description
    assert picture.svg().count("stroke-dasharray") == (6 if layout == "arcs" else 3)


def test_relations_have_the_id_of_their_dependent_and_tags_a_colour() -> None:
    sentence = everything()[0]
    arcs, hierarchy = (ET.fromstring(draw_sentence(sentence, one).svg()) for one in LAYOUTS)
    words = {str(word.id) for word in sentence.words}
    assert {node.get("data-arc") for node in arcs.iter()} - {None} == words
    below = [node for node in hierarchy.iter(f"{SVG}text") if node.get("data-arc")]
    assert {node.get("data-arc"): node.text for node in below} == {
        str(word.id): word.deprel for word in sentence.words
    }
    fills = {node.text: node.get("fill") for node in arcs.iter(f"{SVG}text")}
    assert len({fills[tag] for tag in ("PRON", "AUX", "ADV", "CCONJ", "PUNCT") if tag in fills}) > 3


def test_a_tree_in_characters() -> None:
    assert tree_text(everything()[0]).splitlines() == [
        "Its mine, I guess and you that.",
        "└── mine  root  PRON",
        "    ├── It  nsubj  PRON",
        "    ├── s  cop  AUX",
        "    ├── guess  parataxis  VERB",
        "    │   ├── ,  punct  PUNCT",
        "    │   │   └── [(so)]  advmod  ADV",
        "    │   ├── I  nsubj  PRON",
        "    │   ├── you  conj  PRON",
        "    │   │   ├── and  cc  CCONJ",
        "    │   │   └── that  orphan  PRON",
        "    │   └── [guess]  conj  VERB",
        "    │       └── [_]  dep",
        "    └── .  punct  PUNCT",
        "    Its = It + s",
        "    that = that",
    ]


def test_a_broken_tree_shows_what_there_is() -> None:
    words = [Word(1, "a", head=2, deprel="x"), Word(2, "b", head=1, deprel="y"), Word(3, "c")]
    sentence = Sentence(tuple(words), tuple(Token(word.form, (word.id,)) for word in words))
    assert tree_text(sentence).splitlines()[1:] == ["├── a", "│   └── b  y", "└── c"]
    assert len(graph_of_sentence(sentence).edges) == 2


def test_right_to_left_texts_begin_at_the_right() -> None:
    def places(forms: list[str]) -> list[float]:
        words = tuple(Word(at, form, head=at - 1) for at, form in enumerate(forms, 1))
        sentence = Sentence(words, tuple(Token(word.form, (word.id,)) for word in words))
        drawn = ET.fromstring(draw_sentence(sentence).svg()).iter(f"{SVG}text")
        at = {node.text: float(node.get("x", 0)) for node in drawn}
        return [at[form] for form in forms]

    assert places(["one", "two"]) == sorted(places(["one", "two"]))
    hebrew = places(["שלום", "עולם"])
    assert hebrew == sorted(hebrew, reverse=True)


def test_chinese_is_wider_than_latin_and_marks_have_no_width() -> None:
    assert width_of("日本") > width_of("ab")
    assert width_of("e\u0301") == width_of("e")


@pytest.mark.parametrize("draw", [draw_sentence, lambda one: draw_sentence(one, "hierarchy")])
def test_words_cannot_add_elements(draw) -> None:
    word = Word(1, HOSTILE, upos=HOSTILE, head=0, deprel=HOSTILE, misc=HOSTILE)
    picture = draw(Sentence((word,), (Token(HOSTILE, (1,), span_line=True),)))
    for document in (picture.svg(), page(HOSTILE, [picture])):
        assert "<script" not in document
        assert "\x00" not in document
        document.encode("utf-8")
    assert any(
        """<script>alert("1")</script> & 'quotes' \ufffd""" in t for t in texts_of(picture.svg())
    )


def test_a_picture_loads_nothing_and_follows_the_colour_scheme() -> None:
    document = page("both", [draw_sentence(one) for one in everything()])
    assert not re.search(r"""\b(href|src|on\w+)=|url\(|@import|<script""", document)
    assert "prefers-color-scheme:dark" in document
    assert "Content-Security-Policy" in document
    assert set(re.findall(r"https?://[^\"' ]+", document)) == {"http://www.w3.org/2000/svg"}


def test_pictures_are_stacked_below_each_other() -> None:
    pictures = [draw_sentence(one) for one in everything()]
    whole = stacked("two", pictures)
    assert whole.height > sum(picture.height for picture in pictures)
    assert {picture.title for picture in pictures} <= set(texts_of(whole.svg()))


def test_matrices_say_every_value_in_words() -> None:
    parents, labels = DependencyTree([2, 0, 2], ["a"] * 3).parents, ["Birds", "sing", "."]
    distance = draw_matrix("distance", tree_distance(parents), labels)
    assert distance.description == (
        "Birds: Birds 0, sing 1, . 2; sing: Birds 1, sing 0, . 1; .: Birds 2, sing 1, . 0"
    )
    depth = draw_matrix("depth", tree_depth(parents), labels)
    assert depth.description == "Birds 1, sing 0, . 1"
    ancestor = draw_matrix("ancestor", ancestor_mask(parents), labels)
    titles = [node.text for node in ET.fromstring(ancestor.svg()).iter(f"{SVG}title")]
    assert titles[1:4] == [
        "Birds: ancestor yes",
        "Birds, sing: ancestor yes",
        "Birds, .: ancestor no",
    ]


def test_cells_without_a_path_are_empty_and_do_not_fade_the_others() -> None:
    matrix = np.array([[0, 255], [255, 2]], np.uint8)
    drawn = ET.fromstring(draw_matrix("distance", matrix, ["a", "b"]).svg())
    opacities = [cell.get("fill-opacity") for cell in drawn.iter(f"{SVG}rect")][1:]
    assert opacities == ["0", "0", "0", "0.9"]
    assert "a, b: distance none" in [node.text for node in drawn.iter(f"{SVG}title")]


def test_of_a_large_matrix_the_first_rows_are_drawn() -> None:
    size = LARGEST + 6
    picture = draw_matrix("distance", np.zeros((size, size), np.uint8), ["x"] * size)
    assert picture.title == f"distance (the first {LARGEST} of {size})"
    assert len(texts_of(picture.svg())) == LARGEST * (LARGEST + 2)
    with pytest.raises(InputError, match="3 labels"):
        draw_matrix("distance", np.zeros((2, 2)), ["x"] * 3)


def test_wordpieces_stand_under_their_words() -> None:
    pieces = [Piece("Bir", 12, 0), Piece("ds", 13, 0), Piece("~", 1, None), Piece(".", 5, 2)]
    picture = draw_alignment(["Birds", "sing", "."], pieces, "pieces")
    assert picture.description == ("Birds: Bir ds; no word: ~; sing: no wordpiece; .: .")
    drawn = ET.fromstring(picture.svg())
    at = {node.text: float(node.get("x", 0)) for node in drawn.iter(f"{SVG}text")}
    assert at["Bir"] < at["Birds"] < at["ds"] < at["~"] < at["sing"]


@given(st.lists(st.integers(0, 4) | st.none(), max_size=9))
def test_every_piece_and_every_word_is_drawn_once(words) -> None:
    pieces = [Piece(f"p{at}", 100 + at, word) for at, word in enumerate(words)]
    forms = [f"w{at}" for at in range(5)]
    drawn = texts_of(draw_alignment(forms, pieces, "any").svg())
    assert sorted(one for one in drawn if one[0] == "p") == [piece.form for piece in pieces]
    assert [one for one in drawn if one[0] == "w"] == forms


def test_notebooks_show_sentences_and_trees_as_pictures() -> None:
    sentence = everything()[0]
    assert sentence._repr_svg_() == draw_sentence(sentence).svg()
    assert sentence.tree._repr_svg_() == draw_tree(sentence.tree).svg()


def test_tables_of_facts_are_escaped() -> None:
    html = summary("Dataset", {"name": HOSTILE, "examples": 12000, "none": ""})
    assert "<script" not in html
    assert "12,000" in html
    assert ET.fromstring(html)[-1][-1].text == "-"
    assert ET.fromstring(listing("Batch", ("a", "b"), [(1, "x")])).tag == "table"
    assert plain("Client", {"url": "http://x"}) == "<Client url='http://x'>"
