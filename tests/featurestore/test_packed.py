"""One parse in one piece: what comes back, and what damaged or newer bytes do."""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from featurestore import ParseRecord
from featurestore.tables.encode.packed import pack_record, unpack_record
from featurestore.tables.encode.parses import decode_parses, encode_parses
from syntax import Parse
from syntax.errors import StoreFormatError

from .test_encode_parses import any_parse, text
from .test_encode_parses import records as any_records

KEY = "0123456789abcdef" * 2


def back(record: ParseRecord) -> ParseRecord:
    return unpack_record(record.key, pack_record(record))


def words(*forms: str, **columns: list) -> Parse:
    """Words end to end, each a token of its own, in one sentence."""
    ends = [sum(map(len, forms[: number + 1])) for number in range(len(forms))]
    starts = [end - len(form) for end, form in zip(ends, forms, strict=True)]
    numbers = list(range(len(forms)))
    empty = {name: [None] * len(forms) for name in ("lemma", "upos", "xpos", "feats", "deprel")}
    spans = {"word_start": starts, "word_end": ends, "token_start": starts, "token_end": ends}
    plain = {
        **empty,
        **spans,
        "text": "".join(forms),
        "form": list(forms),
        "head": numbers,
        "token_first_word": numbers,
        "sentence_start": [0],
        "sentence_end": [ends[-1]],
        "sentence_first_word": [0],
    }
    return Parse(**{**plain, **columns})


def recorded(parse: Parse) -> ParseRecord:
    return ParseRecord(KEY, "tr", "f" * 32, "raw", parse)


@given(any_records)
def test_packed_is_the_same_as_columns(some) -> None:
    rows = encode_parses(some)
    packed = rows["record"].to_pylist()
    assert [unpack_record(*row) for row in zip(rows["key"].to_pylist(), packed, strict=True)] == (
        decode_parses(rows)
    )


@given(any_parse(), text, text)
@example(Parse("", *([] for _ in range(15))), "", "")
@example(Parse("only blanks ", *([] for _ in range(15)), misc=[]), "ADJ", "_")
def test_every_parse_comes_back(parse, lang, mode) -> None:
    record = ParseRecord(KEY, lang, "", mode, parse)
    assert back(record) == record


@pytest.mark.parametrize(
    "parse",
    [
        words("Ev", "DE", lemma=["ev", "de"]),
        words("\u0130stanbul", "\u0130", lemma=["i\u0307stanbul", "i"]),  # not what lower() gives
        words("Stra\u00dfe", "\U0001f600", lemma=["strasse", "\U0001f600"]),
        words("a", "b", lemma=["B", "b"], upos=["NOUN", "noun"], deprel=["nsubj:pass", "case"]),
        words("case", "_", lemma=["_", "case"], upos=["_", ""], xpos=["", None]),
        words("x" * 300, "y"),
        words("x" * 70_000, "y"),
        words("a", "b", misc=[None, "SpaceAfter=No"], feats=["a=b\tc\nd", "\x00"]),
        words("a", head=[2**31 - 1]),
        words("a", head=[-(2**31)], sentence_start=[2**31 - 1], sentence_end=[-(2**31)]),
        words(*(f"w{number}" for number in range(400)), xpos=[f"x{n}" for n in range(400)]),
        # A multiword token: its two words share its span.
        replace(
            words("du", "e"),
            form=["de", "le", "e"],
            **{name: [None] * 3 for name in ("lemma", "upos", "xpos", "feats", "deprel")},
            head=[0, 1, 1],
            word_start=[0, 0, 2],
            word_end=[2, 2, 3],
            token_first_word=[0, 2],
        ),
    ],
    ids=lambda parse: parse.text[:8],
)
def test_unusual_values_come_back(parse) -> None:
    assert back(recorded(parse)) == recorded(parse)


def test_real_parses_come_back(records) -> None:
    assert [back(record) for record in records] == records


def test_lists_of_a_record_are_its_own(records) -> None:
    parse = back(records[0]).parse
    assert parse.token_start is not parse.word_start


def test_the_encoding_is_the_published_one() -> None:
    """These bytes lie in people's stores: another encoding needs another version."""
    parse = words("Cats", "sleep", lemma=["cat", "sleep"], upos=["NOUN", "VERB"], head=[2, 0])
    head = struct.pack("<BBBxIIII", 1, 0, 2, 2, 2, 1, 29)
    numbers = [58, 59, 60, 0, 4, 0, 5, 0, 9, 0, 2, 0, 1, 1, 61, 1, 11, 19, *[0] * 6, 9, 2, 32, 3, 3]
    assert (
        pack_record(recorded(parse))
        == head + bytes(numbers) + b"Catssleep" + b"tr" + b"f" * 32 + b"raw" + b"cat"
    )


def test_a_newer_encoding_is_refused_by_name(records) -> None:
    packed = pack_record(records[0])
    with pytest.raises(StoreFormatError, match="has encoding 2; this release reads 1"):
        unpack_record(KEY, b"\x02" + packed[1:])


@pytest.mark.parametrize("at", range(4, 20))
def test_a_count_that_is_too_large_is_refused(records, at) -> None:
    packed = bytearray(pack_record(records[0]))
    packed[at] = 255
    with pytest.raises(StoreFormatError, match=KEY):
        unpack_record(KEY, bytes(packed))


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 255))
def test_damaged_record_is_an_error_or_a_valid_parse(records, place, value) -> None:
    packed = bytearray(pack_record(records[0]))
    packed[int(place * len(packed))] = value
    with suppress(StoreFormatError):
        assert isinstance(unpack_record(KEY, bytes(packed)).parse, Parse)


@given(st.floats(0, 1, exclude_max=True))
def test_a_torn_record_is_refused(records, place) -> None:
    packed = pack_record(records[0])
    with pytest.raises(StoreFormatError, match=KEY):
        unpack_record(KEY, packed[: int(place * len(packed))])
