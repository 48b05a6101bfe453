"""Real parses in many scripts, through the store and back."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise

import pytest

from featurestore import ParseRecord, Transaction
from featurestore.maintenance.validate import validate_store
from featurestore.tables.encode.packed import unpack_record
from featurestore.tables.encode.parses import decode_parses, encode_parses
from syntax import fingerprint, parse_from_sentences, read_conllu

SENTENCES = 60


@pytest.fixture(scope="module")
def treebanks(data_dir) -> dict[str, list[ParseRecord]]:
    """Some parses of each treebank, by its code."""
    paths = sorted((data_dir / "treebanks").glob("*/*-ud-test.conllu"))
    return {path.stem.split("-")[0]: list(records_of(path)) for path in paths}


def records_of(path):
    for sentence in islice(read_conllu(path), SENTENCES):
        parse = parse_from_sentences([sentence])
        key = fingerprint([path.name, sentence.sent_id, parse.text])
        lang = path.stem.split("_")[0]
        yield ParseRecord(key, lang, fingerprint("gold"), "gold", parse)


@pytest.mark.slow
def test_parses_in_many_scripts_come_back(store, treebanks) -> None:
    records = [record for group in treebanks.values() for record in group]
    assert len(records) > 10 * SENTENCES
    for name, group in treebanks.items():
        store.parses.append(group, Transaction(name))
    keys = [record.key for record in records]
    assert store.parses.get_many(keys) == {record.key: record for record in records}
    words = store.sql("select lang, count(*) from words group by all").fetchall()
    expected: Counter[str] = Counter()
    for record in records:
        expected[record.lang] += record.parse.word_count
    assert dict(words) == expected
    assert validate_store(store).problem_count == 0


def packed_otherwise(path) -> list[str]:
    """Sentences of a treebank whose packed record is not what their columns say."""
    parses = (parse_from_sentences([sentence]) for sentence in read_conllu(path))
    records = [ParseRecord(f"{n:032x}", "x", "f" * 32, "gold", p) for n, p in enumerate(parses)]
    rows = encode_parses(records)
    pairs = zip(decode_parses(rows), rows["record"].to_pylist(), records, strict=True)
    return [
        record.parse.text
        for columns, packed, record in pairs
        if not columns == unpack_record(record.key, packed) == record
    ]


@pytest.mark.slow
def test_packed_is_the_same_as_columns_on_every_treebank(data_dir) -> None:
    paths = sorted((data_dir / "treebanks").glob("**/*.conllu"))
    assert len(paths) > 40
    assert {path.name: packed_otherwise(path) for path in paths} == {
        path.name: [] for path in paths
    }


@pytest.mark.slow
def test_features_in_many_scripts_stream(store, treebanks, make_row, make_handle) -> None:
    total = 0
    for group in treebanks.values():
        rows = [make_row(n, (a, b)) for n, (a, b) in enumerate(pairwise(group))]
        store.features.append(make_handle(lang=group[0].lang), with_keys(rows, total))
        total += len(rows)
    data = store.dataset("pairs")
    assert len(data) == total
    options = {"batch_size": 16, "max_length": 96}
    seen = []
    stored = data.stream(matrices="stored", **options)
    for derived, read in zip(data.stream(**options), stored, strict=True):
        for name in ("distance", "depth", "ancestor"):
            assert (derived[name] == read[name]).all()
        seen += derived["example_id"]
    assert len(seen) == total


def with_keys(rows, start: int):
    """Rows of several treebanks of one language lie in one partition."""
    return [
        replace(row, seq=start + n, example_id=f"{start + n}", example_key=fingerprint(start + n))
        for n, row in enumerate(rows)
    ]
