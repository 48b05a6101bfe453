"""Batches cross through shared host memory, and none is written over before it has arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.batch import SyntaxBatch
from trainer.ring import BatchRing, sender


@dataclass
class SlowDevice:
    """Copies like a GPU: in order, when it comes to it, at the latest when somebody waits.

    Attributes:
        waited: Whether each wait found a copy that was not done.
    """

    pending: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    waited: list[bool] = field(default_factory=list)
    memory: set[int] = field(default_factory=set)

    def copy(self, packed: torch.Tensor) -> tuple[torch.Tensor, Callable[[], None]]:
        there = torch.full_like(packed, 77)
        job = (packed, there)
        self.pending.append(job)
        self.memory.add(packed.data_ptr())
        return there, lambda: self._wait(job)

    def work(self, copies: int) -> None:
        for _ in range(min(copies, len(self.pending))):
            packed, there = self.pending.pop(0)
            there.copy_(packed)

    def _wait(self, job: tuple[torch.Tensor, torch.Tensor]) -> None:
        behind = [at for at, other in enumerate(self.pending) if other is job]
        self.waited.append(bool(behind))
        self.work(behind[0] + 1 if behind else 0)


def batch_of(rng: np.random.Generator, B: int, L: int, matrices: bool) -> SyntaxBatch:
    def numbers(dtype: type, *shape: int) -> Any:
        return rng.integers(0, 2, shape).astype(dtype)

    arrays: dict[str, Any] = {
        **{name: numbers(np.int64, B, L) for name in ("input_ids", "token_type_ids")},
        **{name: numbers(bool, B, L) for name in ("attention_mask", "special_tokens_mask")},
        **{name: numbers(np.uint8, B, L) for name in ("upos", "deprel")},
        "parents": rng.integers(-1, 1000, (B, L)).astype(np.int32),
        "lengths": numbers(np.int32, B),
        "label": rng.integers(0, 1000, B),
        "score": rng.random(B).astype(np.float32),
        "phrase_negatives": rng.integers(0, 1000, (L + 1, 3)).astype(np.int16),
    }
    if matrices:
        arrays["depth"] = numbers(np.uint8, B, L)
        arrays["distance"] = rng.integers(0, 255, (B, L, L)).astype(np.uint8)
    return SyntaxBatch.from_numpy(arrays, ["label", "score"], ["phrase_negatives"])


def tensors_of(batch: SyntaxBatch) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    batch.map(lambda tensor: (found.append(tensor), tensor)[1])
    return found


def assert_same(found: SyntaxBatch, expected: SyntaxBatch) -> None:
    pairs = list(zip(tensors_of(found), tensors_of(expected), strict=True))
    assert pairs
    for one, other in pairs:
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
    assert list(found.extras) == list(expected.extras)
    assert list(found.labels) == list(expected.labels)


SHAPES = st.tuples(st.integers(0, 4), st.integers(1, 40), st.booleans())


@settings(max_examples=40)
@given(
    shapes=st.lists(st.tuples(SHAPES, st.integers(0, 3)), min_size=1, max_size=12),
    slots=st.integers(1, 4),
)
def test_no_batch_is_written_over_on_its_way(shapes, slots: int) -> None:
    rng = np.random.default_rng(0)
    device = SlowDevice()
    ring = BatchRing(device.copy, slots)
    sent, arrived = [], []
    for shape, copies in shapes:
        batch = batch_of(rng, *shape)
        sent.append(batch.map(torch.clone))
        arrived.append(ring.send(batch))
        batch.map(torch.Tensor.zero_)  # the stream's buffers may be used again at once
        assert len(device.pending) <= slots
        device.work(copies)
    device.work(len(shapes))
    for found, expected in zip(arrived, sent, strict=True):
        assert_same(found, expected)


def test_a_device_that_keeps_up_is_never_waited_for_and_memory_is_used_again() -> None:
    rng = np.random.default_rng(0)
    device = SlowDevice()
    ring = BatchRing(device.copy, 2)
    for size in (40, 39, 38, 40, 33, 40):
        ring.send(batch_of(rng, 4, size, matrices=True))
        device.work(1)
    assert device.waited == [False] * 4  # first use of a slot has nothing to wait for
    assert len(device.memory) == 2


def test_a_cpu_needs_no_ring() -> None:
    batch = batch_of(np.random.default_rng(0), 2, 3, matrices=False)
    sent = sender(torch.device("cpu"))(batch)
    assert_same(sent, batch)
    assert sent.input_ids_BL.data_ptr() == batch.input_ids_BL.data_ptr()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_batches_reach_the_gpu_whole() -> None:
    rng = np.random.default_rng(0)
    send = sender(torch.device("cuda"))
    batches = [batch_of(rng, 32, 100 + at, matrices=True) for at in range(20)]
    arrived = [send(batch) for batch in batches]
    for found, expected in zip(arrived, batches, strict=True):
        assert found.input_ids_BL.is_cuda
        assert_same(found.to("cpu"), expected)
