"""The words of batches against the same, found one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.batches.labels import IGNORE
from syntax.batches.words import WordLayout, tree_heads, word_layout, word_values
from syntax.errors import SpecError
from syntax.trees.parse import Parse
from tests.syntax.parses import parse_of
from tests.syntax.word_twins import slow_layout


def text_of(sentences: list[list[bool]]) -> Parse:
    """A text of so many sentences; a word without a piece shares the character before it."""
    is_own = [own or at == 0 for sentence in sentences for at, own in enumerate(sentence)]
    starts = (np.cumsum(is_own) - 1).tolist()
    spans = [(start, start + 1) for start in starts]
    return parse_of("x" * (starts[-1] + 1), spans, [[*range(len(one))] for one in sentences])


TEXTS = st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=3)


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    """Sequences of two segments, of each of which some characters are shown."""
    rows, parses, shown = [], [], []
    for _ in range(draw(st.integers(0, 3))):
        own, pieces = [text_of(draw(TEXTS)) for _ in range(2)], [(-1, -1, -1)]
        spans = [sorted(draw(st.tuples(*[st.integers(0, len(one.text))] * 2))) for one in own]
        order = draw(st.permutations([0, 1]))
        for segment in order:
            parse, (low, high) = own[segment], spans[segment]
            sentence_of = parse.sentence_ids()
            for word in range(parse.word_count):
                has_piece = word in parse.token_first_word and draw(st.integers(0, 9))
                if has_piece and low <= parse.word_start[word] < parse.word_end[word] <= high:
                    piece = (segment, word, int(sentence_of[word]))
                    pieces += [piece] * draw(st.integers(1, 2))
        rows.append(pieces)
        parses.append(tuple(own))
        shown.append(spans)
    table = np.full((len(rows), max(map(len, rows), default=1) + 1, 3), -1, np.int32)
    for row, pieces in enumerate(rows):
        table[row, : len(pieces)] = pieces
    names = ("segment_ids", "word_ids", "sentence_ids")
    arrays: dict[str, Any] = {name: table[..., at] for at, name in enumerate(names)}
    characters = np.array(shown, np.int32).reshape(len(rows), 2, 2)
    return {**arrays, "parses": parses, "shown_characters": characters}


def check(layout: WordLayout, arrays: dict[str, Any]) -> None:
    for name, expected in slow_layout(arrays).items():
        found = getattr(layout, name)
        assert found.tolist() == expected.tolist(), name
        assert found.dtype == (bool if name == "whole" else np.int64)


@settings(max_examples=150)
@given(batches())
def test_words_are_those_found_one_by_one(arrays: dict[str, Any]) -> None:
    check(word_layout(arrays), arrays)
    without = {name: arrays[name] for name in ("word_ids", "segment_ids", "sentence_ids")}
    check(word_layout(without), without)


@settings(max_examples=50)
@given(batches())
def test_values_are_those_of_each_word(arrays: dict[str, Any]) -> None:
    layout = word_layout(arrays)
    starts = word_values(layout, [[one.word_start for one in own] for own in arrays["parses"]])
    heads = tree_heads(layout, arrays["parses"])
    for (row, column), word in np.ndenumerate(layout.words):
        if word < 0:
            assert starts[row, column] == heads[row, column] == IGNORE
            continue
        parse = arrays["parses"][row][layout.segments[row, column]]
        assert starts[row, column] == parse.word_start[word]
        head = parse.head[word]
        expected = head + layout.first[row, column] if head else 0
        assert heads[row, column] == (expected if layout.whole[row, column] else IGNORE)


def test_parses_need_characters() -> None:
    arrays = {"word_ids": np.zeros((1, 1)), "parses": [()]}
    with pytest.raises(SpecError, match="offsets=True"):
        word_layout(arrays)
