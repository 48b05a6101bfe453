"""Running text as pieces with their surfaces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from syntax.parsing.pieces import LINE, NOTHING, PARAGRAPH, SPACE, text_pieces

RESOURCES = Path(__file__).parents[2] / "service" / "resources" / "tokenizers"
TOKENIZER = tokenizers.Tokenizer.from_file(
    str(RESOURCES / "parsebank-wordpiece-en" / "tokenizer.json")
)
UNKNOWN = TOKENIZER.token_to_id("[UNK]")
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=("Cs",)), st.sampled_from(" \n\u200b’é"))
)


@given(TEXTS)
def test_pieces_cover_all_but_white_space_once_and_in_order(text: str) -> None:
    pieces = text_pieces(text, TOKENIZER, UNKNOWN)
    covered = np.zeros(len(text), int)
    for start, end in zip(pieces.start.tolist(), pieces.end.tolist(), strict=True):
        assert text[start:end].strip() == text[start:end] != ""
        covered[start:end] += 1
    assert covered.max(initial=0) <= 1
    assert (pieces.start[1:] >= pieces.end[:-1]).all()
    for character, times in zip(text, covered.tolist(), strict=True):
        assert times == 1 or character.isspace()


def test_characters_that_the_tokenizer_drops_are_unknown_pieces() -> None:
    pieces = text_pieces("a \u200b b", TOKENIZER, UNKNOWN)
    assert pieces.ids.tolist()[1] == UNKNOWN
    assert (pieces.start.tolist(), pieces.end.tolist()) == ([0, 2, 4], [1, 3, 5])


@pytest.mark.parametrize(
    ("between", "kind"),
    [
        ("", NOTHING),
        (" ", SPACE),
        ("\t \xa0", SPACE),
        ("\n", LINE),
        (" \r\n ", LINE),
        ("\n\n", PARAGRAPH),
        ("\r\n \r\n", PARAGRAPH),
        ("\u2028", LINE),
    ],
)
def test_white_space_behind_a_piece_is_told(between: str, kind: int) -> None:
    pieces = text_pieces(f"({between})", TOKENIZER, UNKNOWN)
    assert (pieces.surface % 4).tolist() == [kind, PARAGRAPH]


@pytest.mark.parametrize(
    ("written", "case"), [("12", 0), ("a", 1), ("A", 2), ("Aa", 2), ("AA", 3), ("aA", 3), ("中", 0)]
)
def test_how_a_piece_is_written_is_told(written: str, case: int) -> None:
    pieces = text_pieces(written, _WholeWords(), 0)
    assert (pieces.surface // 4).tolist() == [case]


class _WholeWords:
    """A tokenizer for which every text is one piece."""

    def encode(self, text: str, add_special_tokens: bool) -> _WholeWords:
        self.ids, self.offsets = [1], [(0, len(text))]
        return self


@given(TEXTS, st.data())
def test_the_pieces_within_spans_are_those_that_overlap_them(text, data) -> None:
    pieces = text_pieces(text, TOKENIZER, UNKNOWN)
    if not len(pieces):
        return
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    ((first, last),) = pieces.within([start], [end]).tolist()
    spans = list(zip(pieces.start.tolist(), pieces.end.tolist(), strict=True))
    slow = [at for at, (left, right) in enumerate(spans) if left < end and right > start]
    if slow:
        assert (first, last) == (slow[0], slow[-1])
    else:
        behind = [at for at, (_, right) in enumerate(spans) if right > start]
        assert first == last == (behind[0] if behind else len(spans) - 1)
