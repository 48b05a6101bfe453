"""A subtree is near its root, and nearer than changed copies of it.

Zhang et al. 2022 (Findings of ACL, "Syntax-guided contrastive learning for pre-trained language
model"), in the equation 12 of Gessler and Schneider 2023. A set of pieces T with the root r is
``sim(T) = cos(z_r, sum_j e_j z_j)``, with ``e_j = softmax_j(z_r . z_j)`` over the pieces of T.

Letters in shapes: ``B`` examples, ``L`` wordpieces, ``D`` width of the states, ``S`` samples of all
examples, ``K`` negatives of a sample, ``T`` sets of a sample (the positive and the negatives),
``W`` pieces of a set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn

from syntax.contrast.base import PADDING
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import masked_softmax
from trainer.nn.contrastive import examples_of, info_nce, mean_over
from trainer.nn.encoder import Encoder
from trainer.objectives.options import TREE_ARRAYS, TreeContrastOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig

HARDEST: Final = 3
"""Negatives of a sample that count: the most similar ones."""

_LEAST: Final = 1e-16
"""Least squared norm, so that a set without pieces has a gradient; as in torch's cosine."""


class ShiftedNorm(nn.LayerNorm):
    """A LayerNorm whose biases begin at 1, as those of SynCLM's projection do (a slip)."""

    own_initial_weights = True

    def reset_parameters(self) -> None:
        nn.init.ones_(self.weight)
        nn.init.ones_(self.bias)


class TreeContrast(nn.Module):
    """Contrast of subtrees with changed copies of them.

    The loss is the mean over the samples of a batch (`syntax.contrast.TreeSampler`); 0 without any,
    where the release makes one up. It reads only the products ``z_i . z_j`` within an example, B
    L^2 numbers in place of the S (K + 1) W D of all sets.
    """

    needs: frozenset[str] = frozenset()

    def __init__(
        self,
        options: TreeContrastOptions,
        config: SyntaxConfig,  # noqa: ARG002
        encoder: Encoder,
    ) -> None:
        super().__init__()
        self.options = options
        D = encoder.width
        self.projection = (
            nn.Sequential(nn.Linear(D, D), nn.GELU(), ShiftedNorm(D), nn.Linear(D, D))
            if options.projection
            else nn.Identity()
        )

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        offsets, root_S, positive_SW, negatives_SKW = map(batch.extra, TREE_ARRAYS)
        assert encoding.last_hidden_state is not None
        sets_STW = torch.cat([positive_SW[:, None], negatives_SKW], 1).long()
        example_S = examples_of(offsets, len(root_S))
        states_BLD = self.projection(encoding.last_hidden_state)
        with torch.autocast(states_BLD.device.type, enabled=False):
            states_BLD = states_BLD.float()
            products_BLL = states_BLD @ states_BLD.transpose(1, 2)
            similarity_ST, real_ST = self.similarities(
                products_BLL, example_S, root_S.long(), sets_STW
            )
            losses_S = self.losses(similarity_ST, real_ST)
        return mean_over(losses_S, real_ST[:, 1:].any(1))

    def similarities(
        self, products_BLL: Tensor, example_S: Tensor, root_S: Tensor, sets_STW: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Similarity of each set to the root of its sample, and the sets that there are; (S, T)."""
        L = products_BLL.shape[-1]
        first_S, flat = example_S * (L * L), products_BLL.flatten()
        member_STW = sets_STW != PADDING
        if self.options.tree_root == "out":
            member_STW = member_STW & (sets_STW != root_S[:, None, None])
        at_STW = sets_STW.clamp(min=0)
        with_root_STW = flat[(first_S + root_S * L)[:, None, None] + at_STW]
        share_STW = masked_softmax(with_root_STW, member_STW)
        pairs_STWW = at_STW[..., :, None] * L + at_STW[..., None, :]
        among_STWW = flat[first_S[:, None, None, None] + pairs_STWW]
        product_ST = (share_STW * with_root_STW).sum(-1)
        # |u|^2 of u = sum_j e_j z_j.
        square_ST = torch.einsum("stv,stvw,stw->st", share_STW, among_STWW, share_STW)
        square_S1 = flat[first_S + root_S * (L + 1)][:, None]
        norm_ST = square_ST.clamp(min=_LEAST).sqrt() * square_S1.clamp(min=_LEAST).sqrt()
        return product_ST / norm_ST, member_STW.any(-1)

    def losses(self, similarity_ST: Tensor, real_ST: Tensor) -> Tensor:
        """The loss of each sample, (S,); its sets are the positive and, after it, the negatives."""
        negative_SK, real_SK = similarity_ST[:, 1:], real_ST[:, 1:]
        if self.options.tree_topk == "masked":
            hardest_SK, found_SK = _hardest(negative_SK.masked_fill(~real_SK, -torch.inf))
        else:
            # lr-sib: a cell without a negative is a negative of similarity 0, as far as the batch
            # has columns, and the first columns say how many of the chosen count.
            columns_SK = real_SK.any(0).expand_as(real_SK)
            filled_SK = negative_SK.masked_fill(~real_SK, 0.0)
            hardest_SK, _ = _hardest(filled_SK.masked_fill(~columns_SK, -torch.inf))
            found_SK = real_SK[:, :HARDEST]
        tau = self.options.temperature
        return info_nce(similarity_ST[:, 0], hardest_SK, found_SK, tau)


def _hardest(similarity_SK: Tensor) -> tuple[Tensor, Tensor]:
    highest = similarity_SK.topk(min(HARDEST, similarity_SK.shape[1]), 1).values
    found = highest != -torch.inf
    return highest.masked_fill(~found, 0.0), found
