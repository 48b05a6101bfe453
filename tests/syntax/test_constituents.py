"""Bracket files of constituent trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import BracketsError, TreeError
from syntax.trees.constituents import (
    Constituent,
    binarised,
    read_trees,
    tree_of,
    tree_tokens,
    unbinarised,
)
from tests.syntax.nested import Nested, bracketed, flat, leaves, nested_trees, spans_of

SENTENCE = """\
( (S (NP-SBJ-1 (DT The) (NN cat))
     (VP (VBZ seems)
         (S (NP-SBJ (-NONE- *-1)) (VP (TO to) (VP (VB sleep)))))
     (. .)) )
(S (PRN=2 (-LRB- -LRB-) (CD 1\\/2) (-RRB- -RRB-)))(NP (NN end))
"""


def test_traces_function_tags_and_an_empty_top_go() -> None:
    first, second, third = read_trees(SENTENCE)
    assert first.words == ("The", "cat", "seems", "to", "sleep", ".")
    assert first.tags == ("DT", "NN", "VBZ", "TO", "VB", ".")
    assert [tuple(one) for one in first.constituents] == [
        *[("S", 0, 6), ("NP", 0, 2), ("VP", 2, 5)],
        *[("S", 3, 5), ("VP", 3, 5), ("VP", 4, 5)],
    ]
    assert (second.words, second.tags) == (("(", "1/2", ")"), ("-LRB-", "CD", "-RRB-"))
    assert [tuple(one) for one in second.constituents] == [("S", 0, 3), ("PRN", 0, 3)]
    assert third.words == ("end",)


def test_a_top_without_label_over_several_parts_is_called_top() -> None:
    (tree,) = read_trees("( (NP (NN a)) (. .) )")
    assert [tuple(one) for one in tree.constituents] == [("TOP", 0, 2), ("NP", 0, 1)]
    (tree,) = read_trees("( (NN a) )")
    assert tree.constituents == ()


@given(nested_trees())
def test_a_written_tree_is_read_back(tree: Nested) -> None:
    for text in (bracketed(tree), bracketed(tree).replace(" (", "\n  (")):
        (found,) = read_trees(f"( {text})")
        assert [*zip(found.tags, found.words, strict=True)] == leaves(tree)
        assert [tuple(one) for one in found.constituents] == spans_of(tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP (NN a))", r"f, line 1: the end of the tree came; expected `\)` of S"),
        ("(S\n  (NP (NN a b)))", r"f, line 2 of the tree that begins in line 1: 'b' came; .*'a'"),
        ("(S (NN a)", r"expected `\)` of S"),
        ("(S (NN a", r"the end of the tree came; expected `\)` behind the word 'a'"),
        ("(S (NP))", r"'\)' came; expected a part, such as `\(NN word\)`"),
        ("(S ((NN a)))", r"'\(' came; expected a label"),
        ("(S (NN a) b)", r"'b' came; expected `\(` or `\)`"),
        ("(NN a))", r"line 1: '\)' came; expected `\(`, where a tree begins"),
        ("\nhello (S (NN a))", r"f, line 2: 'hello' came; expected `\(`, where a tree begins"),
        ("(S (-NONE- *))", "expected a word beside the traces"),
        ("()", r"'\)' came; expected a part"),
    ],
)
def test_a_fault_has_its_line_and_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(BracketsError, match=message) as caught:
        read_trees(text, "f")
    assert caught.value.detail["path"] == "f"


def test_a_bad_tree_spoils_no_other() -> None:
    lines = [
        "(S (NN a))",
        "(S (NP (NN b))",
        "   (VP (VB c))",
        "d) e",
        "(S (NN f))",
        "<S>",
        "(X (Y z))",
    ]
    words: list[tuple[str, ...] | None] = []
    for tokens in tree_tokens(enumerate(lines, 1)):
        try:
            words.append(tree_of(tokens, "f").words)
        except BracketsError:
            words.append(None)
    assert words == [("a",), None, None, ("f",), ("z",)]


@given(st.text("() ab\n", max_size=30))
def test_any_text_is_read_or_refused_by_name(text: str) -> None:
    try:
        trees = read_trees(text)
    except BracketsError:
        return
    assert all(tree.words for tree in trees)
    assert len([*tree_tokens(enumerate(text.split("\n"), 1))]) == len(trees)


@given(nested_trees())
def test_a_binary_tree_keeps_the_constituents(tree: Nested) -> None:
    whole = flat(tree)
    words = len(whole.words)
    found = binarised(words, whole.constituents)
    assert unbinarised(reversed(found)) == whole.constituents
    stretches = {(start, end) for _, start, end in found}
    assert len(found) == len(stretches) == 2 * words - 1
    for start, end in stretches:  # each divides into two others
        divisions = [
            middle
            for middle in range(start + 1, end)
            if {(start, middle), (middle, end)} <= stretches
        ]
        assert len(divisions) == (end - start > 1)


def test_binarisation_is_to_the_left() -> None:
    (tree,) = read_trees("(S (NP (A a)) (B b) (VP (C c) (D d)) (E e))")
    assert [tuple(one) for one in binarised(5, tree.constituents)] == [
        *[("S", 0, 5), ("S*", 0, 4), ("S*", 0, 2), ("NP", 0, 1), ("S*", 1, 2)],
        *[("VP", 2, 4), ("VP*", 2, 3), ("VP*", 3, 4), ("S*", 4, 5)],
    ]


def test_crossing_constituents_are_refused() -> None:
    with pytest.raises(TreeError, match=r"cross each other.*A 0-2, B 1-3"):
        binarised(3, [Constituent("A", 0, 2), Constituent("B", 1, 3)])
