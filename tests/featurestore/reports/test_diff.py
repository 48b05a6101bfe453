"""Agreement of two parsers over the same texts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from featurestore.reports.diff import parser_agreement
from syntax.errors import SpecError, UnknownParserError

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


def test_parsers_are_named_by_fingerprint_too(twice) -> None:
    assert parser_agreement(twice, FIRST[:8], SECOND).texts == 10


def test_only_texts_of_a_dataset(twice, handle, make_row, records, make_record) -> None:
    own = [make_record(r.parse, n, FIRST) for n, r in enumerate(records[:10])]
    twice.features.append(handle, [make_row(0, (own[2], own[3]))])
    assert parser_agreement(twice, "one", "two", dataset="pairs").texts == 2


def test_what_cannot_be_compared_is_named(twice, records) -> None:
    twice.parses.append(records[20:21])
    with pytest.raises(UnknownParserError, match="one, two"):
        parser_agreement(twice, "three", "one")
    with pytest.raises(SpecError, match="one parser"):
        parser_agreement(twice, "one", FIRST)
    with pytest.raises(SpecError, match="no text was parsed by both"):
        parser_agreement(twice, "one", records[20].parser)
