"""Answers: characters to pieces and back, in texts of all scripts, windows and truncation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.batches import (
    CUT,
    INSIDE,
    NO_PIECES,
    NOWHERE,
    OUTSIDE,
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    assemble_batch,
    characters_of,
    locate,
    pieces_of,
    spans_of_text,
)
from syntax.errors import InputError, SpecError
from tests.syntax.test_batches_sequences import BERT

CHARACTERS = st.sampled_from(
    [
        *("a", "b", " ", ".", ",", "7", "ß", "\u00e9", "e\u0301", "\u200b", "\u2009"),
        *("中", "文", "ไ", "ท\u0e49", "क\u094d", "🦊", "👩\u200d👧"),
        *("א", "ש\u05b8", "\u202b", "م", "\u0651"),
    ]
)
"""One and more code points: Latin, combining, Han, Thai, Devanagari, right to left, emoji."""


@st.composite
def tokenized(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """A text and pieces over it: some characters in none, some in several, as bytes would be."""
    text = "".join(draw(st.lists(CHARACTERS, max_size=24)))
    offsets, at = [], 0
    while at < len(text):
        end = min(at + draw(st.integers(1, 4)), len(text))
        times = draw(st.sampled_from([0, 1, 1, 1, 1, 2, 3]))
        offsets += [(at, end)] * (0 if text[at:end].isspace() else times)
        at = end
    return text, offsets


def draw_span(data: st.DataObject, text: str) -> tuple[int, int]:
    start = data.draw(st.integers(0, len(text)))
    return start, data.draw(st.integers(start, len(text)))


def overlapping(offsets: list[tuple[int, int]], start: int, end: int) -> list[int]:
    """By looking at every character of every piece."""
    wanted = set(range(start, end))
    return [at for at, piece in enumerate(offsets) if wanted & set(range(*piece))]


@given(data=st.data(), case=tokenized())
def test_pieces_of_a_span_are_those_that_share_a_character(data, case) -> None:
    text, offsets = case
    spans = [draw_span(data, text) for _ in range(3)]
    for (start, end), found in zip(spans, pieces_of(offsets, spans).tolist(), strict=True):
        pieces = overlapping(offsets, start, end)
        assert found == ([pieces[0], pieces[-1] + 1] if pieces else [-1, -1])


@given(data=st.data(), case=tokenized())
def test_the_way_back_covers_the_answer(data, case) -> None:
    text, offsets = case
    start, end = draw_span(data, text)
    ((first, behind),) = characters_of(offsets, pieces_of(offsets, [(start, end)])).tolist()
    covered = {at for piece in offsets for at in range(*piece)}
    assert covered & set(range(start, end)) <= set(range(first, behind))
    if {start, end} <= {edge for piece in offsets for edge in piece} and first >= 0:
        inside = [piece for piece in offsets if start <= piece[0] and piece[1] <= end]
        if inside == [piece for piece in offsets if piece[0] < end and piece[1] > start]:
            assert (first, behind) == (inside[0][0], inside[-1][1])


@given(data=st.data(), case=tokenized())
def test_runs_of_pieces_come_back_as_they_were(data, case) -> None:
    offsets = sorted(set(case[1]))
    if offsets:
        first = data.draw(st.integers(0, len(offsets) - 1))
        run = [(first, data.draw(st.integers(first + 1, len(offsets))))]
        assert pieces_of(offsets, characters_of(offsets, run)).tolist() == [list(run[0])]


def segment(offsets: list[tuple[int, int]]) -> SegmentFeatures:
    size = len(offsets)
    number = np.arange(size, dtype=np.int32)
    tag = np.zeros(size, np.uint8)
    sentence = (number // 5).astype(np.int32)
    pairs = np.array(offsets, np.int32).reshape(-1, 2)
    return SegmentFeatures(number, np.full(size, -1, np.int32), number, tag, tag, sentence, pairs)


@given(
    data=st.data(),
    cases=st.lists(st.tuples(tokenized(), tokenized()), min_size=1, max_size=3),
    options=st.fixed_dictionaries(
        {"truncation_side": st.sampled_from(["right", "left"])},
        optional={"stride": st.integers(1, 9), "level": st.just("sentence")},
    ),
)
def test_answers_are_found_in_batches_or_flagged(data, cases, options) -> None:
    spans = [draw_span(data, passage[0]) for _, passage in cases]
    longest = max(len(question[1]) for question, _ in cases)
    length = longest + data.draw(st.integers(4, 20))
    spec = AssemblySpec(length, truncation="only_second", offsets=True, matrices=(), **options)
    stored = [[segment(question[1]), segment(passage[1])] for question, passage in cases]
    batch = assemble_batch(FlatExamples.from_segments(stored), BERT, spec)
    found = locate(batch, spans, segment=1)
    back = spans_of_text(batch, found.start, found.end)
    rows = batch.get("example_index", np.arange(len(cases)))
    for at, example in enumerate(rows.tolist()):
        offsets, (start, end) = cases[example][1][1], spans[example]
        wanted = overlapping(offsets, start, end)
        ours = np.flatnonzero(batch["segment_ids"][at] == 1)
        kept = batch["piece_ids"][at, ours].tolist()
        left = [piece for piece in wanted if piece in kept]
        state = INSIDE if left == wanted else CUT if left else OUTSIDE
        if not wanted:
            whole = len(kept) == len(offsets) or start == end
            state = NO_PIECES if whole else found.state[at]
            assert state in (NO_PIECES, OUTSIDE)
        assert found.state[at] == state
        if state == INSIDE:
            assert found.start[at] == ours[kept.index(wanted[0])]
            assert found.end[at] == ours[kept.index(wanted[-1])] + 1
            assert (
                back[at].tolist()
                == characters_of(offsets, [(wanted[0], wanted[-1] + 1)])[0].tolist()
            )
        else:
            assert (found.start[at], found.end[at]) == NOWHERE
            assert back[at].tolist() == list(NOWHERE)


def test_invalid_predictions_have_no_location() -> None:
    words = [(0, 2), (3, 5)]
    flat = FlatExamples.from_segments([[segment(words), segment(words)]] * 6)
    batch = assemble_batch(flat, BERT, AssemblySpec(offsets=True))
    # [CLS] 0 1 [SEP] 0 1 [SEP]
    start, end = [1, 0, 2, 2, 1, -1], [3, 1, 5, 2, 99, 2]
    found = spans_of_text(batch, start, end).tolist()
    assert found == [[0, 5]] + [list(NOWHERE)] * 5


def test_invalid_spans_and_batches_are_refused() -> None:
    flat = FlatExamples.from_segments([[segment([(0, 1)])]])
    plain = assemble_batch(flat, BERT, AssemblySpec())
    with pytest.raises(SpecError, match="offsets=True"):
        locate(plain, [(0, 1)])
    with pytest.raises(SpecError, match="the batch has 1, from 0"):
        locate(assemble_batch(flat, BERT, AssemblySpec(offsets=True)), [(0, 1)], segment=1)
    with pytest.raises(SpecError, match="came without"):
        assemble_batch(replace(flat, offsets=None), BERT, AssemblySpec(offsets=True))
    with pytest.raises(InputError, match="not all among 1 pieces"):
        characters_of([(0, 1)], [(0, 2)])
