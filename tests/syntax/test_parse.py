"""Checks of a parse, and its way to CoNLL-U and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from syntax import (
    Parse,
    Sentence,
    Token,
    Word,
    format_conllu,
    parse_conllu,
    parse_from_sentences,
    read_conllu,
)
from syntax.errors import InputError
from syntax.spans import word_spans
from syntax.trees import spacing


def parse_of(text: str, tokens: list[tuple[str, list[str]]], heads: list[list[int]]) -> Parse:
    """A parse from tokens, each with its words' forms, and the heads of each sentence."""
    starts, ends, first_words, forms = [], [], [], []
    position = 0
    for surface, words in tokens:
        position = text.index(surface, position)
        starts.append(position)
        position += len(surface)
        ends.append(position)
        first_words.append(len(forms))
        forms += words
    return build(text, starts, ends, first_words, forms, heads)


def build(
    text: str,
    starts: list[int],
    ends: list[int],
    first_words: list[int],
    forms: list[str],
    heads: list[list[int]],
    **columns: Any,
) -> Parse:
    sentence_first = [sum(map(len, heads[:at])) for at in range(len(heads))]
    tokens_of = [first_words.index(first) for first in sentence_first]
    word_start, word_end = word_spans(text, starts, ends, first_words, forms)
    empty: list[str | None] = [None] * len(forms)
    return Parse(
        text=text,
        form=forms,
        head=[head for sentence in heads for head in sentence],
        word_start=word_start,
        word_end=word_end,
        token_start=starts,
        token_end=ends,
        token_first_word=first_words,
        sentence_start=[starts[token] for token in tokens_of],
        sentence_end=[ends[token - 1] for token in [*tokens_of[1:], 0][: len(heads)]],
        sentence_first_word=sentence_first,
        **dict.fromkeys(("lemma", "upos", "xpos", "feats", "deprel"), empty) | columns,
    )


@pytest.fixture
def two_sentences() -> Parse:
    return parse_of(
        "  Le chat\ndu voisin.Il dort \u200b ",
        [
            *(("Le", ["Le"]), ("chat", ["chat"]), ("du", ["de", "le"]), ("voisin", ["voisin"])),
            *((".", ["."]), ("Il", ["Il"]), ("dort", ["dort"])),
        ],
        [[2, 0, 5, 5, 2, 2], [2, 0]],
    )


class TestColumns:
    def test_word_and_token_ranges_follow_the_sentences(self, two_sentences: Parse) -> None:
        assert two_sentences.word_count == 8
        assert two_sentences.word_ranges() == [(0, 6), (6, 8)]
        assert two_sentences.token_ranges()[2:4] == [(2, 4), (4, 5)]

    def test_parents_count_through_the_text(self, two_sentences: Parse) -> None:
        assert two_sentences.parents().tolist() == [1, -1, 4, 4, 1, 1, 7, -1]
        assert two_sentences.parents().dtype == np.int32
        assert two_sentences.sentence_ids().tolist() == [0, 0, 0, 0, 0, 0, 1, 1]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"upos": []}, "the word columns .* differ in length: .*'upos': 0"),
            ({"token_end": [0]}, "the token columns"),
            ({"sentence_start": []}, "the sentence columns"),
            ({"token_first_word": [1, 2, 3, 4, 5, 6, 7]}, "the tokens of a parse must begin at"),
            ({"token_first_word": [0, 1, 1, 4, 5, 6, 7]}, "each at a later word"),
            ({"token_first_word": [0, 1, 2, 4, 5, 6, 8]}, "the last before word 8"),
            ({"sentence_first_word": [0, 0]}, "the sentences of a parse must begin at"),
            ({"token_start": [2, 5, 4, 13, 19, 20, 23]}, "the token spans of a parse must lie"),
            ({"token_end": [4, 9, 12, 19, 20, 22, 99]}, "must lie in its text .30 characters."),
            ({"word_start": [-1, 5, 10, 10, 13, 19, 20, 23]}, "the word spans"),
            ({"word_end": [1, 9, 12, 12, 19, 20, 22, 27]}, "the word spans"),
        ],
    )
    def test_contradictory_columns_are_refused(self, two_sentences, change, message) -> None:
        with pytest.raises(InputError, match=message):
            replace(two_sentences, **change)  # type: ignore[arg-type]

    def test_a_text_without_words_is_a_parse(self) -> None:
        empty = build(" ", [], [], [], [], [])
        assert empty.sentences() == []
        assert empty.parents().tolist() == []


