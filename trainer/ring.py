"""Copies of batches to a device, through a ring of page-locked buffers.

Locking memory takes longer than copying a batch, so each buffer (slot) is locked once and used
again. A batch is copied in one piece while the host continues; a slot waits for its copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from trainer.batch import SyntaxBatch

Copy = Callable[[Tensor], tuple[Tensor, Callable[[], None]]]
"""Starts to copy bytes to a device: gives the bytes there, and a function that waits."""

_ALIGNMENT: Final = 256
"""Bytes; CUDA's own allocations begin at multiples of it."""


def sender(device: torch.device, slots: int = 2) -> Callable[[SyntaxBatch], SyntaxBatch]:
    if device.type == "cuda":
        return BatchRing(_cuda_copy(device), slots, pinned=True).send
    return lambda batch: batch.to(device)


class BatchRing:
    """Slots of host memory for batches; the device must execute copies in the order of starts."""

    def __init__(self, copy: Copy, slots: int = 2, pinned: bool = False) -> None:
        self._copy = copy
        self._slots = [_Slot(pinned) for _ in range(slots)]
        self._turn = -1

    def send(self, batch: SyntaxBatch) -> SyntaxBatch:
        """The batch on the device; the given one may be overwritten at once."""
        self._turn = (self._turn + 1) % len(self._slots)
        slot = self._slots[self._turn]
        slot.wait()
        there, slot.wait = self._copy(slot.pack(batch))
        parts = iter(_parts(batch, there))
        return batch.map(lambda _: next(parts))


class _Slot:
    """Host memory that grows with the batches; ``wait`` returns when its copy is done."""

    def __init__(self, pinned: bool) -> None:
        self._pinned = pinned
        self._bytes = torch.empty(0, dtype=torch.uint8)
        self.wait: Callable[[], None] = lambda: None

    def pack(self, batch: SyntaxBatch) -> Tensor:
        size = sum(_padded(tensor) for tensor in _tensors(batch))
        if size > len(self._bytes):
            room = 1 << (size - 1).bit_length()
            self._bytes = torch.empty(room, dtype=torch.uint8, pin_memory=self._pinned)
        packed = self._bytes[:size]
        for place, tensor in zip(_parts(batch, packed), _tensors(batch), strict=True):
            place.copy_(tensor)
        return packed


def _tensors(batch: SyntaxBatch) -> list[Tensor]:
    tensors: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    batch.map(keep)
    return tensors


def _parts(batch: SyntaxBatch, packed: Tensor) -> list[Tensor]:
    parts, start = [], 0
    for tensor in _tensors(batch):
        part = packed[start : start + tensor.nbytes]
        parts.append(part.view(tensor.dtype).view(tensor.shape))
        start += _padded(tensor)
    return parts


def _padded(tensor: Tensor) -> int:
    return -(-tensor.nbytes // _ALIGNMENT) * _ALIGNMENT


def _cuda_copy(device: torch.device) -> Copy:
    def copy(packed: Tensor) -> tuple[Tensor, Callable[[], None]]:
        there = packed.to(device, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(device))
        return there, done.synchronize

    return copy
