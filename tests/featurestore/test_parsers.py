from __future__ import annotations

import pytest

from featurestore.parsers import parsers_named, store_parsers
from syntax.errors import UnknownParserError

OLD, NEW, OTHER = ("0" * 32, "1" * 32, "2" * 32)
DESCRIBED = {OLD: {"name": "udpipe/en"}, NEW: {"name": "udpipe/en"}, OTHER: {"name": "stanza/en"}}


def test_a_name_stands_for_all_its_fingerprints_the_last_described_at_the_end() -> None:
    assert parsers_named("udpipe/en", [NEW, OTHER, OLD], DESCRIBED) == [OLD, NEW]
    assert parsers_named("udpipe/en", [OLD], DESCRIBED) == [OLD]


def test_the_beginning_of_a_fingerprint_will_do() -> None:
    assert parsers_named("222222", [NEW, OTHER], DESCRIBED) == [OTHER]
    assert parsers_named("333333", ["3" * 32], DESCRIBED) == ["3" * 32]  # nobody described it
    with pytest.raises(UnknownParserError):
        parsers_named("22222", [NEW, OTHER], DESCRIBED)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownParserError, match="udpipe/en") as caught:
        parsers_named("udpipe/de", [NEW, OTHER, OLD], DESCRIBED, "dataset 'xnli'")
    assert "parser of dataset 'xnli'" in str(caught.value)


def test_only_parsers_with_parses_count(store, records) -> None:
    store.parses.append(records[:2])
    store.describe(records[0].parser, "parser", {"name": "gold"})
    store.describe(OTHER, "parser", {"name": "stanza/en"})
    assert store_parsers(store, "gold") == [records[0].parser]
    with pytest.raises(UnknownParserError, match="gold"):
        store_parsers(store, "stanza/en")
