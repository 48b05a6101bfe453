from __future__ import annotations

import pytest

from featurestore.dataset.parsers import dataset_parsers, parsers_named, store_parser, store_parsers
from syntax.errors import SpecError, UnknownLanguageError, UnknownParserError
from syntax.lists import ParserChoice

OLD, NEW, OTHER = ("0" * 32, "1" * 32, "2" * 32)
DESCRIBED = {OLD: {"name": "udpipe/en"}, NEW: {"name": "udpipe/en"}, OTHER: {"name": "stanza/en"}}


def test_a_name_stands_for_all_its_fingerprints() -> None:
    assert parsers_named("udpipe/en", [NEW, OTHER, OLD], DESCRIBED) == [OLD, NEW]
    assert parsers_named("udpipe/en", [OLD], DESCRIBED) == [OLD]


def test_fingerprint_prefix_selects_a_parser() -> None:
    assert parsers_named("222222", [NEW, OTHER], DESCRIBED) == [OTHER]
    assert parsers_named("333333", ["3" * 32], DESCRIBED) == ["3" * 32]  # nobody described it
    with pytest.raises(UnknownParserError):
        parsers_named("22222", [NEW, OTHER], DESCRIBED)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownParserError, match="udpipe/en") as caught:
        parsers_named("udpipe/de", [NEW, OTHER, OLD], DESCRIBED, "dataset 'xnli'")
    assert "parser of dataset 'xnli'" in str(caught.value)


def test_parsers_without_parses_are_not_listed(store, records) -> None:
    store.parses.append(records[:2])
    store.describe(records[0].parser, "parser", {"name": "gold"})
    store.describe(OTHER, "parser", {"name": "stanza/en"})
    assert store_parsers(store, ParserChoice.read("gold")) == {"en": [records[0].parser]}
    with pytest.raises(UnknownParserError, match="gold"):
        store_parsers(store, ParserChoice.read("stanza/en"))
    with pytest.raises(UnknownLanguageError, match="'fr'"):
        store_parsers(store, ParserChoice(), ["fr"])


def test_several_parsers_of_one_name_are_told_apart_by_fingerprint(store, make_record, parses):
    for number, parser in enumerate((OLD, NEW)):
        store.parses.append([make_record(parses[number], number, parser)])
        store.describe(parser, "parser", {"name": "udpipe/en"})
    with pytest.raises(SpecError, match=rf"\({OLD[:12]}\).*\({NEW[:12]}\); name one") as caught:
        store_parser(store, "udpipe/en")
    assert caught.value.detail["parsers"] == [OLD, NEW]
    assert store_parser(store, NEW[:6]) == NEW


def test_the_parsers_of_a_language_are_those_of_all_its_splits(
    store, make_handle, make_row, records
) -> None:
    assert dataset_parsers(store, "pairs", "en") == []
    store.features.append(make_handle(), [make_row(0, records[:2])])
    store.features.append(make_handle(split="dev"), [make_row(1, records[:2], parser=OTHER)])
    store.features.append(make_handle(lang="fr"), [make_row(2, records[:2], parser=NEW)])
    assert dataset_parsers(store, "pairs", "en") == sorted([records[0].parser, OTHER])
