"""Streams behind PyTorch's DataLoader."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from syntax.errors import SpecError
from trainer.loader import StreamDataset

OPTIONS = {"batch_size": 3, "seed": 1, "epoch": 2}


def assert_same(batches, expected) -> None:
    for batch, other in zip(batches, expected, strict=True):
        assert batch.keys() == other.keys()
        for name, value in other.items():
            if isinstance(batch[name], torch.Tensor):
                assert torch.equal(batch[name], torch.as_tensor(value)), name
            else:
                assert batch[name] == value


@pytest.fixture
def data(store):
    return store.dataset("sample", split="train", lang="en")


def test_a_loader_gives_the_batches_of_the_stream(data) -> None:
    stream = data.stream(**OPTIONS)
    loader = DataLoader(StreamDataset(stream), batch_size=None)
    assert len(loader) == len(stream) > 4
    assert_same(loader, data.stream(**OPTIONS))
    assert_same(loader, stream)  # which the loader did not move


def test_a_stream_as_a_dataset_of_items_says_what_to_do(data) -> None:
    with pytest.raises(TypeError, match=r"trainer\.loader\.StreamDataset"):
        next(iter(DataLoader(data.stream(**OPTIONS))))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_give_the_batches_of_each_rank_in_order(data, method) -> None:
    for rank in (0, 1):
        options = {**OPTIONS, "rank": rank, "world_size": 2}
        stream = data.stream(**options)
        loader = DataLoader(
            StreamDataset(stream), batch_size=None, num_workers=2, multiprocessing_context=method
        )
        assert_same(loader, data.stream(**options))


@pytest.mark.slow
def test_a_loader_goes_on_where_another_was_left(data) -> None:
    stream = data.stream(**OPTIONS)
    loader = DataLoader(
        StreamDataset(stream), batch_size=None, num_workers=2, multiprocessing_context="spawn"
    )
    batches = iter(loader)
    first = [next(batches) for _ in range(3)]
    resumed = data.stream(**OPTIONS)
    resumed.load_state_dict(stream.state_dict(after=len(first)))
    rest = DataLoader(StreamDataset(resumed), batch_size=None)
    assert_same([*first, *rest], data.stream(**OPTIONS))


def test_a_stream_that_writes_over_its_batches_is_refused(data) -> None:
    with pytest.raises(SpecError, match="with `buffers=fresh`"):
        StreamDataset(data.stream(buffers="ring"))
