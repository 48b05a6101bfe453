from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from featurestore import Part, Transaction
from syntax.batches import SegmentFeatures
from syntax.batches.segments import COLUMNS
from syntax.errors import (
    InvalidCharacterError,
    SpecError,
    StoreFormatError,
    UnknownDatasetError,
    UnknownTokenizerError,
)
from syntax.examples import LabelSpec


def test_rows_are_appended_once_per_transaction(store, handle, rows) -> None:
    assert store.features.append(handle, rows, Transaction("shard"))
    assert not store.features.append(handle, rows, Transaction("shard"))
    (info,) = store.datasets()
    assert info.parts == (Part("train", "en", 100),)


def test_only_new_examples_are_appended(store, make_handle, rows) -> None:
    handle, other = make_handle(), make_handle(split="dev")
    assert store.features.append_new(handle, rows[:3]) == 3
    assert store.features.append_new(handle, [*rows[:5], rows[4]]) == 2
    assert store.features.append_new(handle, rows[:5]) == 0
    assert store.features.append_new(other, rows[:1]) == 1
    (info,) = store.datasets()
    assert {part.split: part.rows for part in info.parts} == {"train": 5, "dev": 1}


def test_a_table_is_found_by_its_tokenizers_fingerprint(store, handle, rows) -> None:
    assert store.features.card_of("pairs", handle.tokenizer_fingerprint) is None
    store.features.append(handle, rows[:1])
    card = store.features.card_of("pairs", handle.tokenizer_fingerprint)
    assert card.tokenizer == "toy"
    assert store.features.card_of("pairs", "0" * 32) is None


def test_datasets_list_splits_and_languages(store, make_handle, rows) -> None:
    for split, lang, count in (("train", "en", 3), ("dev", "en", 2), ("dev", "no", 1)):
        store.features.append(make_handle(split=split, lang=lang), rows[:count])
    (info,) = store.datasets()
    assert info.name == "pairs"
    assert info.fields == ("premise", "hypothesis")
    assert info.labels == ("label", "score", "note")
    assert info.parts == (Part("dev", "en", 2), Part("dev", "no", 1), Part("train", "en", 3))
    assert info.to_json()["parts"][1] == {"split": "dev", "lang": "no", "rows": 1}


def test_existing_keys_are_found_per_partition(store, make_handle, handle, rows) -> None:
    store.features.append(handle, rows[:3])
    keys = [row.example_key for row in rows[:5]]
    where = (handle.spec.name, handle.tokenizer_fingerprint)
    assert store.features.existing(*where, "train", "en", keys) == set(keys[:3])
    assert store.features.existing(*where, "dev", "en", keys) == set()
    store.features.append(handle, rows[3:4])
    assert store.features.existing(*where, "train", "en", keys) == set(keys[:4])
    assert store.features.existing("other", where[1], "train", "en", keys) == set()
    assert store.features.existing("pairs", "0" * 32, "train", "en", keys) == set()
    assert store.features.existing(*where, "train", "en", []) == set()


def test_tokenizers_have_tables_of_their_own(store, make_handle, rows) -> None:
    store.features.append(make_handle(), rows[:2])
    store.features.append(make_handle(tokenizer="hub/other toy!", fingerprint="ab" * 16), rows[:3])
    assert [info.tokenizer for info in store.datasets()] == ["hub/other toy!", "toy"]
    assert len(store.dataset("pairs", tokenizer="hub/other toy!")) == 3
    assert len(store.dataset("pairs", tokenizer="ababab")) == 3
    assert len(store.dataset("pairs", tokenizer="other toy!")) == 3
    with pytest.raises(SpecError, match=r"several tokenizers.*hub/other toy! \(abababababab\)"):
        store.dataset("pairs")
    with pytest.raises(UnknownTokenizerError, match="Known: hub/other toy!, toy"):
        store.dataset("pairs", tokenizer="bert")


