"""Pieces meet words by their characters, and the tree over pieces follows the tree over words."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import Parse, Sentence, Token, Word, parse_from_sentences, read_conllu
from syntax.alignment import align_pieces, attach_heads, kernels, segment_features, word_spans
from syntax.errors import CycleError, HeadOutOfRangeError, InputError, MultipleRootsError
from syntax.trees.spacing import spacing_entries
from syntax.trees.ud import DEPREL, UPOS
from tests.syntax.parses import tree_heads

FILES = Path(__file__).parents[1] / "fixtures" / "conllu"

Spans = list[tuple[int, int]]


def sentence_of(tokens: list[tuple[str, str, list[str]]], heads: list[int]) -> Sentence:
    """A sentence from surface, gap after it, and words of each token."""
    words: list[Word] = []
    made = []
    for surface, gap, forms in tokens:
        misc = "|".join(spacing_entries(surface, surface, "", gap)) or None
        ids = tuple(range(len(words) + 1, len(words) + len(forms) + 1))
        made.append(Token(surface, ids, misc=misc if len(ids) > 1 else None))
        for number, form in zip(ids, forms, strict=True):
            words.append(
                Word(number, form, upos="X", head=heads[number - 1], deprel="dep", misc=misc)
            )
    return Sentence(tuple(words), tuple(made))


def parse_of(*sentences: Sentence) -> Parse:
    return parse_from_sentences(sentences, layout="spaces")


def spaced(text: str, heads: list[int]) -> Parse:
    """A parse whose words are what white space separates."""
    return parse_of(sentence_of([(form, " ", [form]) for form in text.split()], heads))


def read(name: str) -> Parse:
    return parse_from_sentences(list(read_conllu(FILES / f"{name}.conllu")))


def spans_of(text: str, pieces: str) -> Spans:
    """Spans of the pieces, which stand between spaces in ``pieces`` and in order in ``text``."""
    spans, position = [], 0
    for piece in pieces.split():
        position = text.index(piece, position)
        spans.append((position, position + len(piece)))
        position += len(piece)
    return spans


def rows(alignment_text: str, spans: Spans, parse: Parse) -> list[list[str]]:
    """Forms of the words of each piece."""
    alignment = align_pieces(alignment_text, spans, parse)
    return [[parse.form[word] for word in alignment.words_of(piece)] for piece in range(len(spans))]


# --- the slow, obvious twins ---


def slow_rows(spans: Spans, parse: Parse) -> list[dict[int, int]]:
    """For each piece its words, with the number of characters they share; quadratic."""

    def characters(span: tuple[int, int]) -> set[int]:
        return set(range(*span))

    words = [characters(span) for span in zip(parse.word_start, parse.word_end, strict=True)]
    found = []
    for start, end in spans:
        inner = [at for at in range(start, end) if not parse.text[at].isspace()]
        piece = characters((inner[0], inner[-1] + 1)) if inner else set()
        found.append({at: len(piece & word) for at, word in enumerate(words) if piece & word})
    return found


def slow_stand_ins(parse: Parse) -> dict[int, int]:
    """For each word the word that owns pieces in its place (itself, but in shared spans)."""
    stand_ins = {}
    parents = parse.parents().tolist()
    for first, end in parse.token_ranges():
        group = range(first, end)
        spans = {(parse.word_start[word], parse.word_end[word]) for word in group}
        outside = [word for word in group if parents[word] not in group]
        for word in group:
            stand_ins[word] = outside[0] if len(group) > 1 and len(spans) == 1 else word
    return stand_ins


def slow_owners(spans: Spans, parse: Parse) -> list[int]:
    stand_ins = slow_stand_ins(parse)
    chosen = []
    for row in slow_rows(spans, parse):
        best = max(row.values(), default=0)
        winners = [word for word, count in sorted(row.items()) if count == best]
        chosen.append(stand_ins[winners[0]] if winners else -1)
    return chosen


def slow_attach(owners: list[int], parse: Parse) -> list[int]:
    parents = parse.parents().tolist()
    sentence = parse.sentence_ids().tolist()
    pieces = defaultdict(list)
    for piece, word in enumerate(owners):
        pieces[word].append(piece)

    def above(word: int) -> int | None:
        climbed = set()
        while (word := parents[word]) >= 0 and word not in pieces:
            assert word not in climbed
            climbed.add(word)
        return word if word >= 0 else None

    tops = [word for word in pieces if word >= 0 and above(word) is None]
    root = {sentence[word]: word for word in sorted(tops, key=lambda word: -pieces[word][0])}
    heads = []
    for piece, word in enumerate(owners):
        if word < 0:
            heads.append(-2)
        elif piece != pieces[word][0]:
            heads.append(pieces[word][0])
        elif above(word) is not None:
            heads.append(pieces[above(word)][0])
        else:
            top = root[sentence[word]]
            heads.append(-1 if top == word else pieces[top][0])
    return heads


class TestWordSpans:
    def test_alignment_gives_the_worked_examples(self) -> None:
        assert word_spans("a don't", [0, 2], [1, 7], [0, 1], ["a", "do", "n't"]) == (
            [0, 2, 4],
            [1, 4, 7],
        )
        assert word_spans("du", [0], [2], [0], ["de", "le"]) == ([0, 0], [2, 2])
        assert word_spans("", [], [], [], []) == ([], [])

    def test_forms_must_spell_the_token_exactly(self) -> None:
        assert word_spans("Du", [0], [2], [0], ["d", "u"]) == ([0, 0], [2, 2])
        assert word_spans("dámelo", [0], [6], [0], ["da", "me", "lo"]) == ([0] * 3, [6] * 3)


class TestAlignPieces:
    def test_french_contractions_lose_no_word(self) -> None:
        parse = read("french-contractions")
        spans = spans_of(parse.text, "Le chat du vois in va au mar ché .")
        assert rows(parse.text, spans, parse)[2] == ["de", "le"]
        assert rows(parse.text, spans, parse)[6] == ["à", "le"]
        alignment = align_pieces(parse.text, spans, parse)
        assert alignment.word_ids.tolist() == [0, 1, 2, 4, 4, 5, 6, 8, 8, 9]
        assert np.flatnonzero(alignment.pieceless).tolist() == [3, 7]
        assert alignment.word_ids.dtype == alignment.indices.dtype == alignment.indptr.dtype

    def test_a_piece_may_overlap_both_words_of_a_contraction(self) -> None:
        parse = read("english-straddles")
        spans = spans_of(parse.text, "We can ' t wait , so don ' t stop .")
        found = rows(parse.text, spans, parse)
        assert found[1:4] == [["ca", "n't"], ["n't"], ["n't"]]
        assert found[7:10] == [["do", "n't"], ["n't"], ["n't"]]
        owners = align_pieces(parse.text, spans, parse).word_ids.tolist()
        assert [parse.form[word] for word in owners[1:4]] == ["ca", "n't", "n't"]

    def test_another_text_is_refused(self) -> None:
        with pytest.raises(InputError, match="is not the parsed one"):
            align_pieces("A b", [(0, 1)], spaced("a b", [0, 1]))

    @pytest.mark.parametrize("span", [(0, 99), (-1, 1), (2, 1)])
    def test_a_piece_outside_the_text_is_refused(self, span: tuple[int, int]) -> None:
        parse = spaced("a b", [0, 1])
        with pytest.raises(InputError, match=f"piece 1 covers the characters {span[0]} to"):
            align_pieces(parse.text, [(0, 1), span], parse)
        with pytest.raises(InputError, match="piece 1 covers"):
            segment_features(parse, [1, 2], [(0, 1), span])

    def test_white_space_is_what_python_calls_so(self) -> None:
        spaces = [code for code in range(sys.maxunicode + 1) if kernels.is_space(code)]
        assert spaces == [code for code in range(sys.maxunicode + 1) if chr(code).isspace()]


class TestAttachHeads:
    @pytest.mark.parametrize(
        ("heads", "error"),
        [
            ([0, 3, 2], CycleError),
            ([0, 2, 1], CycleError),
            ([0, 0, 1], MultipleRootsError),
            ([0, 4, 1], HeadOutOfRangeError),
            ([0, -1, 1], HeadOutOfRangeError),
        ],
    )
    def test_a_parse_without_trees_is_named(self, heads, error) -> None:
        parse = replace(spaced("a b c", [0, 1, 1]), head=heads)
        with pytest.raises(error):
            align_pieces(parse.text, [(0, 1)], parse)
        with pytest.raises(error):
            segment_features(parse, [1], [(0, 1)])

    def test_alignment_accepts_a_chain_of_thousands(self) -> None:
        parse = spaced("a " * 5000, list(range(5000)))
        alignment = align_pieces(parse.text, [(at, at + 1) for at in range(0, 10_000, 2)], parse)
        assert attach_heads(parse, alignment).tolist() == list(range(-1, 4999))


class TestSegmentFeatures:
    def test_pieces_show_their_owners_tags(self) -> None:
        parse = read("french-contractions")
        spans = spans_of(parse.text, "Le chat du vois in")
        features = segment_features(parse, [5, 6, 7, 8, 9], [*spans[:2], *spans[2:]])
        assert [UPOS[tag] for tag in features.upos] == ["DET", "NOUN", "ADP", "NOUN", "NOUN"]
        assert [DEPREL[tag] for tag in features.deprel] == [
            *("det", "nsubj", "case", "nmod", "nmod")
        ]
        assert features.input_ids.tolist() == [5, 6, 7, 8, 9]
        assert features.word_ids.tolist() == [0, 1, 2, 4, 4]
        assert features.head.tolist() == [1, -1, 3, 1, 3]
        assert features.sentence_ids.tolist() == [0] * 5
        assert features.offsets.tolist() == [list(span) for span in spans]

    def test_a_piece_without_a_word_is_isolated(self) -> None:
        features = segment_features(spaced("a b", [2, 0]), [1, 2, 3], [(0, 1), (1, 2), (2, 3)])
        assert features.head.tolist() == [2, -2, -1]
        assert features.word_ids.tolist() == [0, -1, 1]
        assert features.sentence_ids.tolist() == [0, -1, 0]
        assert features.upos.tolist() == [UPOS.index("X"), 0, UPOS.index("X")]
        assert features.deprel.tolist() == [DEPREL.index("dep"), 0, DEPREL.index("dep")]

    def test_dtypes_are_those_of_the_store(self) -> None:
        features = segment_features(spaced("a", [0]), [1], [(0, 1)])
        for name in ("input_ids", "head", "word_ids", "sentence_ids", "offsets"):
            assert getattr(features, name).dtype == np.int32
        assert features.upos.dtype == features.deprel.dtype == np.uint8

    def test_numbers_of_ids_and_offsets_must_agree(self) -> None:
        with pytest.raises(InputError, match="there are 2 input ids and 1 offsets"):
            segment_features(spaced("a", [0]), [1, 2], [(0, 1)])


gaps = st.sampled_from(["", "", " ", "\xa0", "  ", "\u200b"])
letters = st.text("abé漢😀", min_size=1, max_size=4)


@st.composite
def any_sentence(draw: st.DrawFn) -> Sentence:
    tokens = []
    for _ in range(draw(st.integers(1, 5))):
        forms = draw(st.lists(letters, min_size=1, max_size=3))
        surface = "".join(forms) if len(forms) == 1 or draw(st.booleans()) else draw(letters)
        tokens.append((surface, draw(gaps), forms))
    size = sum(len(forms) for *_, forms in tokens)
    return sentence_of(tokens, draw(tree_heads(size, size)))


@st.composite
def any_encoding(draw: st.DrawFn) -> tuple[Parse, Spans]:
    """A parse and pieces that cover, straddle, repeat and leave out what they like."""
    parse = parse_of(*draw(st.lists(any_sentence(), min_size=1, max_size=3)))
    spans = []
    for _ in range(draw(st.integers(0, 12))):
        start = draw(st.integers(0, len(parse.text)))
        spans.append((start, draw(st.integers(start, min(start + 9, len(parse.text))))))
    starts, ends = [sorted(bound) for bound in zip(*spans, strict=True)] or ([], [])
    return parse, list(zip(starts, ends, strict=True))


@given(any_encoding())
def test_alignment_equals_its_slow_twin(encoding: tuple[Parse, Spans]) -> None:
    parse, spans = encoding
    alignment = align_pieces(parse.text, spans, parse)
    found = [alignment.words_of(piece).tolist() for piece in range(len(spans))]
    assert found == [sorted(row) for row in slow_rows(spans, parse)]
    assert alignment.indptr[-1] == len(alignment.indices)
    owners = alignment.word_ids.tolist()
    assert owners == slow_owners(spans, parse)
    assert all(owner in row for owner, row in zip(owners, found, strict=True) if owner >= 0)
    assert alignment.pieceless.tolist() == [w not in owners for w in range(parse.word_count)]


@given(any_encoding())
def test_the_attach_tree_equals_its_slow_twin(encoding: tuple[Parse, Spans]) -> None:
    parse, spans = encoding
    alignment = align_pieces(parse.text, spans, parse)
    heads = attach_heads(parse, alignment).tolist()
    assert heads == slow_attach(alignment.word_ids.tolist(), parse)
    sentence = parse.sentence_ids()
    covered = {int(sentence[word]) for word in alignment.word_ids if word >= 0}
    roots = [int(sentence[alignment.word_ids[at]]) for at, head in enumerate(heads) if head == -1]
    assert sorted(roots) == sorted(covered)


@given(any_encoding(), st.randoms(use_true_random=False))
def test_pieces_need_not_come_in_order(encoding: tuple[Parse, Spans], random: object) -> None:
    parse, spans = encoding
    random.shuffle(spans)  # type: ignore[attr-defined]
    alignment = align_pieces(parse.text, spans, parse)
    assert alignment.word_ids.tolist() == slow_owners(spans, parse)


@given(any_encoding())
def test_features_are_alignment_and_tree_in_one(encoding: tuple[Parse, Spans]) -> None:
    parse, spans = encoding
    alignment = align_pieces(parse.text, spans, parse)
    features = segment_features(parse, range(len(spans)), spans)
    assert features.word_ids.tolist() == alignment.word_ids.tolist()
    assert features.head.tolist() == attach_heads(parse, alignment).tolist()
    padded = [*parse.sentence_ids().tolist(), -1]
    assert features.sentence_ids.tolist() == [padded[word] for word in alignment.word_ids]
