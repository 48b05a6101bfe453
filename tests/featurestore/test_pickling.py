"""Stores, datasets and streams in another process: pickled, and opened anew there."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from featurestore import (
    CrossedDataset,
    FeatureMixture,
    FeatureStore,
    OrderPolicy,
    ParsedDataset,
    StatedDataset,
    WordStates,
    open_store,
)
from featurestore.records import ParseRecord
from syntax.errors import SpecError

from .streams import assert_all_same

OPTIONS = {"batch_size": 7, "seed": 1, "epoch": 2, "max_length": 64}


def copied(value):
    return pickle.loads(pickle.dumps(value))


def test_a_store_is_opened_anew_with_its_options(tmp_path, records: list[ParseRecord]) -> None:
    with open_store(tmp_path / "s", buffer_rows=1, refresh_seconds=0.0) as store:
        store.parses.append(records[:3])
        again: FeatureStore = copied(store)
        with again:
            assert again.uri == store.uri
            found = again.parses.get_many([record.key for record in records])
            assert list(found) == [record.key for record in records[:3]]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_pickled_datasets_and_streams_are_equal(data, prefetch) -> None:
    options = {**OPTIONS, "prefetch": prefetch}
    crossed = CrossedDataset(data, data, ["hypothesis"])
    for there in (data, data.where(langs=["en"]), crossed):
        assert_all_same(copied(there).stream(**options), there.stream(**options))
    mixture = FeatureMixture({"crossed": crossed, "two": data.where(longest=60)}, **options)
    assert_all_same(copied(mixture), mixture)


def test_pickled_stream_continues_at_its_position(data) -> None:
    stream = data.stream(**OPTIONS)
    for _ in range(3):
        next(stream)
    other = copied(stream)
    assert other.state_dict() == stream.state_dict()
    assert_all_same(other, stream)


def test_pickled_dataset_keeps_its_states(filled, data) -> None:
    stated = StatedDataset(filled, data, {"encoder": "e"}, 2)
    words = [len(lengths) for lengths in data.columns(["segment_lengths"])[0].to_pylist()]
    made = [WordStates(np.array([1] * n, np.int32), np.ones((n, 2), np.float16)) for n in words]
    stated.write(stated.without_states(), made)
    other = copied(stated)
    assert len(other.without_states()) == 0
    for batch, expected in zip(other.stream(**OPTIONS), stated.stream(**OPTIONS), strict=True):
        for one, two in zip(batch["word_states"], expected["word_states"], strict=True):
            np.testing.assert_equal(one.states, two.states)


@pytest.mark.parametrize("copy_of", [copied, copy.copy])
def test_copies_keep_tokens_and_lengths_that_were_set(filled, data, copy_of) -> None:
    """A copy of a copy, too: tokens are set on the first one, lengths on the second."""
    special = replace(data.special_tokens, suffix=(*data.special_tokens.suffix, 9))
    lengths = np.arange(len(data)) % 50
    stated = StatedDataset(filled, data, {"encoder": "e"}, 2)
    for there in (data, ParsedDataset(filled, data), stated):
        first = copy_of(there)
        first.card = replace(first.card, special_tokens=special)
        second = copy_of(first)
        second.other_lengths = lengths
        found = copy_of(second)
        assert type(found) is type(there)
        assert found.special_tokens == special
        np.testing.assert_equal(found.other_lengths, lengths)
        assert there.special_tokens != special
        assert there.other_lengths is None


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_workers_share_the_batches_of_a_rank_in_turn(
    data, workers, rank, world_size, prefetch
) -> None:
    options = {**OPTIONS, "rank": rank, "world_size": world_size, "prefetch": prefetch}
    options["order"] = OrderPolicy(pool=1)
    expected = list(data.stream(**options))
    stream = data.stream(**options)
    shares = [list(stream.share(worker, workers)) for worker in range(workers)]
    in_turn = [shares[at % workers][at // workers] for at in range(len(expected))]
    assert_all_same(in_turn, expected)
    assert sum(map(len, shares)) == len(expected) == stream.remaining


def test_the_position_after_some_batches_of_workers_is_that_of_the_stream(data) -> None:
    stream, other = data.stream(**OPTIONS), data.stream(**OPTIONS)
    for taken in range(len(stream) + 1):
        assert stream.state_dict(after=taken) == other.state_dict()
        next(other, None)
    with pytest.raises(SpecError, match=r"after is 16; 15 batches are left"):
        stream.state_dict(after=16)
    resumed = data.stream(**OPTIONS)
    resumed.load_state_dict(stream.state_dict(after=5))
    in_turn = [list(resumed.share(worker, 2)) for worker in range(2)]
    assert_all_same([in_turn[at % 2][at // 2] for at in range(10)], list(stream)[5:])
