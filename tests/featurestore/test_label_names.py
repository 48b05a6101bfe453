"""A label of an example and an array of a batch cannot have one name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from featurestore import FeatureMixture, StatedDataset, WordStates
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.examples import encode_examples
from syntax.contrast import PhraseSampler, TreeSampler
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.matrices import MATRICES

from .streams import keywords

EVERYTHING = {
    "matrices": (*MATRICES, "sla_mask(threshold=4)", "gate_distance(keep=2)"),
    "samplers": [PhraseSampler(probability=1.0), TreeSampler()],
    "max_length": 64,
    "truncation": "only_second",
    "stride": 8,
    "segment_limits": (16, None),
    **dict.fromkeys(("offsets", "first_pieces", "token_ids", "nodes"), True),
}


def named(handle, *names):
    """The handle with one label of each name."""
    labels = tuple(LabelSpec(name, "string") for name in names)
    return replace(handle, spec=replace(handle.spec, labels=labels))


@pytest.fixture
def arrays(store, handle, rows) -> list[str]:
    """Names of all arrays of a batch for which everything was asked."""
    store.features.append(named(handle), [replace(row, labels={}) for row in rows[:8]])
    data = StatedDataset(store, store.dataset("pairs"), {"layer": 1}, width=2)
    none = WordStates(np.zeros(2, np.int32), np.zeros((0, 2), np.float16))
    data.write(data.without_states(), [none] * 8)
    spans = {row.example_id: [(0, 0, 1), (1, 0, 1)] for row in rows[:8]}
    return [*next(FeatureMixture({"pairs": data}, spans=spans, **keywords(**EVERYTHING)))]


def test_no_label_hides_an_array_of_a_batch(arrays, store, handle) -> None:
    assert {"is_max_context", "node_marks", "tree_root", "word_states", "dataset"} <= {*arrays}
    for name in arrays:
        with pytest.raises(SpecError, match="a label cannot be called"):
            store.features.check(named(replace(handle, tokenizer_fingerprint="1" * 32), name))


def test_existing_table_with_a_reserved_label_stays_usable(store, handle, rows) -> None:
    old = named(handle, "piece_ids", "Dataset")
    kept = [replace(row, labels={"piece_ids": "mine", "Dataset": "n"}) for row in rows[:4]]
    card = DatasetCard.of(old)
    table = store.root.table(card.layout(), "datasets", card.name, card.folder)
    table.append(encode_examples(card, "train", "en", kept[:2], True))
    store.features.append(old, kept[2:])
    data = store.dataset("pairs")
    assert next(data.stream(shuffle=False))["piece_ids"] == ["mine"] * 4
    assert len(data.where(labels={"piece_ids": ["mine"]})) == 4
    assert store.sql("select dataset from segments").fetchall() == [("pairs",)] * 8


@pytest.mark.parametrize(
    "names", [("Head",), ("Seq",), ("TEXTS",), ("Note", "note"), ("Dataset",), ("",)]
)
def test_label_names_that_sql_confuses_are_refused(store, handle, names) -> None:
    with pytest.raises(SpecError, match="a label cannot be called"):
        store.features.check(named(handle, *names))
