"""A constituent is independent of what stands before it, and divides where its parts are.

Nandi, Manning and Murty 2025 (NAACL, https://aclanthology.org/2025.naacl-long.407), "Sneaking
Syntax into Transformer Language Models with Tree Regularization" (TreeReg). With the part of a
vector x that is orthogonal to y, ``orth(x, y) = x - (x.y / y.y) y``, section 3.1 defines the span
contextual independence score of the pieces i to j, whose states are h,

    SCIN(i, j) = ||orth(h_j, h_{i-1})|| + ||orth(h_{j+1}, h_j)||

with 0 for what lies outside of the sentence. A constituent divides behind q with the score
``s(q) = SCIN(i, q) + SCIN(q + 1, j)``, and its loss is ``-ln softmax(s)`` at the q of the tree
(section 3.2), over every q at which a word ends.

The constituents are those of a label column, as in the paper, or the brackets of dependency trees
(`syntax.trees.brackets`). In an encoder, h is not a state of a prefix alone; the formula is the
same.

Letters in shapes: ``B`` examples, ``L`` wordpieces, ``D`` width of the states, ``W`` words, ``S``
brackets of all examples, ``Q`` words of the longest bracket but one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.variant import is_released
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.objectives.base import chosen, needed_for, width_of
from trainer.objectives.shown_options import TREE_REG_ARRAYS, TreeRegOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig

_LEAST: Final = 1e-12
"""Least squared length, so that vectors without a length have a gradient."""


class TreeReg(nn.Module):
    """The loss of the brackets of a batch, and 0 where there are none.

    It reads only the products of states within an example. The host waits for the device once, to
    know how long the longest bracket is.
    """

    def __init__(
        self,
        options: TreeRegOptions,
        config: SyntaxConfig,  # noqa: ARG002
        encoder: Encoder,
    ) -> None:
        super().__init__()
        self.options, self.needs = options, needed_for(options.states)
        self.width = _read_width(options, encoder)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        words_BW2, brackets_S6 = (batch.extra(name).long() for name in TREE_REG_ARRAYS)
        states_BLD = chosen(encoding, self.options.states)[..., : self.width]
        if not len(brackets_S6):
            return states_BLD.float().sum() * 0.0
        with torch.autocast(states_BLD.device.type, enabled=False):
            losses_S = bracket_losses(orthogonal(states_BLD.float()), words_BW2, brackets_S6)
        sentence_S = brackets_S6[:, 1]
        sentences = sentence_S.max() + 1
        if is_released(self.options.average):
            counts_S = torch.zeros_like(losses_S).scatter_add(
                0, sentence_S, torch.ones_like(losses_S)
            )
            losses_S = losses_S / counts_S[sentence_S]
        return losses_S.sum() / sentences


def orthogonal(states_BLD: Tensor) -> Tensor:
    """``[x, y]``: length of the part of h_y that is orthogonal to h_x. *Shape:* (B, L, L)."""
    products_BLL = states_BLD @ states_BLD.transpose(1, 2)
    squares_BL = products_BLL.diagonal(dim1=1, dim2=2)
    along_BLL = products_BLL.square() / squares_BL.clamp(min=_LEAST)[:, :, None]
    return (squares_BL[:, None, :] - along_BLL).clamp(min=_LEAST).sqrt()


def bracket_losses(lengths_BLL: Tensor, words_BW2: Tensor, brackets_S6: Tensor) -> Tensor:
    """The loss of each bracket, (S,), from the lengths of `orthogonal`.

    ``||orth(h_{j+1}, h_j)||`` is the same for every q, so it is left out.
    """
    example_S, _, before_S, start_S, stop_S, split_S = brackets_S6.unbind(1)
    example_S1 = example_S[:, None]
    Q = int((stop_S - start_S).max())
    word_SQ = start_S[:, None] + torch.arange(Q, device=start_S.device)
    real_SQ = word_SQ < stop_S[:, None]
    word_SQ = torch.minimum(word_SQ, stop_S[:, None] - 1)
    left_SQ, right_SQ = words_BW2[example_S1, word_SQ, 1], words_BW2[example_S1, word_SQ + 1, 0]
    before_S1 = words_BW2[example_S, before_S.clamp(min=0), 1][:, None]
    end_S1 = words_BW2[example_S, stop_S, 1][:, None]
    of_left_SQ = lengths_BLL[example_S1, before_S1, left_SQ].masked_fill(before_S[:, None] < 0, 0.0)
    of_next_SQ = lengths_BLL[example_S1, left_SQ, right_SQ]
    of_right_SQ = lengths_BLL[example_S1, left_SQ, end_S1]
    scores_SQ = (of_left_SQ + of_next_SQ + of_right_SQ).masked_fill(~real_SQ, -torch.inf)
    return F.cross_entropy(scores_SQ, split_S - start_S, reduction="none")


def _read_width(options: TreeRegOptions, encoder: Encoder) -> int:
    width = width_of(encoder, options.states)
    if options.heads is None:
        return width
    count = 0 if encoder.stock is None else int(encoder.stock.config.num_attention_heads)
    if options.heads > count:
        raise SpecError(
            f"objectives.tree_reg.heads is {options.heads}, and the encoder has {count} heads; "
            "name fewer, or leave the option out to read whole states"
        )
    return width // count * options.heads