class TestSentences:
    def test_sentences_have_the_words_and_tokens_of_the_parse(self, two_sentences: Parse) -> None:
        first, second = two_sentences.sentences()
        assert [token.form for token in first.tokens] == ["Le", "chat", "du", "voisin", "."]
        assert [word.form for word in first.words] == ["Le", "chat", "de", "le", "voisin", "."]
        assert first.tokens[2].word_ids == (3, 4)
        assert [word.id for word in second.words] == [1, 2]
        assert second.tree.heads == (2, 0)

    def test_sentences_record_text_and_spacing(self, two_sentences: Parse) -> None:
        first, second = two_sentences.sentences()
        assert (first.text, second.text) == ("Le chat du voisin.", "Il dort")
        assert [word.misc for word in first.words] == [
            *(r"SpacesBefore=\s\s", r"SpacesAfter=\n", None, None),
            *("SpaceAfter=No", "SpaceAfter=No"),
        ]
        assert second.words[1].misc == "SpacesAfter=\\s\u200b\\s"
        assert first.spelled_out() + second.spelled_out() == two_sentences.text

    def test_multiword_tokens_carry_their_spacing_themselves(self) -> None:
        (sentence,) = parse_of(
            "don't!", [("don't", ["do", "n't"]), ("!", ["!"])], [[0, 1, 1]]
        ).sentences()
        assert sentence.tokens[0].misc == "SpaceAfter=No"
        assert [word.misc for word in sentence.words] == [None, None, "SpaceAfter=No"]

    def test_misc_keeps_all_entries_except_wrong_spacing(self) -> None:
        parse = parse_of("a b", [("a", ["a"]), ("b", ["b"])], [[0, 1]])
        parse = replace(parse, misc=["SpaceAfter=No|Ref=1", "Ref=2"])
        assert [word.misc for word in parse.sentences()[0].words] == [
            "Ref=1",
            "SpaceAfter=No|Ref=2",
        ]

    def test_line_breaks_inside_a_token_become_spaces(self) -> None:
        parse = parse_of("New\nYork", [("New\nYork", ["New\nYork"])], [[0]])
        (word,) = parse.sentences()[0].words
        assert (word.form, word.misc) == ("New York", r"SpaceAfter=No|SpacesInToken=New\nYork")

    def test_a_form_may_differ_from_the_text(self) -> None:
        parse = parse_of("abc d", [("abc", ["<UNK>"]), ("d", ["d"])], [[0, 1]])
        (sentence,) = parse.sentences()
        assert sentence.words[0].form == sentence.tokens[0].form == "<UNK>"
        assert parse_from_sentences([sentence], layout="spaces").text == "abc d"

    def test_a_surface_that_begins_with_the_form_is_found_in_the_text(self) -> None:
        parse = parse_of("foo\u00ad bar", [("foo\u00ad", ["foo"]), ("bar", ["bar"])], [[0, 1]])
        (sentence,) = parse.sentences()
        for comments in ((), ("# text = foo\u00ad bar",)):
            read = parse_from_sentences([replace(sentence, comments=comments)])
            assert (read.text, read.token_start, read.token_end) == (parse.text, [0, 5], [4, 8])

    def test_a_text_of_forms_is_read_although_misc_has_another_surface(self) -> None:
        for surface in ("foo\u00ad", ""):
            word = Word(1, "foo", head=0, deprel="root", misc=f"SpacesInToken={surface}")
            sentence = Sentence((word,), (Token("foo", (1,)),), ("# text = foo",))
            assert parse_from_sentences([sentence]).token_end == [3]


