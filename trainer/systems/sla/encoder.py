"""Syntax-aware local attention: each layer also attends to what is near in the tree.

Li et al. 2021 (Findings of ACL), equations 3 to 9. Local and global attention share queries, keys
and values; a gate computed from a layer's input weighs the two for each position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from syntax.matrices import released_punctuation
from syntax.variant import Variant
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import LocalAttention, check_reads_syntax, never_empty
from trainer.nn.encoder import Encoder
from trainer.nn.selfcheck import check_attends_locally
from trainer.nn.stock import before_attention, chosen_layers, new_encoder, run_encoder
from trainer.nn.tokenizer import pieces_of
from trainer.systems.sla.options import SlaOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class LocalGate(nn.Module):
    """Share of the local attention at each position of one layer.

    Published: ``g = sigmoid(W h + b)`` weighs the global attention, ``1 - g`` the local one
    (equations 7 to 9). The authors' own code lets ``g`` weigh the local one.
    """

    def __init__(self, width: int, variant: Variant = "as_published") -> None:
        super().__init__()
        self.linear = nn.Linear(width, 1)
        self.sign = 1.0 if variant == "as_released" else -1.0

    def forward(self, states_BLD: Tensor) -> Tensor:
        """Shares from 0 to 1. *Shape:* (B, L)."""
        # 1 - sigmoid(x) = sigmoid(-x).
        return torch.sigmoid(self.sign * self.linear(states_BLD)).squeeze(-1)


class SlaEncoder(Encoder):
    """States of the pieces, with local attention in chosen layers."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    options: SlaOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options, stock = self.options, config.encoder_config()
        self.width = int(stock.hidden_size)
        self.mask = options.mask
        self.punctuation_V: Tensor | None
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        layers = (
            chosen_layers("model.local_layers", options.local_layers, stock.num_hidden_layers)
            if options.attends_locally
            else ()
        )
        marks = options.attends_locally and options.punctuation == "pieces"
        table_V = torch.zeros(stock.vocab_size, dtype=torch.bool) if marks else None
        self.register_buffer("punctuation_V", table_V)
        self.gates = nn.ModuleDict({str(n): LocalGate(self.width, options.gate) for n in layers})
        for name, gate in self.gates.items():
            before_attention(self.encoder, int(name), partial(_local, gate))

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        if self.gates:
            check_reads_syntax(self.encoder.config._attn_implementation)
            options["near"] = self.near(batch)
        output = run_encoder(self.encoder, batch, **options)
        return SyntaxEncoding(
            last_hidden_state=output.last_hidden_state,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
        )

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:
        self.check_attention()
        if self.punctuation_V is not None:
            tokenizer = profile.requirements
            places = (recipe.model.encoder, tokenizer.tokenizer_name)
            self.mark_punctuation(pieces_of(tokenizer.tokenizer, places))

    def near(self, batch: SyntaxBatch) -> Tensor:
        near_BLL = batch.extra(self.mask)
        if self.punctuation_V is not None:
            near_BLL = near_BLL | self.punctuation_V[batch.input_ids_BL][:, None, :]
        return never_empty(near_BLL, batch)

    def mark_punctuation(self, pieces: Sequence[str]) -> None:
        """Make pieces whose string, by id, is punctuation near to everything."""
        assert self.punctuation_V is not None
        table_V = torch.from_numpy(released_punctuation(list(pieces)))
        self.punctuation_V[: len(table_V)] = table_V

    def check_attention(self) -> None:
        if self.gates:
            check_attends_locally(self.encoder, self.gates, self._states)

    def _states(self, batch: SyntaxBatch, near_BLL: Tensor) -> Tensor:
        near_BLL = never_empty(near_BLL, batch)
        return cast(Tensor, run_encoder(self.encoder, batch, near=near_BLL).last_hidden_state)


def _local(gate: nn.Module, states_BLD: Tensor, options: Mapping[str, Any]) -> dict[str, Any]:
    return {"local": LocalAttention(options["near"], gate(states_BLD))}
