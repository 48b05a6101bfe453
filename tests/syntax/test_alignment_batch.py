"""Features of many texts in one call, against those of each text."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import Parse
from syntax.alignment import batch_features, segment_features
from syntax.batches import SegmentFeatures
from syntax.errors import CycleError, InputError
from syntax.trees.conllu import parse_conllu, parse_from_sentences

SENTENCES = (
    "1-2 du _ _ _ _ _ _ _ _|1 de _ ADP _ _ 3 case _ _|2 le _ DET _ _ 3 det _ _"
    "|3 chat _ NOUN _ _ 0 root _ _",
    "1 Time _ NOUN _ _ 2 nsubj _ _|2 flies _ VERB _ _ 0 root _ SpaceAfter=No"
    "|3 . _ PUNCT _ _ 2 punct _ _",
    "1 no _ INTJ _ _ 0 discourse:emo _ _",
)


@cache
def parse_of(*numbers: int) -> Parse:
    lines = "\n\n".join(SENTENCES[n].replace(" ", "\t").replace("|", "\n") for n in numbers)
    return parse_from_sentences(list(parse_conllu(lines + "\n\n")))


@st.composite
def texts(draw: st.DrawFn) -> tuple[Parse, list[int], list[tuple[int, int]]]:
    """A parse, and pieces that cover some of its text, in order."""
    parse = parse_of(*draw(st.lists(st.integers(0, 2), min_size=1, max_size=3)))
    cuts = sorted(draw(st.sets(st.integers(0, len(parse.text)), max_size=8)))
    spans = list(pairwise(cuts))
    return parse, list(range(len(spans))), spans


@given(st.lists(texts(), max_size=6))
def test_the_batch_equals_its_texts_one_by_one(items) -> None:
    ids = np.array([n for _, numbers, _ in items for n in numbers], np.int32)
    spans = np.array([s for *_, offsets in items for s in offsets], np.int32).reshape(-1, 2)
    lengths = [len(numbers) for _, numbers, _ in items]
    found = batch_features([parse for parse, *_ in items], ids, spans, lengths)
    assert len(found) == len(items)
    for features, item in zip(found, items, strict=True):
        expected = segment_features(*item)
        for column in fields(SegmentFeatures):
            ours, theirs = getattr(features, column.name), getattr(expected, column.name)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def batch(parses: list[Parse], spans: list[tuple[int, int]]) -> list[SegmentFeatures]:
    offsets = np.array(spans, np.int32).reshape(-1, 2)
    return batch_features(parses, np.zeros(len(spans), np.int32), offsets, [1] * len(parses))


def test_a_piece_outside_its_own_text_is_named_though_the_next_text_has_the_characters() -> None:
    with pytest.raises(InputError, match="characters 0 to 9 of a text with 7"):
        batch([parse_of(0), parse_of(1)], [(0, 9), (0, 4)])


def test_the_error_of_a_tree_is_that_of_its_text() -> None:
    parse = parse_of(1)
    broken = Parse(**{f.name: getattr(parse, f.name) for f in fields(Parse)} | {"head": [3, 0, 1]})
    with pytest.raises(CycleError):
        batch([parse, broken], [(0, 4), (0, 4)])


def test_more_pieces_than_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="there are 2 input ids and 2 offsets for 1 pieces"):
        batch([parse_of(0)], [(0, 2), (3, 5)])
