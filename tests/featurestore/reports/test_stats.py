"""Statistics of stored parses, against counting by hand."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace

import pytest

from featurestore.reports.stats import parse_stats
from syntax.errors import UnknownLanguageError, UnknownParserError


def test_statistics_are_those_of_the_sentences(store, records) -> None:
    store.parses.append(records)
    (stats,) = parse_stats(store)
    sentences = [sentence for record in records for sentence in record.parse.sentences()]
    lengths = [len(sentence.words) for sentence in sentences]
    words = [word for sentence in sentences for word in sentence.words]
    heads = [Counter(word.head for word in s.words if word.head) for s in sentences]
    assert (stats.sentences, stats.words) == (len(sentences), len(words))
    assert stats.length.mean == statistics.mean(lengths)
    assert stats.length.largest == max(lengths)
    assert stats.arity.mean == statistics.mean(max(count.values(), default=0) for count in heads)
    assert stats.upos == Counter(word.upos for word in words)
    assert stats.deprels == Counter(word.deprel for word in words)
    assert list(stats.upos.values()) == sorted(stats.upos.values(), reverse=True)
    assert 0.9 < stats.projective <= 1.0


@pytest.mark.slow
def test_languages_and_parsers_are_kept_apart(store, records, make_record) -> None:
    other = [make_record(record.parse, n, "0" * 32) for n, record in enumerate(records[:3])]
    french = [replace(make_record(records[0].parse, 99), lang="fr")]
    store.parses.append([*records, *other, *french])
    store.describe("0" * 32, "parser", {"name": "udpipe/none"})
    groups = {(stats.lang, stats.parser): stats.sentences for stats in parse_stats(store)}
    assert groups["en", "udpipe/none"] == 3
    assert groups["fr", records[0].parser] == 1
    assert [stats.lang for stats in parse_stats(store, lang="fr")] == ["fr"]
    with pytest.raises(UnknownLanguageError, match=r"'xx'\. Known: en, fr"):
        parse_stats(store, lang="xx")
    with pytest.raises(UnknownParserError, match=r"'fr' of the store .*, not by 'udpipe/none'"):
        parse_stats(store, lang="en,fr", parser="udpipe/none")
    own = parse_stats(store, ["en", "fr"], f"en:udpipe/none,fr:{records[0].parser[:8]}")
    assert [(stats.lang, stats.sentences) for stats in own] == [("en", 3), ("fr", 1)]
    (none,) = parse_stats(store, parser="udpipe/none")
    assert (none.lang, none.fingerprint) == ("en", "0" * 32)


def test_a_store_without_parses_has_no_statistics(store) -> None:
    assert parse_stats(store) == []
