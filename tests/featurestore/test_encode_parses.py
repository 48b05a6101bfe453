from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestore import ParseRecord
from featurestore.tables.encode.parses import check_record, decode_parses, encode_parses
from syntax import Parse
from syntax.errors import InputError, InvalidCharacterError, SpecError

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
tag = st.none() | text


@st.composite
def any_parse(draw) -> Parse:
    body = draw(text)
    words = draw(st.integers(0, 5))

    def column(kind) -> list:
        return draw(st.lists(kind, min_size=words, max_size=words))

    def firsts() -> list[int]:
        return sorted({0, *draw(st.sets(st.integers(0, words - 1)))}) if words else []

    def spans(size: int) -> tuple[list[int], list[int]]:
        place = st.integers(0, len(body))
        bounds = draw(st.lists(place, min_size=2 * size, max_size=2 * size).map(sorted))
        return bounds[::2], bounds[1::2]

    word, token, sentence = spans(words), firsts(), firsts()
    token_span, sentence_span = spans(len(token)), spans(len(sentence))
    return Parse(
        text=body,
        form=column(text),
        **{name: column(tag) for name in ("lemma", "upos", "xpos", "feats", "deprel")},
        head=column(st.integers(0, 2**31 - 1)),
        **dict(zip(("word_start", "word_end"), word, strict=True)),
        **dict(zip(("token_start", "token_end"), token_span, strict=True)),
        **dict(zip(("sentence_start", "sentence_end"), sentence_span, strict=True)),
        token_first_word=token,
        sentence_first_word=sentence,
        misc=draw(st.none() | st.just(column(tag))),
    )


records = st.lists(
    st.builds(
        ParseRecord,
        key=st.text("0123456789abcdef", min_size=32, max_size=32),
        lang=text,
        parser=text,
        mode=st.sampled_from(["raw", "gold"]),
        parse=any_parse(),
    ),
    max_size=4,
)


@pytest.mark.slow
@given(records)
def test_every_record_comes_back(some) -> None:
    assert decode_parses(encode_parses(some)) == some


def test_a_lone_surrogate_is_refused_by_name(records) -> None:
    parse = records[0].parse
    bad = replace(records[0], parse=replace(parse, text=parse.text + "\ud800"))
    with pytest.raises(InvalidCharacterError, match=records[0].key):
        encode_parses([records[1], bad])


def test_a_missing_head_is_refused(records) -> None:
    parse = records[0].parse
    bad = replace(records[0], parse=replace(parse, head=[None] * parse.word_count))
    with pytest.raises(InputError, match=records[0].key):
        check_record(bad)


@pytest.mark.parametrize("key", ["", "0" * 31, "G" * 32, " " * 32, "0" * 64])
def test_a_malformed_key_is_refused(records, key) -> None:
    with pytest.raises(SpecError, match="32 lower-case hexadecimal digits"):
        check_record(replace(records[0], key=key))
