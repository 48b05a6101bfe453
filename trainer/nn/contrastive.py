"""Shared parts of contrastive losses over samples.

Letters in shapes: ``B`` examples, ``S`` samples of all examples, ``K`` negatives of a sample.
"""

from __future__ import annotations

import torch
from torch import Tensor


def examples_of(offsets: Tensor, count: int) -> Tensor:
    """The example that each sample belongs to. *Shape:* (S,), int64.

    ``offsets`` (B + 1,) has the first sample of each example, and the end; ``count`` is S, so that
    the host need not wait for the device to know it.
    """
    rows_B = torch.arange(len(offsets) - 1, device=offsets.device)
    return rows_B.repeat_interleave(offsets.diff(), output_size=count)


def info_nce(positive_S: Tensor, negative_SK: Tensor, real_SK: Tensor, tau: float) -> Tensor:
    """``-s/tau + ln(exp(s/tau) + sum_k exp(s_k/tau))`` for similarities s of each sample.

    *Shape:* (S,), 0 without a negative; ``real_SK`` says which negatives there are.
    """
    negative_SK = (negative_SK / tau).masked_fill(~real_SK, -torch.inf)
    every = torch.cat([(positive_S / tau)[:, None], negative_SK], 1)
    return every.logsumexp(1) - every[:, 0]


def mean_over(losses_S: Tensor, real_S: Tensor) -> Tensor:
    """The mean over real samples; without any a 0 with a gradient of 0, as DDP needs it."""
    return losses_S.masked_fill(~real_S, 0.0).sum() / real_S.sum().clamp(min=1)
