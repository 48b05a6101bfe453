"""Ids of UD tags for embeddings, with ids of their own for positions that have no tag."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from trainer.batch import SyntaxBatch

EXTRA_TAGS: Final = 3
"""Ids after UD's own: the joint root ([CLS]), other specials ([SEP]), a piece without a tag."""


def tag_ids(batch: SyntaxBatch, ids_BL: Tensor, size: int) -> Tensor:
    """Tags, where specials and untagged pieces have ids of their own from ``size`` on.

    Id 0 stays for padding alone, as in the release of Syntax-MBERT (there: [CLS], [SEP] and
    [UNK]). *Shape:* (B, L), int64.
    """
    special_BL = batch.special_tokens_mask_BL & batch.attention_mask_BL
    untagged_BL = (ids_BL == 0) & batch.attention_mask_BL
    ids_BL = ids_BL.long().masked_fill(untagged_BL, size + 2).masked_fill(special_BL, size + 1)
    first_BL = torch.zeros_like(special_BL)
    first_BL[:, 0] = special_BL[:, 0]
    return ids_BL.masked_fill(first_BL, size)
