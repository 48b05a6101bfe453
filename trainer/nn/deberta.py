"""DeBERTa-v2 and v3, whose disentangled attention goes through transformers' attention interface.

He et al. 2021 (https://arxiv.org/abs/2006.03654, equation 4): with a table P of relative positions,
one for all layers, and the row p(i, j) of the distance i - j, which far distances share,

    score_ij = (q_i k_j + q_i (W_k P_p) + k_j (W_q P_p)) / sqrt(3 D).

Transformers computes it with an attention function of its own, which reads a mask only. Here the
two further terms are added to the scores as those of other relative positions are, so that all of
`trainer.nn.attention` applies. Weights have the same names; states agree up to rounding.

Letters in shapes: ``B`` examples, ``N`` heads, ``L`` wordpieces, ``D`` head size, ``S`` rows of P.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from transformers import DebertaV2Config, DebertaV2Model
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DebertaV2Layer,
    DisentangledSelfAttention,
)
from transformers.utils.output_capturing import capture_outputs


class RoutedAttention(DisentangledSelfAttention):
    """The attention of a layer, up to the map behind it."""

    def __init__(self, config: DebertaV2Config, layer_idx: int) -> None:
        super().__init__(config)  # type: ignore[no-untyped-call]
        self.config, self.layer_idx = config, layer_idx

    def forward(  # type: ignore[override]
        self,
        states_BLD: Tensor,
        attention_mask: Tensor | None,
        *,
        relative_pos: Tensor | None,
        rel_embeddings: Tensor | None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Outcomes (B, L, N D), and the weights where the implementation has them."""
        maps = (self.query_proj, self.key_proj, self.value_proj)
        query, key, value = (self._heads(project(states_BLD)) for project in maps)
        kinds = 1 + sum(kind in self.pos_att_type for kind in ("c2p", "p2c"))
        attend = ALL_ATTENTION_FUNCTIONS[self.config._attn_implementation]
        if relative_pos is not None and rel_embeddings is not None:
            options["relative"] = self._relative(relative_pos, rel_embeddings)
        outcome_BLND, weights_BNLL = attend(
            self,
            query,
            key,
            value,
            attention_mask,
            scaling=(self.attention_head_size * kinds) ** -0.5,
            dropout=self.dropout.p if self.training else 0.0,
            **options,
        )
        return outcome_BLND.flatten(2), weights_BNLL

    def _relative(
        self, relative_pos: Tensor, rel_embeddings: Tensor
    ) -> Callable[[Tensor, Tensor], Tensor]:
        """Both terms of positions, before scaling, of queries and keys: (B, N, L, L)."""
        rows_1SD = self.pos_dropout(rel_embeddings)[None]
        shared = self.share_att_key
        span = rel_embeddings.shape[0] // 2
        place_1LL = (relative_pos + span).clamp(0, 2 * span - 1)

        def terms(query_BNLD: Tensor, key_BNLD: Tensor) -> Tensor:
            place_BNLL = place_1LL.expand(*query_BNLD.shape[:3], -1)
            found = query_BNLD.new_zeros(())
            if "c2p" in self.pos_att_type:
                table = self.key_proj if shared else self.pos_key_proj
                scores_BNLS = query_BNLD @ self._heads(table(rows_1SD)).transpose(2, 3)
                found = found + scores_BNLS.gather(3, place_BNLL)
            if "p2c" in self.pos_att_type:
                table = self.query_proj if shared else self.pos_query_proj
                scores_BNLS = key_BNLD @ self._heads(table(rows_1SD)).transpose(2, 3)
                found = found + scores_BNLS.gather(3, place_BNLL.transpose(2, 3)).transpose(2, 3)
            return found

        return terms

    def _heads(self, states_BLD: Tensor) -> Tensor:
        B, L, _ = states_BLD.shape
        return states_BLD.view(B, L, self.num_attention_heads, -1).transpose(1, 2)


class RoutedLayer(DebertaV2Layer):
    """A layer with that attention, from states to states."""

    def __init__(self, config: DebertaV2Config, layer_idx: int) -> None:
        super().__init__(config)  # type: ignore[no-untyped-call]
        self.attention.self = RoutedAttention(config, layer_idx)

    def forward(  # type: ignore[override]
        self, states_BLD: Tensor, attention_mask: Tensor | None, **options: Any
    ) -> Tensor:
        outcome_BLD, _ = self.attention.self(states_BLD, attention_mask, **options)
        attended_BLD = self.attention.output(outcome_BLD, states_BLD)
        layer_BLD: Tensor = self.output(self.intermediate(attended_BLD), attended_BLD)
        return layer_BLD


class RoutedDeberta(DebertaV2Model):
    """DeBERTa-v2 whose layers read the keywords of our attention; it has no convolution."""

    _supports_sdpa = True
    _supports_attention_backend = True
    _can_record_outputs = {  # noqa: RUF012
        "hidden_states": RoutedLayer,
        "attentions": RoutedAttention,
    }

    def __init__(self, config: DebertaV2Config) -> None:
        super().__init__(config)
        count = int(config.num_hidden_layers)
        self.encoder.layer = nn.ModuleList(RoutedLayer(config, number) for number in range(count))
        self.post_init()  # type: ignore[no-untyped-call]

    @capture_outputs  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        **options: Any,
    ) -> BaseModelOutput:
        states_BLD = self.embeddings(input_ids, token_type_ids, mask=attention_mask)
        mask = create_bidirectional_mask(self.config, states_BLD, attention_mask)
        positions = self.positions(states_BLD)
        for layer in self.encoder.layer:
            states_BLD = layer(states_BLD, mask, **positions, **options)
        return BaseModelOutput(last_hidden_state=states_BLD)

    def positions(self, states_BLD: Tensor) -> dict[str, Tensor | None]:
        """Keywords of a layer: distances, (1, L, L), and the table P, (S, N D)."""
        return {
            "relative_pos": self.encoder.get_rel_pos(states_BLD),
            "rel_embeddings": self.encoder.get_rel_embedding(),
        }
