"""A noisy dataset is a dataset of its own: other parses, other keys, everything else the same."""

from __future__ import annotations

import json

import pytest

from featurestore import FeatureStore, open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.validate import validate_store
from featurestore.reports.export import parse_keys
from featurestore.reports.noise import add_noise
from syntax.errors import SpecError
from syntax.trees.noise import Noise

from .conftest import PARSER


@pytest.fixture
def noisy(whole: FeatureStore) -> FeatureStore:
    add_noise(whole, whole.dataset("pairs"), Noise(0.3, ("heads", "labels")), "noisy")
    return whole


def test_texts_pieces_and_labels_are_kept(noisy: FeatureStore) -> None:
    query = """
        select o.example_id, o.texts = n.texts and o.seq = n.seq, o.input_ids = n.input_ids,
            o.label is not distinct from n.label, o.parser = n.parser, o.head = n.head
        from examples o join examples n using (example_id)
        where o.dataset = 'pairs' and n.dataset = 'noisy'"""
    rows = noisy.sql(query).fetchall()
    assert len(rows) == len(noisy.dataset("pairs"))
    assert all(texts and ids and label and not parser for _, texts, ids, label, parser, _ in rows)
    assert not all(head for *_, head in rows)


def test_store_describes_the_noise_as_its_own_parser(noisy: FeatureStore) -> None:
    report = validate_store(noisy, deep=True)
    assert not report.problems
    assert report.parses > 40
    data = noisy.dataset("noisy")
    ((parser, content),) = data.parsers.items()
    assert parser != PARSER
    assert content["of"] == PARSER
    assert (content["share"], content["kinds"], content["seed"]) == (0.3, ["heads", "labels"], 0)
    assert set(noisy.dataset("pairs").parsers) == {PARSER}
    assert data.fingerprints != noisy.dataset("pairs").fingerprints


@pytest.mark.slow
def test_noise_in_the_dataset_itself_is_chosen_as_another_parser(whole: FeatureStore) -> None:
    before = whole.dataset("pairs")
    for _ in range(2):
        add_noise(whole, whole.dataset("pairs", parser=PARSER), Noise(0.5), "pairs")
    with pytest.raises(SpecError, match="choose one of them"):
        whole.dataset("pairs")
    assert whole.dataset("pairs", parser=PARSER).fingerprints == before.fingerprints
    noisy = whole.dataset("pairs", parser=f"{before.parsers[PARSER]['name']}~heads-0.5-0")
    assert len(noisy) == len(before)
    assert not validate_store(whole, deep=True).problems


def test_a_second_run_writes_nothing(noisy: FeatureStore) -> None:
    version = noisy.dataset("noisy").version
    report = add_noise(noisy, noisy.dataset("pairs"), Noise(0.3, ("heads", "labels")), "noisy")
    assert (report.written, report.examples) == (0, len(noisy.dataset("pairs")))
    assert noisy.dataset("noisy").version == version


@pytest.mark.slow
def test_noise_writes_parses_that_another_writer_deleted(noisy: FeatureStore) -> None:
    noise = Noise(0.3, ("heads", "labels"))
    with open_store(noisy.uri, refresh_seconds=3600) as other:
        data = other.dataset("noisy")
        keys = list(dict.fromkeys(parse_keys(data)))
        assert other.parses.contains(keys).all()
        delete_parses(noisy, keys)
        report = add_noise(other, other.dataset("pairs"), noise, "again")
        assert report.written == len(data)
    assert noisy.parses.contains(keys).all()
    assert not validate_store(noisy, deep=True).problems


def test_the_command_reports_what_it_replaced(whole: FeatureStore, run) -> None:
    result = run("noise", "pairs", "--share", "0.5", "--name", "half", "--json")
    assert result.exit_code == 0, result.output
    [report] = json.loads(result.stdout)
    assert report["dataset"] == "half"
    assert report["written"] == report["examples"] > 0
    assert 0.3 * report["words"] < report["heads"] < 0.6 * report["words"]
    with open_store(whole.uri) as store:
        assert len(store.dataset("half")) == report["written"]


def test_noise_keeps_several_parsers_apart(
    whole: FeatureStore, handle, make_row, make_record, records
) -> None:
    second, both = "b" * 32, "f" * 32
    pair = (records[0], make_record(records[1].parse, 1, second))
    whole.parses.append([pair[1]])
    whole.describe(second, "parser", {"name": "other"})
    whole.describe(both, "parser", {"name": "gold + other", "parsers": [PARSER, second]})
    whole.features.append(handle, [make_row(100, pair, parser=both)])
    add_noise(whole, whole.dataset("pairs", parser=both), Noise(0.3, ("heads",)), "noisy")
    assert validate_store(whole, deep=True).problems == []
