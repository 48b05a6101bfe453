"""LISA: one head of one layer is a parser, and attends to the head of each word.

Strubell et al. 2018 (https://aclanthology.org/D18-1548), section 2.2. From the states that a layer
reads, ``A = softmax(Q U K')``: the weights of the layer's first head, and the probabilities of the
heads of words. A root is its own head. In training A is the stored parse (section 2.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from syntax.options import check_range
from syntax.trees.ud import DEPREL
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import LayerSyntax, check_reads_syntax
from trainer.nn.encoder import StockEncoder
from trainer.nn.piece_parser import PieceParser
from trainer.nn.selfcheck import check_reads_scores
from trainer.nn.stock import before_attention, layers_of
from trainer.objectives.shown_options import HEADS
from trainer.systems.lisa.options import LisaOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig

_FORBIDDEN = -1e4


class LisaEncoder(StockEncoder):
    """States of the pieces, with one head that parses."""

    options: LisaOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options, self.parser = self.options, None
        if not options.use_syntax:
            return
        self.gives = self.gives | {"tree_scores"}  # type: ignore[misc]
        layers = layers_of(self.encoder)
        self.layer = (len(layers) - 1) // 2 if options.layer is None else options.layer
        check_range("model.layer", self.layer, 0, len(layers) - 1)
        self.parser = PieceParser(
            self.width,
            len(DEPREL),
            arc=options.arc,
            relation=options.relation,
            dropout=options.parser_dropout,
            activation="as_released",
        )
        before_attention(self.encoder, self.layer, self.attend)

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        wanted = options.pop("output_tree_scores", False)
        if self.parser is None:
            return super().forward(batch, **options)
        check_reads_syntax(self.encoder.config._attn_implementation)
        read: list[Tensor] = []
        encoding = super().forward(batch, parsed=(batch, read), **options)
        if wanted:
            encoding.tree_scores = self.parser(read[0], batch.attention_mask_BL)
        return encoding

    def attend(self, states_BLD: Tensor, given: Mapping[str, Any]) -> dict[str, Any]:
        """Syntax of the layer whose input the states are: the parse as scores of the first head.

        The states are noted beside the batch.
        """
        if "parsed" not in given or self.parser is None:
            return {}
        (batch, read), config = given["parsed"], self.encoder.config
        read.append(states_BLD)
        if self.training or self.options.inject:
            heads_BLL = F.one_hot(batch.extra(HEADS).long(), states_BLD.shape[1])
            arcs_BLL = _FORBIDDEN * (1.0 - heads_BLL)
        else:
            arcs_BLL = self.parser(states_BLD, batch.attention_mask_BL).arcs_BLH
        others = config.num_attention_heads - 1
        score_BNLL = F.pad(arcs_BLL[:, None], (0, 0, 0, 0, 0, others))
        alone_B1LL = torch.zeros_like(arcs_BLL[:, None])  # nothing is left of the head's own scores
        syntax: list[LayerSyntax | None] = [None] * config.num_hidden_layers
        syntax[self.layer] = LayerSyntax(score_BNLL=score_BNLL, factor_BKLL=alone_B1LL)
        return {"syntax": syntax}

    def check_attention(self) -> None:
        if self.parser is not None:
            check_reads_scores(self.encoder)
