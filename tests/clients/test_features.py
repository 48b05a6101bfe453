"""``features`` of both clients: exactly what the stream of a backfilled dataset gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients import Client
from clients.client.features import FeatureExample, FeatureOptions
from clients.client.results import ItemError
from featurestore import FeatureDataset, open_store
from syntax.batches import AssemblySpec
from syntax.errors import SpecError, TextTooLongError, UnknownKeyError, UnknownNameError
from syntax.examples import DatasetSpec, Example, Segment

DOCS = Path(__file__).parents[2] / "docs"
TOKENIZER = "parsebank-wordpiece-en"

PASSAGE = (
    "The nurse didn't thank the driver; she went home. It rained for hours, unbelievably, and "
    "nobody had an umbrella. At last the streets were empty."
)
TEXTS = {
    "single": [
        ("Time flies like an arrow.",),
        ("I can't wait. It's over! \u200b",),
        ("Don't uncharacteristically misinterpret internationalization.",),
        ("\U0001f600 No.",),
    ],
    "pair": [
        ("The nurse thanked the driver.", "The driver was thanked."),
        ("Yes.", PASSAGE),
        (PASSAGE, "No."),
        ("Same text.", "Same text."),
    ],
    "passage": [
        ("Who went home?", PASSAGE),
        ("What was empty at last?", PASSAGE),
    ],
}
FIELDS = {
    "single": ("text",),
    "pair": ("premise", "hypothesis"),
    "passage": ("question", "passage"),
}


def examples_of(name: str) -> list[Example]:
    return [
        Example(f"{name}-{number}", tuple(Segment(text=text) for text in texts))
        for number, texts in enumerate(TEXTS[name])
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("features") / "store")


@pytest.fixture(scope="module")
def client(place: str) -> Iterator[Client]:
    """A service that has backfilled every group of examples."""
    with Client.embedded(place, workers=1, job_workers=1) as client:
        for name, fields in FIELDS.items():
            spec = DatasetSpec(name, "dev", "en", fields)
            job = client.backfill(spec, examples_of(name), tokenizer=TOKENIZER)
            assert client.wait(job.id).counts.stored == len(TEXTS[name])
        yield client


@pytest.fixture(scope="module")
def datasets(client: Client, place: str) -> Iterator[dict[str, FeatureDataset]]:
    with open_store(place) as store:
        yield {name: store.dataset(name, split="dev", lang="en") for name in FIELDS}


def streamed(data: FeatureDataset, **options: Any) -> dict[str, Any]:
    """All examples of a dataset as one batch, in the order they were sent."""
    (batch,) = data.stream(
        batch_size=len(data),
        shuffle=False,
        max_length=options.pop("max_length", 128),
        assembly=AssemblySpec(**options),
    )
    return dict(batch)


def cut(batch: dict[str, Any], row: int, name: str) -> np.ndarray[Any, Any]:
    """One row of a batch without its padding."""
    length = int(batch["lengths"][row])
    return batch[name][row][(slice(length),) * (batch[name].ndim - 1)]


OPTIONS = st.fixed_dictionaries(
    {
        "max_length": st.sampled_from([None, 8, 13, 24, 64]),
        "policy": st.sampled_from(["attach", "broadcast", "chain.v1", "copy_head", "none"]),
        "joint_root": st.booleans(),
        "separator_edge": st.sampled_from(["root", "last_piece", "none"]),
        "matrices": st.lists(st.sampled_from(["distance", "depth", "ancestor"]), unique=True).map(
            tuple
        ),
        "pad_to_multiple_of": st.sampled_from([1, 8]),
    }
)


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=12)
@given(options=OPTIONS)
def test_a_padded_answer_is_the_batch_of_the_stream(
    client: Client, datasets: dict[str, FeatureDataset], name: str, options: dict[str, Any]
) -> None:
    expected = streamed(datasets[name], **options)
    answered = client.features(examples_of(name), padded=True, tokenizer=TOKENIZER, **options)
    batch = answered.batch()
    assert expected.pop("example_id") == [x.example_id for x in answered.assembled()]
    offsets = batch.pop("offset_mapping")
    assert offsets.shape == (*batch["input_ids"].shape, 2)
    assert batch.keys() == expected.keys()
    for array in expected:
        np.testing.assert_array_equal(batch[array], expected[array], strict=True)


@pytest.mark.parametrize("name", FIELDS)
@settings(max_examples=6)
@given(options=OPTIONS)
def test_an_unpadded_answer_is_the_same_without_padding(
    client: Client, datasets: dict[str, FeatureDataset], name: str, options: dict[str, Any]
) -> None:
    options = {**options, "pad_to_multiple_of": 1}
    expected = streamed(datasets[name], **options)
    answered = client.features(examples_of(name), tokenizer=TOKENIZER, **options).assembled()
    for row, example in enumerate(answered):
        assert example.length == expected["lengths"][row] == len(example["input_ids"])
        for array in example.arrays.keys() - {"offset_mapping"}:
            np.testing.assert_array_equal(example[array], cut(expected, row, array), strict=True)


@pytest.mark.parametrize("name", FIELDS)
def test_stored_features_are_those_that_were_answered(client: Client, name: str) -> None:
    options: dict[str, Any] = {"max_length": 20, "policy": "chain", "separator_edge": "last_piece"}
    for example in client.features(examples_of(name), **options).assembled():
        (again,) = client.stored_features(example.key, **options).assembled()
        assert again.key == example.key
        assert [segment.kept for segment in again.segments] == [
            segment.kept for segment in example.segments
        ]
        assert all(segment.cached for segment in again.segments)
        for array in example.arrays:
            np.testing.assert_array_equal(again[array], example[array], strict=True)


def test_offsets_spell_the_pieces(client: Client) -> None:
    (example,) = client.features([("Who's there?", PASSAGE)], max_length=24).assembled()
    assert example.truncated
    assert sum(segment.kept for segment in example.segments) < sum(
        segment.length for segment in example.segments
    )
    shown = [
        example.segments[segment].text[start:end]
        for segment, (start, end) in zip(
            example["segment_ids"], example["offset_mapping"], strict=True
        )
        if segment >= 0
    ]
    assert "".join(shown).startswith("Who'sthere?")
    assert not example["offset_mapping"][example["special_tokens_mask"]].any()


def test_features_accepts_texts_tuples_examples_and_json(client: Client) -> None:
    text = "One is enough."
    forms = [
        text,
        (text,),
        [Segment(text=text)],
        Example("x", (Segment(text=text),)),
        {"segments": [{"text": text}], "example_id": "y"},
        [{"text": text, "lang": "en", "mode": "raw"}],
    ]
    answered = client.features(forms).assembled()
    assert [example.example_id for example in answered] == [None, None, None, "x", "y", None]
    assert len({example.key for example in answered}) == 1


def test_features_of_tokens_keep_them_as_words(client: Client) -> None:
    example = [Segment(tokens=("New York", "is", "big")), "Is it?"]
    (answered,) = client.features([example]).assembled()
    first = answered["word_ids"][answered["segment_ids"] == 0]
    assert first.max() == 2
    assert answered.segments[0].text == "New York is big"


def test_failing_example_does_not_affect_others(client: Client) -> None:
    answered = client.features(["Fine.", ("Fine.", " "), Example("none", ())], padded=True)
    fine, empty, none = answered
    assert isinstance(fine, FeatureExample)
    assert isinstance(empty, ItemError)
    assert (empty.error_type, empty.error.detail["segment"]) == ("empty_text", 1)
    assert isinstance(none, ItemError)
    assert none.error_type == "spec"
    assert answered.batch()["input_ids"].shape[0] == 1
    with pytest.raises(type(empty.error)):
        answered.assembled()


def test_features_name_examples_that_cannot_fit(client: Client) -> None:
    for padded in (False, True):
        short, long = client.features(
            ["Go!", PASSAGE], max_length=6, truncation="none", padded=padded
        )
        assert isinstance(short, FeatureExample)
        assert isinstance(long, ItemError)
        assert (long.error_type, long.error.detail["limit"]) == ("spec", 6)
        assert "the example has" in long.message


def test_features_refuses_invalid_requests_by_name(client: Client) -> None:
    with pytest.raises(UnknownNameError, match="policy"):
        client.features(["Go."], policy="nope")
    with pytest.raises(UnknownNameError, match="matrix"):
        client.features(["Go."], matrices=["nope"])
    with pytest.raises(SpecError, match="padded"):
        client.features(["Go."], pad_to_multiple_of=8)
    with pytest.raises(TypeError, match="typo"):
        client.features(["Go."], typo=1)  # type: ignore[call-arg]
    with pytest.raises(UnknownKeyError):
        client.stored_features("0" * 32)
    with pytest.raises(SpecError):
        client.stored_features("nope")
    with pytest.raises(TypeError, match="padded"):
        client.stored_features("0" * 32, padded=True)  # type: ignore[call-arg]
    with pytest.raises(SpecError, match="gold"):
        client.features([[Segment(conllu="1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")]])


def test_a_batch_must_have_been_padded(client: Client) -> None:
    with pytest.raises(SpecError, match="padded=True"):
        client.features(["Go."]).batch()


@pytest.mark.parametrize("name", FeatureOptions.__annotations__)
def test_every_option_is_in_the_guide(name: str) -> None:
    assert f"`{name}`" in (DOCS / "features.md").read_text("utf-8")


@pytest.mark.slow
def test_features_limits_the_size_of_matrices(tmp_path: Any) -> None:
    limits: dict[str, Any] = {"max_matrix_pieces": 16, "max_matrix_cells": 1_000}
    with Client.embedded(str(tmp_path / "store"), workers=1, **limits) as client:
        short, long = client.features(["Go!", PASSAGE])
        assert isinstance(short, FeatureExample)
        assert isinstance(long, ItemError)
        assert isinstance(long.error, TextTooLongError)
        (cut_off,) = client.features([PASSAGE], max_length=16).assembled()
        assert cut_off.length == 16
        (bare,) = client.features([PASSAGE], matrices=[]).assembled()
        assert bare.length > 16
        with pytest.raises(TextTooLongError, match="padded"):
            client.features([PASSAGE, *["Go!"] * 40], matrices=[], padded=True)
