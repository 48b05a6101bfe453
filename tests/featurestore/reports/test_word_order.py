"""Directions of dependencies, against counting by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from featurestore.reports.word_order import WordOrder, word_order
from syntax import read_conllu
from syntax.errors import SpecError, UnknownParserError
from syntax.trees.conllu import parse_from_sentences


def by_hand(sentences, kind) -> tuple[int, int]:
    after = total = 0
    for sentence in sentences:
        for word in sentence.words:
            if word.head:
                governor = sentence.words[word.head - 1]
                if (word.upos, governor.upos, word.deprel.partition(":")[0]) == kind:
                    after += word.id > word.head
                    total += 1
    return after, total


def test_directions_are_those_found_by_counting(store, records) -> None:
    store.parses.append(records)
    sentences = [sentence for record in records for sentence in record.parse.sentences()]
    found = word_order(store, types=10, min_count=1)
    assert found.langs == ("en",)
    assert found.types[0] in {("DET", "NOUN", "det"), ("PUNCT", "VERB", "punct")}
    for at, kind in enumerate(found.types):
        after, total = by_hand(sentences, kind)
        assert found.counts[0, at] == total
        assert found.following[0, at] == after / total
    assert (np.diff(found.counts[0]) <= 0).all()


def test_a_parser_is_chosen_by_name_or_fingerprint(store, records, make_record) -> None:
    store.parses.append(records)
    store.parses.append([make_record(record.parse, 0, "0" * 32) for record in records[:3]])
    store.describe("0" * 32, "parser", {"name": "udpipe/some"})
    totals = [
        word_order(store, types=500, min_count=1, parser=parser).counts.sum()
        for parser in (None, records[0].parser, "udpipe/some", "000000")
    ]
    assert totals[0] == totals[1] + totals[2]
    assert totals[2] == totals[3] > 0
    with pytest.raises(UnknownParserError, match="udpipe/some"):
        word_order(store, parser="udpipe/other")


def test_distance_is_the_mean_over_shared_types() -> None:
    types = (("ADJ", "NOUN", "amod"), ("OBJ", "VERB", "obj"), ("ADP", "NOUN", "case"))
    following = np.array([[0.0, 1.0, np.nan], [0.5, 1.0, 0.2], [1.0, 0.0, 0.4]])
    order = WordOrder(("a", "b", "c"), types, following, np.full((3, 3), 50))
    expected = [[0, 0.25, 1.0], [0.25, 0, (0.5 + 1 + 0.2) / 3], [1.0, (0.5 + 1 + 0.2) / 3, 0]]
    assert np.allclose(order.distances(), expected)
    assert order.clusters()[0, :2].tolist() == [0, 1]
    assert order.to_json()["following"]["a"] == [0.0, 1.0, None]


def test_languages_without_a_shared_type_are_named() -> None:
    following = np.array([[0.0, np.nan], [np.nan, 1.0]])
    order = WordOrder(("a", "b"), (("X", "X", "x"),) * 2, following, np.ones((2, 2), np.int64))
    with pytest.raises(SpecError, match="a and b share no dependency type"):
        order.distances()


def test_a_language_with_too_little_text_is_left_out(store, records, make_record) -> None:
    tiny = replace(make_record(records[0].parse, 99), lang="xx")
    store.parses.append(
        [*records, *(replace(r, key=r.key[::-1], lang="fr") for r in records), tiny]
    )
    found = word_order(store)
    assert (found.langs, found.left_out) == (("en", "fr"), ("xx",))
    assert found.to_json()["distances"] == {"en": {"en": 0, "fr": 0}, "fr": {"en": 0, "fr": 0}}
    assert word_order(store, min_count=1).left_out == ()


@pytest.mark.parametrize("types", [0, -3])
def test_no_types_cannot_be_compared(store, types) -> None:
    with pytest.raises(SpecError, match=f"types is {types}"):
        word_order(store, types=types)


def test_more_dependents_than_there_are_cannot_be_asked_for(store, records) -> None:
    store.parses.append(records)
    with pytest.raises(SpecError, match="no language has 100000 dependents of one type, the most"):
        word_order(store, min_count=100_000)


@pytest.mark.parametrize("name", ["tree.foo", "tree"])
def test_a_picture_of_an_unknown_kind_is_refused(tmp_path: Path, name) -> None:
    shares = np.array([[0.0], [0.5]])
    order = WordOrder(("a", "b"), (("ADJ", "NOUN", "amod"),), shares, np.full((2, 1), 50))
    with pytest.raises(SpecError, match=r"is no picture; end its name with one of .*\.svg"):
        order.draw(tmp_path / name)


def test_rare_types_do_not_count(store, records) -> None:
    store.parses.append(records)
    found = word_order(store, types=1000, min_count=20)
    assert np.isnan(found.following[found.counts < 20]).all()
    assert not np.isnan(found.following[found.counts >= 20]).any()


def test_an_empty_store_has_no_word_order(store) -> None:
    with pytest.raises(SpecError, match="no parses with UPOS"):
        word_order(store)


def test_one_language_cannot_be_clustered(store, records) -> None:
    store.parses.append(records)
    with pytest.raises(SpecError, match="needs two languages, and there are 1"):
        word_order(store).clusters()


@pytest.mark.slow
def test_related_languages_are_close(store, make_record, data_dir: Path, tmp_path: Path) -> None:
    """On real trees: Turkish, which is verb-final, is far from three European languages."""
    folders = {"en": "English-PUD", "fr": "French-PUD", "es": "Spanish-PUD", "tr": "Turkish-IMST"}
    for lang, folder in folders.items():
        path = next((data_dir / "treebanks" / f"UD_{folder}").glob("*test.conllu"))
        sentences = list(read_conllu(path))[:400]
        parses = [parse_from_sentences([sentence]) for sentence in sentences]
        store.parses.append(
            [replace(make_record(parse, n, lang * 16), lang=lang) for n, parse in enumerate(parses)]
        )
    found = word_order(store)
    distance = dict(zip(found.langs, found.distances()[found.langs.index("fr")], strict=True))
    assert distance["fr"] < distance["es"] < distance["en"] < distance["tr"]
    found.draw(tmp_path / "tree.svg")
    assert "<svg" in (tmp_path / "tree.svg").read_text(encoding="utf-8")
