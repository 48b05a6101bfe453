"""Tree matrices from parent vectors, on the device that trains.

A parent vector is 128 times smaller than the two matrices it spells at 128 pieces, so a GPU may
better derive them than receive them. The form is pointer doubling, then one batched product of
the ancestor relation with itself: the number of common ancestors of a pair gives its distance.

Only for whole examples under one-to-one subword policies. A truncated example keeps the
distances of its full tree, of which the shortened parent vector knows nothing, and ``broadcast``
shows one node at several positions; `check_whole` refuses the first by length.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from syntax.errors import SpecError
from trainer.batch import UNREACHABLE, SyntaxBatch

_EXACT_IN_BFLOAT16 = 256


def derive_matrices(parents_BL: Tensor, lengths_B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distance, depth and ancestor matrices of a padded batch of forests.

    Equal to the kernel's (`syntax.matrices.batch_matrices`) on every device, whether the product
    runs in float32, TF32 or bfloat16: its terms are 0 and 1 and its sums are exact.

    Args:
        parents_BL: int, position of each piece's parent, -1 at roots and on padding.
        lengths_B: int, real positions of each example.

    Returns:
        ``distance_BLL`` (uint8 up to 255 pieces, int32 beyond; `trainer.batch.UNREACHABLE` where
        there is no path), ``depth_BL`` (the same dtype) and ``ancestor_BLL`` (bool).

    >>> distance, depth, ancestor = derive_matrices(torch.tensor([[-1, 0, 1]]), torch.tensor([3]))
    >>> distance.tolist(), depth.tolist()
    ([[[0, 1, 2], [1, 0, 1], [2, 1, 0]]], [[0, 1, 2]])
    """
    length = parents_BL.shape[1]
    dtype = torch.uint8 if length <= UNREACHABLE[torch.uint8] else torch.int32
    real_BL = torch.arange(length, device=parents_BL.device) < lengths_B[:, None]
    ancestor_BLL = _ancestors(parents_BL, real_BL)
    depth_BL = (ancestor_BLL.sum(-1, dtype=torch.int32) - 1).clamp(min=0)
    shared_BLL = _shared_ancestors(ancestor_BLL)
    path_BLL = depth_BL[:, :, None] + depth_BL[:, None, :] - 2 * (shared_BLL - 1)
    distance_BLL = path_BLL.masked_fill(shared_BLL == 0, UNREACHABLE[dtype])
    return distance_BLL.to(dtype), depth_BL.to(dtype), ancestor_BLL


def check_whole(batch: SyntaxBatch, max_length: int) -> None:
    """Refuse a batch that the stream may have truncated; call it before the batch leaves the host.

    Args:
        batch: A batch streamed without matrices.
        max_length: Length at which the stream truncates.

    Raises:
        SpecError: An example fills ``max_length``.
    """
    if int(batch.lengths_B.max()) >= max_length:
        raise SpecError(
            f"an example of this batch fills max_length={max_length}: it may have been truncated, "
            "and then its parents no longer give the distances of its full tree; stream the "
            "matrices from the host (data.matrices=host), or raise max_length"
        )


def with_matrices(batch: SyntaxBatch) -> SyntaxBatch:
    """The batch with its matrices derived where it lies; `check_whole` first."""
    distance_BLL, depth_BL, ancestor_BLL = derive_matrices(batch.parents_BL, batch.lengths_B)
    return replace(batch, distance_BLL=distance_BLL, depth_BL=depth_BL, ancestor_BLL=ancestor_BLL)


def _ancestors(parents_BL: Tensor, real_BL: Tensor) -> Tensor:
    """Reflexive ancestor relation by pointer doubling; false on padding. *Shape:* (B, L, L)."""
    B, L = parents_BL.shape
    self_L = torch.arange(L, device=parents_BL.device)
    pointer_BL = torch.where(parents_BL < 0, self_L, parents_BL.long())
    ancestor_BLL = torch.diag_embed(real_BL)
    for _ in range((L - 1).bit_length()):
        rows_BLL = pointer_BL[:, :, None].expand(B, L, L)
        ancestor_BLL = ancestor_BLL | ancestor_BLL.gather(1, rows_BLL)
        pointer_BL = pointer_BL.gather(1, pointer_BL)
    return ancestor_BLL


def _shared_ancestors(ancestor_BLL: Tensor) -> Tensor:
    """Number of ancestors, selves included, that each pair shares. *Shape:* (B, L, L), int32."""
    half = ancestor_BLL.is_cuda and ancestor_BLL.shape[1] <= _EXACT_IN_BFLOAT16
    relation_BLL = ancestor_BLL.to(torch.bfloat16 if half else torch.float32)
    with torch.autocast(ancestor_BLL.device.type, enabled=False):
        return torch.bmm(relation_BLL, relation_BLL.transpose(1, 2)).to(torch.int32)