# Characters that have broken some CoNLL-U writer before, and a few ordinary ones.
odd = st.text(" \t\n\r\x0b\x1c\x85\xa0\u2028\u200b|\\_#=-.12ab", max_size=4)


@st.composite
def any_parse(draw: st.DrawFn) -> Parse:
    """A sound parse of any text: odd white space, multiword tokens, several sentences."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    heads = [[0, *[1] * (size - 1)] for size in sizes]
    bounds = {sum(map(len, heads[:at])) for at in range(len(heads))}
    words = sum(map(len, heads))
    first_words = [at for at in range(words) if at in bounds or draw(st.integers(0, 3))]
    text, starts, ends = draw(odd), [], []
    for _ in first_words:
        starts.append(len(text))
        text += draw(odd)
        ends.append(len(text))
        text += draw(odd)
    columns = {
        name: [draw(st.none() | odd) for _ in range(words)]
        for name in ("lemma", "upos", "xpos", "feats", "deprel", "misc")
    }
    forms = [draw(odd) for _ in range(words)]
    return build(text, starts, ends, first_words, forms, heads, **columns)


@given(any_parse())
def test_every_parse_is_valid_conllu(parse: Parse) -> None:
    sentences = parse.sentences()
    assert list(parse_conllu(format_conllu(sentences))) == sentences
    assert [word.form for s in sentences for word in s.words] == [
        *map(spacing.safe_column, parse.form)
    ]


@given(any_parse())
def test_surfaces_are_what_the_sentences_write(parse: Parse) -> None:
    sentences = parse.sentences()
    assert [one.text for one in parse.surfaces()] == [one.text for one in sentences]
    for surface, sentence in zip(parse.surfaces(), sentences, strict=True):
        assert surface.word_misc == [word.misc for word in sentence.words]


@given(any_parse())
def test_a_document_names_its_sentences(parse: Parse) -> None:
    sentences = list(parse_conllu(format_conllu(parse.document("a"))))
    assert [one.sent_id for one in sentences] == [f"a-{n}" for n in range(1, len(sentences) + 1)]
    assert [one.words for one in sentences] == [one.words for one in parse.sentences()]


@given(any_parse())
def test_text_spans_and_trees_come_back_from_conllu(parse: Parse) -> None:
    back = parse_from_sentences(parse.sentences(), layout="spaces")
    for name in ("text", "head", "token_start", "token_end", "token_first_word"):
        assert getattr(back, name) == getattr(parse, name)
    for name in ("sentence_start", "sentence_end", "sentence_first_word"):
        assert getattr(back, name) == getattr(parse, name)


@given(any_parse())
@example(build("1  ", [0, 2], [2, 3], [0, 2], ["", "", ""], [[0, 1, 1]]))
def test_the_text_comment_is_the_tokens_as_written(parse: Parse) -> None:
    for sentence in parse.sentences():
        alone = parse_from_sentences([sentence])
        spans = zip(alone.token_start, alone.token_end, strict=True)
        for token, (start, end) in zip(sentence.tokens, spans, strict=True):
            whole = spacing.surface(token.form, sentence.misc_of(token))
            assert alone.text[start:end] in (token.form, whole)


@pytest.mark.slow
def test_treebanks_come_back_through_a_parse(data_dir: Path) -> None:
    for name in ("UD_English-EWT/en_ewt-ud-dev", "UD_French-Sequoia/fr_sequoia-ud-dev"):
        for sentence in read_conllu(data_dir / "treebanks" / f"{name}.conllu"):
            (back,) = parse_from_sentences([sentence]).sentences()
            assert back.text == sentence.text
            assert back.tree == sentence.tree
            assert [t.word_ids for t in back.tokens] == [t.word_ids for t in sentence.tokens]
            assert [t.form for t in back.tokens] == [t.form for t in sentence.tokens]
