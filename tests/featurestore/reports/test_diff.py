"""Agreement of two parsers over the same texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from featurestore.reports.diff import parser_agreement
from syntax.errors import (
    SpecError,
    UnknownDatasetError,
    UnknownLanguageError,
    UnknownParserError,
)
from syntax.fingerprint import fingerprint
from syntax.trees.conllu import parse_from_sentences

FIRST, SECOND = "a" * 32, "b" * 32


@pytest.fixture
def twice(store, records, make_record):
    """Ten texts by two parsers; the second has one deprel, one tag and one head of its own."""
    store.parses.append([make_record(r.parse, n, FIRST) for n, r in enumerate(records[:10])])
    parses = [record.parse for record in records[:10]]
    deprel = list(parses[0].deprel)
    deprel[0] = "dep"
    upos = list(parses[1].upos)
    upos[0] = "X"
    parses[0] = replace(parses[0], deprel=deprel)
    parses[1] = replace(parses[1], upos=upos)
    store.parses.append([make_record(parse, n, SECOND) for n, parse in enumerate(parses)])
    store.describe(FIRST, "parser", {"name": "one"})
    store.describe(SECOND, "parser", {"name": "two"})
    return store


def test_agreement_counts_what_differs(twice, records) -> None:
    found = parser_agreement(twice, "one", "two")
    words = sum(record.parse.word_count for record in records[:10])
    assert (found.texts, found.identical) == (10, 8)
    assert found.scores["UAS"].f1 == 100.0
    assert found.scores["LAS"].correct == words - 1
    assert found.scores["UPOS"].correct == words - 1
    assert found.confusions["deprel"] == [(records[0].parse.deprel[0], "dep", 1)]
    assert found.confusions["upos"] == [(records[1].parse.upos[0], "X", 1)]
    assert [difference.text for difference in found.differences] == [records[0].parse.text]
    assert found.to_json()["scores"]["LAS"]["f1"] == found.scores["LAS"].f1
    assert parser_agreement(twice, FIRST[:8], SECOND) == found


def again(record, mode: str, number: int):
    """The parse once more, under another key."""
    key = fingerprint([record.key, mode, number])
    return replace(record, key=key, mode=mode)


def test_a_text_counts_once_however_often_it_was_parsed(twice, records, make_record) -> None:
    for parser in (FIRST, SECOND):
        own = make_record(records[5].parse, 5, parser)
        twice.parses.append([again(own, mode, n) for mode in ("raw", "gold") for n in range(3)])
    found = parser_agreement(twice, "one", "two")
    assert (found.texts, found.modes) == (10, {"gold": 9, "raw": 1})


def test_other_tokens_are_another_text(store, records, make_record) -> None:
    parse = records[0].parse
    joined = replace(
        parse,
        token_start=[parse.token_start[0], *parse.token_start[2:]],
        token_end=parse.token_end[1:],
        token_first_word=[0, *parse.token_first_word[2:]],
    )
    parses = {FIRST: parse, SECOND: joined}
    store.parses.append(
        [replace(make_record(parse, 0, key), mode="pretokenized") for key, parse in parses.items()]
    )
    with pytest.raises(SpecError, match="1 texts as pretokenized en, the other"):
        parser_agreement(store, FIRST, SECOND)


def parse_from_tokens(parse):
    """The same trees over the tokens joined by single spaces."""
    sentences = [replace(sentence, comments=()) for sentence in parse.sentences()]
    words = [
        replace(s, words=tuple(replace(word, misc=None) for word in s.words)) for s in sentences
    ]
    return parse_from_sentences(words)


def test_gold_trees_are_compared_with_a_parser_in_any_mode(store, records, make_record) -> None:
    gold = [make_record(record.parse, n, FIRST) for n, record in enumerate(records[:5])]
    theirs = [parse_from_tokens(record.parse) for record in records[:5]]
    parsed = [make_record(parse, n, SECOND) for n, parse in enumerate(theirs)]
    store.parses.append([*gold, *(replace(record, mode="pretokenized") for record in parsed)])
    assert theirs[0].text != records[0].parse.text
    found = parser_agreement(store, FIRST, SECOND)
    assert (found.texts, found.identical) == (5, 5)
    assert found.modes == {"gold, pretokenized": 5}
    assert found.scores["LAS"].f1 == 100.0
    assert found.confusions == {"upos": [], "deprel": []}


def test_segments_of_a_dataset_that_both_have_parsed_are_compared(
    twice, handle, make_row, records, make_record
) -> None:
    for parser, mode in ((FIRST, "raw"), (SECOND, "sentence")):
        own = [again(make_record(r.parse, 0, parser), mode, 0) for r in records[:4]]
        twice.parses.append(own)
        rows = [make_row(0, own[:2], parser=parser), make_row(1, (own[0], own[3]), parser=parser)]
        twice.features.append(handle, rows)
    found = parser_agreement(twice, "one", "two", dataset="pairs")
    assert (found.texts, found.modes) == (3, {"raw, sentence": 3})


@pytest.mark.slow
def test_agreement_refuses_invalid_comparisons(twice, handle, make_row, records) -> None:
    twice.parses.append(records[20:21])
    twice.features.append(handle, [make_row(0, records[:2])])
    with pytest.raises(UnknownParserError, match="one, two"):
        parser_agreement(twice, "three", "one")
    with pytest.raises(SpecError, match="one parser"):
        parser_agreement(twice, "one", FIRST)
    with pytest.raises(SpecError, match="no text was parsed by both"):
        parser_agreement(twice, "one", records[20].parser)
    with pytest.raises(UnknownDatasetError, match=r"'pear'\. Did you mean 'pairs'"):
        parser_agreement(twice, "one", "two", dataset="pear")
    with pytest.raises(UnknownLanguageError, match=r"'xx'\. Known: en"):
        parser_agreement(twice, "one", "two", lang="xx")
    with pytest.raises(SpecError, match="shown is -2"):
        parser_agreement(twice, "one", "two", shown=-2)


@pytest.mark.slow
def test_error_for_empty_filters_counts_texts_without_them(
    twice, handle, make_row, make_record, records
) -> None:
    french = [
        replace(make_record(records[20 + n].parse, n, parser), lang="fr")
        for n, parser in enumerate((FIRST, SECOND))
    ]
    twice.parses.append(french)
    own = [make_record(r.parse, n, FIRST) for n, r in enumerate(records[:2])]
    twice.features.append(handle, [make_row(0, own, parser=FIRST)])
    with pytest.raises(
        SpecError, match=r"no text with `lang=fr` .*; there are 10 without filters$"
    ):
        parser_agreement(twice, "one", "two", lang="fr")
    wanted = r"no text with `dataset=pairs`, `lang=fr` .*; there are 2 with `dataset=pairs`$"
    with pytest.raises(SpecError, match=wanted):
        parser_agreement(twice, "one", "two", lang="fr", dataset="pairs")


@pytest.mark.slow
def test_error_for_different_modes_names_the_common_dataset(
    store, handle, make_row, make_record, records
) -> None:
    for parser, mode in ((FIRST, "raw"), (SECOND, "sentence")):
        own = [replace(make_record(r.parse, 0, parser), mode=mode) for r in records[:2]]
        store.parses.append(own)
        store.features.append(handle, [make_row(0, own, parser=parser)])
    with pytest.raises(SpecError, match=r"no text was .*; there are 2 with `dataset=pairs`$"):
        parser_agreement(store, FIRST, SECOND)
