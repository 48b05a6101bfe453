"""Examples in memory stream as the same examples from a store."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from featurestore import FeatureStore, MemoryDataset
from syntax.batches import AssemblySpec, Template
from syntax.errors import LabelError, SpecError, UnknownNameError

from .conftest import PARSER
from .streams import assert_all_same
from .test_token_labels import handle, marked, rows  # noqa: F401

GOLD = {PARSER: {"name": "gold"}}

FIELDS = ("premise", "hypothesis")
STREAMS: Mapping[str, dict[str, Any]] = {
    "pairs": {},
    "whole": {"max_length": None, "shuffle": False, "policy": "broadcast"},
    "choices": {
        "assembly": AssemblySpec(
            template=Template.of(FIELDS, "premise hypothesis", "hypothesis"), token_ids=True
        )
    },
    "windows": {
        "assembly": AssemblySpec(
            max_length=64, truncation="only_second", stride=16, offsets=True, matrices=()
        )
    },
    "spans": {
        "spans": ("mentions",),
        "assembly": AssemblySpec(matrices=("gate_distance", "depth"), nodes=True),
    },
}


@pytest.fixture
def memory(handle, rows) -> MemoryDataset:  # noqa: F811
    return MemoryDataset(handle, rows, GOLD)


@pytest.mark.parametrize("options", STREAMS.values(), ids=STREAMS)
def test_memory_dataset_streams_the_arrays_of_the_store(
    marked: FeatureStore,  # noqa: F811
    memory,
    options,
) -> None:
    stored = marked.dataset("marked")
    batches = list(memory.stream(batch_size=7, seed=5, **options))
    expected = list(stored.stream(batch_size=7, seed=5, **options))
    assert len(batches) == len(expected) > 5
    assert_all_same(batches, expected)
    assert list(batches[0]) == list(expected[0])


def test_memory_dataset_describes_itself_as_the_store_does(marked: FeatureStore, memory) -> None:  # noqa: F811
    marked.describe(PARSER, "parser", GOLD[PARSER])
    stored = marked.dataset("marked")
    assert memory.fingerprints == stored.fingerprints
    assert memory.parsers == stored.parsers
    assert memory.langs == stored.langs
    assert memory.columns(["example_id"]).equals(stored.columns(["example_id"]))
    assert (memory.spec.fields, memory.drops(), memory.report) == (stored.spec.fields, [], {})


def test_some_examples_are_a_dataset_too(memory, rows) -> None:  # noqa: F811
    numbers = memory.carrying({"numbers": "v1"}, number=[row.seq for row in rows])
    chosen = numbers.where(labels={"label": ["no"]})
    assert 0 < len(chosen) < len(memory)
    names = {row.example_id: row.seq for row in rows}
    for data in (chosen, pickle.loads(pickle.dumps(chosen))):
        for batch in data.stream(batch_size=4):
            assert batch["number"] == [names[name] for name in batch["example_id"]]
        assert data.fingerprints["numbers"] == "v1"
        assert data.parsers == GOLD
    with pytest.raises(UnknownNameError, match="unknown label 'lable'"):
        memory.where(labels={"lable": ["no"]})


def test_rows_that_do_not_fit_are_refused(handle, rows, make_row, records) -> None:  # noqa: F811
    with pytest.raises(SpecError, match="dataset 'marked' has fields"):
        MemoryDataset(handle, [make_row(0, (records[0],))], GOLD)
    with pytest.raises(LabelError, match="'ex-0'"):
        MemoryDataset(handle, [make_row(0, (records[0],) * 2, {"tags": ("O",)})], GOLD)
