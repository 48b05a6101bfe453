"""Which model answers to which name, and what identifies it."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from service.parsers import BACKENDS, Limits, ParseInput, Parser
from service.parsers.base import Outcome, one_by_one
from service.parsers.surface import CONTINUED, is_continued
from syntax import DependencyTree, Parse
from syntax.alignment import project_labels, token_words
from syntax.errors import NoSentenceError, ParsebankError, SentenceTooLongError
from syntax.examples import TOKEN_MODES, LongSentences, ParseMode

MODELS = {
    "parsebank.v2": "text_english",
    "udpipe.v1": "english",
    "stanza.v1": "stanza_french",
    "parsebank.v1": "own_english",
    "spacy.v1": "spacy_italian",
    "udpipe2.v1": "remote_english",
}
FRENCH = {"udpipe.v1": "udpipe_french", "stanza.v1": "stanza_french", "parsebank.v1": "own_french"}
"""Fixture of a real model, by backend; spaCy has no multiword tokens."""

TEXTS = (
    "\ufeff It's e\u0301asy.\r\n\r\n👩‍👩‍👧 Really?  ",
    "emoji 👩‍👩‍👧‍👦 family, and 🇩🇪 flags.",
    "שלום \u200fעולם\u200e مرحبا بالعالم",
    "ภาษาไทยไม่มีช่องว่าง 中文没有空格 日本語も同じ",
    "non breaking\u00a0space and\u2009thin, ｆｕｌｌｗｉｄｔｈ 𝔘𝔫𝔦",
    "line\r\nbreaks\rand\nmore\u2028here\u2029there",
    "zero\u200bwidth\u200djoiner soft\u00adhyphen _ __ a_b",
    "Voir http://example.org/a?b=c ou m.dupont@example.org, etc.",
)
SCRAPS = (
    *(" ", "  ", "\n", "\n\n", "\r\n", "\t", "\u2028", "\u00a0", "\u200b", "\x1c", "\x85", "\x90"),
    *(
        "du",
        "aux",
        "l'eau",
        "can't",
        "www.a.org",
        "3,000.5",
        "...",
        "e\u0301",
        "👩‍👩‍👧",
        "مرحبا",
        "ไทย",
    ),
    *("中文", "हिन्दी", "\ufeff", "|", "_", "<UNK>", "<PAD>", "ABC", "."),
)
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@pytest.fixture(scope="module", params=list(BACKENDS))
def parser(request: pytest.FixtureRequest) -> Parser:
    """A real model of every backend: what a new backend must pass."""
    return request.getfixturevalue(MODELS[request.param])


@pytest.fixture(scope="module", params=list(FRENCH))
def french(request: pytest.FixtureRequest) -> Parser:
    """A real French model of every backend that splits *du* into *de le*."""
    return request.getfixturevalue(FRENCH[request.param])


def raw(text: str) -> ParseInput:
    return ParseInput("raw", text=text)


def assert_sound(parse: Parse, text: str) -> None:
    """Whatever the text holds: spans tile its visible characters, and sentences are trees."""
    assert parse.text == text
    tokens = list(zip(parse.token_start, parse.token_end, strict=True))
    assert all(0 <= start < end <= len(text) for start, end in tokens)
    assert all(before[1] <= after[0] for before, after in pairwise(tokens))
    between = zip([0, *parse.token_end], [*parse.token_start, len(text)], strict=True)
    left_out = "".join(text[end:start] for end, start in between)
    assert all(is_blank(character) for character in left_out), ascii(left_out)
    for (first, end), (a, b) in zip(parse.token_ranges(), tokens, strict=True):
        assert all(a <= parse.word_start[word] for word in range(first, end))
        assert all(parse.word_end[word] <= b for word in range(first, end))
    for first, end in parse.word_ranges():
        DependencyTree(parse.head[first:end], [rel or "_" for rel in parse.deprel[first:end]])
    assert all(parse.form)


def is_blank(character: str) -> bool:
    return character.isspace() or unicodedata.category(character) in ("Cc", "Cf", "Cn", "Zs", "Mn")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("mode", ["raw", "sentence"])
def test_a_backend_gives_spans_into_the_text_as_received(parser, text, mode) -> None:
    parse = parser.parse(ParseInput(mode, text=text), Limits())
    assert_sound(parse, text)
    written = "".join(text[a:b] for a, b in zip(parse.token_start, parse.token_end, strict=True))
    assert "".join(written.split()) == "".join(text.split())


@pytest.mark.slow
@hypothesis.settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(st.sampled_from(SCRAPS), st.text(CHARACTERS, max_size=8)), max_size=8))
def test_a_backend_reads_any_text_or_finds_no_word_in_it(parser: Parser, scraps: list[str]) -> None:
    text = "".join(scraps)
    for mode in ("raw", "sentence"):
        try:
            parse = parser.parse(ParseInput(mode, text=text), Limits())
        except NoSentenceError:
            assert all(is_blank(character) for character in text)
            continue
        assert_sound(parse, text)
        assert mode == "raw" or len(parse.sentence_start) == 1


@hypothesis.settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(st.sampled_from(SCRAPS), st.text(CHARACTERS, min_size=1, max_size=8)),
        min_size=1,
        max_size=8,
    ).filter(lambda tokens: all(token.strip() for token in tokens))
)
def test_a_backend_reads_any_tokens(parser: Parser, tokens: list[str]) -> None:
    kept = parser.parse(ParseInput("pretokenized", tokens=tuple(tokens)), Limits())
    assert_sound(kept, " ".join(tokens))
    assert kept.form == tokens
    assert token_words(tokens, kept) == [[at] for at in range(len(tokens))]
    split = parser.parse(ParseInput("tokens_mwt", tokens=tuple(tokens)), Limits())
    assert_sound(split, " ".join(tokens))
    assert (split.token_start, split.token_end) == (kept.token_start, kept.token_end)
    assert token_words(tokens, split) == [[*range(*words)] for words in split.token_ranges()]
    for token, (first, end) in zip(tokens, split.token_ranges(), strict=True):
        assert end - first > 1 or split.form[first] == token
    try:
        cut = parser.parse(ParseInput("retokenize", tokens=tuple(tokens)), Limits())
    except NoSentenceError:
        return
    assert_sound(cut, " ".join(tokens))
    assert len(cut.sentence_start) == 1
    own = token_words(tokens, cut)
    assert {word for words in own for word in words} == set(range(cut.word_count))
    for token, words in zip(tokens, own, strict=True):
        assert words or all(is_blank(character) for character in token)
    assert words_of_tokens(split) <= words_of_tokens(cut) | words_of_tokens(kept)


def words_of_tokens(parse: Parse) -> set[tuple[int, int, tuple[str, ...]]]:
    """Span and words of each token."""
    ranges = (tuple(parse.form[first:end]) for first, end in parse.token_ranges())
    return {*zip(parse.token_start, parse.token_end, ranges, strict=True)}


def test_a_backend_reads_a_token_longer_than_its_model_can(parser: Parser) -> None:
    long = "x" * 3000
    for item in (
        raw(f"Voici {long} ici."),
        ParseInput("sentence", text=f"Voici {long} ici."),
        ParseInput("pretokenized", tokens=("Voici", long, "ici")),
        ParseInput("retokenize", tokens=("Voici", long, "ici")),
    ):
        parse = parser.parse(item, Limits())
        spans = zip(parse.word_start, parse.word_end, strict=True)
        assert [parse.text[start:end] for start, end in spans] == parse.form
        assert "".join(parse.form) == "".join(parse.text.split())


def test_a_backend_reads_one_sentence_whatever_it_holds(parser: Parser) -> None:
    text = " One.\n\nTwo? \r\n \r\nThree!\n"
    parse = parser.parse(ParseInput("sentence", text=text), Limits())
    assert parse.sentence_first_word == [0]
    assert parse.head.count(0) == 1
    assert_sound(parse, text)
    assert len(parser.parse(raw(text), Limits()).sentence_start) > 1


def test_given_tokens_stay_and_multiword_tokens_are_split(french: Parser) -> None:
    tokens = ("Le", "Dr.", "parle", "aux", "enfants", "de", "New York", "d'", "hier", "...")
    parse = french.parse(ParseInput("tokens_mwt", tokens=tokens), Limits())
    assert parse.form == [*tokens[:3], "à", "les", *tokens[4:]]
    words = [[0], [1], [2], [3, 4], *([at] for at in range(5, 11))]
    assert token_words(tokens, parse) == words
    labels = ["O", "O", "O", "B-PER", "I-PER", "O", "B-LOC", "O", "O", "O"]
    projected = project_labels(labels, words, parse.word_count)
    assert projected[3:6] == ["B-PER", "I-PER", "I-PER"]


@pytest.mark.parametrize("mode", ["raw", "sentence", "retokenize", "tokens_mwt"])
def test_multiword_tokens_share_or_split_their_span(french: Parser, mode: ParseMode) -> None:
    text = "Je parle du chat aux enfants ."
    tokens = tuple(text.split()) if mode in TOKEN_MODES else None
    parse = french.parse(ParseInput(mode, None if tokens else text, tokens), Limits())
    assert parse.form == ["Je", "parle", "de", "le", "chat", "à", "les", "enfants", "."]
    spans = list(zip(parse.word_start, parse.word_end, strict=True))
    assert spans[2:4] == [(9, 11)] * 2
    assert spans[5:7] == [(17, 20)] * 2
    assert parse.token_first_word == [0, 1, 2, 4, 5, 7, 8]


LONG = "He came , he saw , he won , and then the man went home again ."


def long_inputs(long: LongSentences) -> list[ParseInput]:
    tokens = tuple(LONG.split())
    return [
        ParseInput("raw", LONG, None, long),
        ParseInput("sentence", LONG, None, long),
        ParseInput("pretokenized", None, tokens, long),
        ParseInput("retokenize", None, tokens, long),
        ParseInput("tokens_mwt", None, tokens, long),
    ]


def test_a_backend_refuses_long_sentences_before_they_cost_anything(parser: Parser) -> None:
    limits = Limits(max_words_per_sentence=6)
    for item in long_inputs("refuse"):
        with pytest.raises(SentenceTooLongError) as caught:
            parser.parse(item, limits)
        assert caught.value.detail == {"words": 17, "limit": 6}


def test_a_backend_cuts_long_sentences_on_request_and_says_so(parser: Parser) -> None:
    limits = Limits(max_words_per_sentence=6)
    for item in long_inputs("split"):
        parse = parser.parse(item, limits)
        assert_sound(parse, LONG)
        sizes = [end - first for first, end in parse.word_ranges()]
        assert (sum(sizes), max(sizes)) == (17, 6)
        assert parse.form[: sizes[0]] == ["He", "came", ",", "he", "saw", ","]
        assert parse.misc is not None
        marked = [word for word, entry in enumerate(parse.misc) if entry]
        assert marked == parse.sentence_first_word[1:]
        written = parse.sentences()
        assert [one.words[0].misc for one in written[1:]] == [CONTINUED] * len(marked)
        assert not is_continued(parse, 0)
        assert all(is_continued(parse, word) for word in marked)


def test_a_backend_leaves_other_sentences_whole(parser: Parser) -> None:
    limits = Limits(max_words_per_sentence=6)
    parse = parser.parse(ParseInput("raw", f"It works.\n\n{LONG}", None, "split"), limits)
    assert parse.misc is not None
    assert parse.misc[:4] == [None] * 4
    short = parser.parse(ParseInput("raw", "It works.", None, "split"), limits)
    assert short == parser.parse(raw("It works."), limits)
    assert short.misc is None


def test_a_piece_is_parsed_as_a_sentence_of_its_own(parser: Parser) -> None:
    tokens = tuple(LONG.split())
    limits = Limits(max_words_per_sentence=6)
    whole = parser.parse(ParseInput("pretokenized", None, tokens, "split"), limits)
    reads_on = parser.identity.content["backend"] == "parsebank.v2"  # a piece has its context
    for first, end in whole.word_ranges():
        assert whole.head[first:end].count(0) == 1
        if reads_on:
            continue
        piece = parser.parse(ParseInput("pretokenized", None, tokens[first:end]), limits)
        assert whole.head[first:end] == piece.head
        assert whole.upos[first:end] == piece.upos


def test_a_multiword_token_is_never_cut(french: Parser) -> None:
    text = "Le du du du du du chat dort."
    for limit in (2, 3, 4, 5):
        item = ParseInput("sentence", text, None, "split")
        parse = french.parse(item, Limits(max_words_per_sentence=limit))
        assert_sound(parse, text)
        assert set(parse.sentence_first_word) <= set(parse.token_first_word)
        assert max(end - first for first, end in parse.word_ranges()) <= limit
    with pytest.raises(SentenceTooLongError):
        french.parse(item, Limits(max_words_per_sentence=1))


def test_a_backend_is_deterministic(parser: Parser) -> None:
    item = raw("Time flies like an arrow. Fruit flies like a banana.")
    assert parser.parse(item, Limits()) == parser.parse(item, Limits())


def test_many_texts_get_the_answers_that_each_gets_alone(parser: Parser) -> None:
    limits = Limits(max_words_per_sentence=40)
    items = [
        *(ParseInput("sentence" if at % 2 else "raw", text=text) for at, text in enumerate(TEXTS)),
        raw("\n\nEdges. \n"),
        raw("\x80"),
        ParseInput("pretokenized", tokens=("New York", "is", "big")),
        raw("word " * 60),
        ParseInput("raw", "word " * 60, None, "split"),
        ParseInput("retokenize", tokens=("Le", "chat", "du", "voisin")),
        ParseInput("tokens_mwt", tokens=("Le", "chat", "du", "voisin", "\x85a", "du" * 600)),
        ParseInput("tokens_mwt", tokens=("Il", "parle", "aux", "chats")),
        ParseInput("pretokenized", tokens=("a",) * 41),
        *(raw(f"Sentence {at}, and one more.") for at in range(20)),
    ]
    together = list(parser.parse_many(items, limits))
    alone = list(one_by_one(parser, items, limits))
    assert [outcome_of(one) for one in together] == [outcome_of(one) for one in alone]
    errors = [one.error_type for one in together if isinstance(one, ParsebankError)]
    assert errors.count("sentence_too_long") == 2
    assert list(parser.parse_many([], limits)) == []


def outcome_of(outcome: Outcome) -> object:
    return (outcome.message, outcome.detail) if isinstance(outcome, ParsebankError) else outcome
