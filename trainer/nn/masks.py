"""Attention masks that leave no row empty.

A softmax over nothing is not defined. So a real position that may attend to nothing attends to
every real position, as in the releases, whose finite masks cancel out in such a row; padding
attends to itself, and nothing reads it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trainer.batch import SyntaxBatch


def never_empty(mask_BLL: Tensor, batch: SyntaxBatch) -> Tensor:
    """The mask with its empty rows filled, and each padding position attending to itself alone."""
    real_BL = batch.attention_mask_BL
    mask_BLL = mask_BLL & real_BL[:, None, :]
    empty_BL = ~mask_BLL.any(-1)
    filled_BLL = mask_BLL | ((empty_BL & real_BL)[:, :, None] & real_BL[:, None, :])
    return filled_BLL | torch.diag_embed(~real_BL)


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the allowed entries of the last axis; a row without any becomes zeros."""
    masked = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return masked.softmax(-1).masked_fill(~allowed, 0.0)
