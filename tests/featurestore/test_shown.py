"""What notebooks and ``repr`` show of stores, datasets, streams and batches."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from featurestore import FeatureMixture, open_store


def cells(html: str) -> list[list[str]]:
    """The rows of a table."""
    return [["".join(cell.itertext()) for cell in row] for row in ET.fromstring(html).iter("tr")]


def test_a_store_lists_its_datasets(filled) -> None:
    names, first, *_ = cells(filled._repr_html_())
    row = dict(zip(names, first, strict=True))
    assert (row["dataset"], row["tokenizer"], row["split"], row["language"]) == (
        *("pairs", "toy", "train", "en"),
    )
    assert row["examples"] == "100"
    assert repr(filled) == f"<FeatureStore uri={filled.uri!r}>"


def test_an_empty_store_is_an_empty_table(tmp_path) -> None:
    with open_store(tmp_path / "new") as store:
        assert len(cells(store._repr_html_())) == 1


def test_a_dataset_says_what_it_is(filled) -> None:
    data = filled.dataset("pairs")
    assert repr(data) == (
        "<FeatureDataset name='pairs' version=4 split='train' examples=100 languages='en: 100' "
        f"tokenizer={data.card.tokenizer!r}>"
    )
    shown = dict(cells(data._repr_html_()))
    assert shown["examples"] == "100"
    assert data.fingerprints["examples"].startswith(shown["fingerprint"])
    assert len(shown["fingerprint"]) == 12


def test_a_stream_says_where_it_is(filled) -> None:
    stream = filled.dataset("pairs").stream(batch_size=40, seed=7)
    next(stream)
    assert repr(stream) == (
        "<FeatureStream dataset='pairs' batches=3 remaining=2 batch_size=40 seed=7 epoch=0 "
        "rank=0 world_size=1>"
    )
    assert dict(cells(stream._repr_html_()))["remaining"] == "2"


def test_a_batch_lists_its_arrays_and_is_still_a_dict(filled) -> None:
    data = filled.dataset("pairs")
    batch = next(data.stream(batch_size=4))
    assert isinstance(batch, dict)
    shown = {name: (kind, shape) for name, kind, shape in cells(batch._repr_html_())}
    assert shown["input_ids"] == ("int64", " × ".join(map(str, batch["input_ids"].shape)))
    assert shown["example_id"] == ("list", "4")
    mixture = FeatureMixture({"one": data}, batch_size=4)
    assert ["dataset", "str", "3"] in cells(next(mixture)._repr_html_())
    assert repr(mixture) == "<FeatureMixture shares={'one': 1.0} until='longest'>"
    assert cells(mixture._repr_html_())[1] == ["one", "100", "1.0000", "1", "0"]