def test_unknown_datasets_list_the_known_ones(store, handle, rows) -> None:
    with pytest.raises(UnknownDatasetError, match="Known: none"):
        store.dataset("pairs")
    store.features.append(handle, rows)
    with pytest.raises(UnknownDatasetError, match="Did you mean 'pairs'"):
        store.dataset("pears")


def of_length(segment: SegmentFeatures, size: int) -> SegmentFeatures:
    """The first piece as often as asked, each on the one before."""
    columns = {name: getattr(segment, name)[[0] * size] for name in (*COLUMNS, "offsets")}
    return replace(segment, **{**columns, "head": np.arange(size, dtype=np.int32) - 1})


def test_row_groups_hold_a_bounded_number_of_pieces(store, handle, rows) -> None:
    long = replace(rows[0], segments=(of_length(rows[0].segments[0], 6_250),) * 2)
    many = [replace(long, seq=n, example_id=str(n), example_key=f"{n:032x}") for n in range(12)]
    store.features.append(replace(handle, matrices=False), many)
    (file,) = Path(store.uri).glob("datasets/**/*.parquet")
    footer = pq.ParquetFile(file).metadata
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    assert sizes == [5, 5, 2]


def test_empty_segments_are_kept(store, handle, rows) -> None:
    empty = of_length(rows[0].segments[0], 0)
    store.features.append(handle, [replace(rows[0], segments=(empty, rows[0].segments[1]))])
    batch = next(store.dataset("pairs").stream(batch_size=1))
    assert batch["segment_ids"].max() == 1
    assert 0 not in batch["segment_ids"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": {"label": "maybe"}}, r"label 'maybe'; expected one of \['entailment'"),
        ({"labels": {"score": "high"}}, "score 'high'; expected a float"),
        ({"labels": {"note": 3}}, "note 3; expected a string"),
        ({"labels": {"colour": "red"}}, r"labels \['colour'\]"),
        ({"texts": ("one",)}, r"has 2 segments, 1 texts"),
    ],
)
def test_invalid_row_refuses_the_whole_append(store, handle, rows, change, message) -> None:
    with pytest.raises(SpecError, match=message):
        store.features.append(handle, [rows[0], replace(rows[1], **change)])
    assert store.datasets() == []


def test_text_that_is_not_unicode_is_refused(store, handle, rows) -> None:
    bad = replace(rows[0], texts=("\ud800", "fine"))
    with pytest.raises(InvalidCharacterError):
        store.features.append(handle, [bad])


def test_a_dataset_keeps_its_fields_and_labels(store, handle, rows) -> None:
    store.features.append(handle, rows[:1])
    other = replace(handle.spec, labels=(LabelSpec("label", "class", ("no", "yes")),))
    with pytest.raises(SpecError, match="choose another dataset name"):
        store.features.append(replace(handle, spec=other), [replace(rows[1], labels={})])


@pytest.mark.parametrize("name", ["input_ids", "seq", "parents", "dataset", "distance"])
def test_labels_cannot_hide_columns(store, handle, rows, name) -> None:
    spec = replace(handle.spec, labels=(LabelSpec(name, "string"),))
    with pytest.raises(SpecError, match=f"a label cannot be called '{name}'"):
        store.features.append(replace(handle, spec=spec), [replace(rows[0], labels={})])


@pytest.mark.parametrize("change", [{"name": "a/b"}, {"split": ""}, {"lang": "../x"}])
def test_names_that_cannot_be_folders_are_refused(store, handle, rows, change) -> None:
    spec = replace(handle.spec, **change)
    with pytest.raises(SpecError, match="use letters, digits"):
        store.features.append(replace(handle, spec=spec), rows)


def test_a_foreign_table_among_the_datasets_is_named(store, handle, rows) -> None:
    store.features.append(handle, rows)
    write_deltalake(f"{store.uri}/datasets/foreign/table", pa.table({"text": ["mine"]}))
    with pytest.raises(StoreFormatError, match=r"no property parsebank\.dataset"):
        store.datasets()
