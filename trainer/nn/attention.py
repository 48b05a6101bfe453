"""Syntax in stock encoders' attention, through transformers' attention interface.

An encoder built with one of our two implementations hands the keyword ``syntax`` down to its
attention function, which adds a layer's biases before the stock computation. Without that keyword
an encoder computes exactly what the stock one does.

Letters in shapes: ``B`` examples, ``N`` heads, ``K`` syntactic heads (the first of the N), ``L``
wordpieces, ``R`` rows of the weights (any number up to L), ``D`` head size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch

SDPA: Final = "parsebank_sdpa"
EAGER: Final = "parsebank_eager"
"""Gives the attention weights, but is slower; tests compare `SDPA` with it."""


@dataclass(frozen=True, slots=True)
class LocalAttention:
    """A second attention of the same heads, to near positions only, mixed with the first.

    Every real row of the bool mask has an entry; ``weight_BL`` is this attention's share, 0 to 1.
    """

    mask_BLL: Tensor
    weight_BL: Tensor


@dataclass(frozen=True, slots=True)
class SubNetworks:
    """Attentions of the same heads through J masks, and what makes one of their outcomes.

    Attributes:
        masks: bool, (B, L, L) each; every real row has an entry.
        mix: From the outcomes (J, B, L, N, D) to one, (B, L, N, D).
    """

    masks: Sequence[Tensor]
    mix: Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class LayerSyntax:
    """Syntax in the attention of one layer; absent parts add nothing.

    Attributes:
        query_BKLD, key_BKLD, value_BKLD: Added to the states of the first K heads.
        score_BNLL: Added to the scaled scores before the softmax; broadcast over B, N and rows.
        factor_BKLL: The scaled scores of the first K heads are multiplied by it.
    """

    query_BKLD: Tensor | None = None
    key_BKLD: Tensor | None = None
    value_BKLD: Tensor | None = None
    score_BNLL: Tensor | None = None
    factor_BKLL: Tensor | None = None


EncoderSyntax: TypeAlias = Sequence[LayerSyntax | None]
"""One entry per layer of the encoder; ``None`` leaves a layer as it is."""

Attention: TypeAlias = Callable[..., tuple[Tensor, Tensor | None]]


@dataclass(frozen=True, slots=True)
class LayerAttention:
    """All that a layer's attention weights are computed from; biases are in the states or the mask.

    Attributes:
        query, key: *Shape:* (B, N, L, D).
        mask: bool, what may be attended to, or numbers that are added to the scaled scores;
            broadcast to (B, N, L, L).
        scaling: Factor of the scores; the inverse root of D when left out.
        dropout: 0 outside training.
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    local: LocalAttention | None = None
    scaling: float | None = None
    dropout: float = 0.0


class Recorder(Protocol):
    """Receives what each layer attends with, first layer first."""

    def record(self, layer: LayerAttention) -> None: ...


def with_syntax(attention: Attention) -> Attention:
    """An attention function that also reads the keywords of ours that it names.

    ``number`` is that of the layer, where layers share the module; ``relative`` gives terms of
    positions as `relative_scores` does. With ``subnetworks`` there are no weights.
    """

    def forward(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        *,
        syntax: EncoderSyntax | None = None,
        local: LocalAttention | None = None,
        subnetworks: SubNetworks | None = None,
        recorder: Recorder | None = None,
        number: int | None = None,
        relative: Callable[[Tensor, Tensor], Tensor] | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        layer = None
        if syntax is not None:
            layer = syntax[module.layer_idx if number is None else number]  # type: ignore[index]
        if any(one is not None for one in (layer, local, subnetworks, recorder)):
            attention_mask = _spelt_out(attention_mask, module, query)
        if layer is not None:
            query = _add_to_first_heads(query, layer.query_BKLD)
            key = _add_to_first_heads(key, layer.key_BKLD)
            value = _add_to_first_heads(value, layer.value_BKLD)
            attention_mask = _add_to_mask(attention_mask, layer.score_BNLL, query.dtype)
        relative_BNLL = (relative or partial(relative_scores, module))(query, key)
        if relative_BNLL is not None:
            scaling = options.get("scaling") or query.shape[-1] ** -0.5
            attention_mask = _add_to_mask(attention_mask, relative_BNLL * scaling, query.dtype)
        if layer is not None and layer.factor_BKLL is not None:
            more_BNLL = _further_scores(
                layer.factor_BKLL, query, key, relative_BNLL, options.get("scaling")
            )
            attention_mask = _add_to_mask(attention_mask, more_BNLL, query.dtype)
        # Here the mask is final: whatever else is to change scores has to be added above.
        if recorder is not None:
            how = {name: options[name] for name in ("scaling", "dropout") if name in options}
            recorder.record(LayerAttention(query, key, attention_mask, local, **how))
        if subnetworks is not None:
            masks = (_only_near(attention_mask, near_BLL) for near_BLL in subnetworks.masks)
            outcomes = [attention(module, query, key, value, one, **options)[0] for one in masks]
            return subnetworks.mix(torch.stack(outcomes)), None
        if local is None:
            return attention(module, query, key, value, attention_mask, **options)
        # Fused attention never writes its weights out; on a CPU it does, where dropout is.
        is_fused = attention is sdpa_attention_forward and query.is_cuda
        attend = _attend_twice if is_fused else _attend_at_once
        return attend(attention, module, (query, key, value), attention_mask, local, **options)

    return forward


def eager_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_options: Any,
) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention (Vaswani et al. 2017, equation 1); outputs are (B, L, N, D)."""
    weights_BNLL = attention_weights(query, key, attention_mask, scaling=scaling)
    return _weighted(weights_BNLL, value, dropout, module.training)


def attention_weights(
    query_BNRD: Tensor,
    key_BNLD: Tensor,
    mask: Tensor | None,
    local: LocalAttention | None = None,
    scaling: float | None = None,
) -> Tensor:
    """The attention weights of R positions, before dropout. *Shape:* (B, N, R, L).

    Mask and scaling are as in `LayerAttention`, the mask of the R positions. With ``local``, whose
    *shapes* here are (B, R, L) and (B, R), the weights are the mix of both attentions.
    """
    scores_BNRL = _scores(query_BNRD, key_BNLD, mask, scaling)
    if local is None:
        return scores_BNRL.softmax(-1)
    low = torch.finfo(scores_BNRL.dtype).min
    near_BNRL = scores_BNRL.masked_fill(~local.mask_BLL[:, None], low).softmax(-1)
    share_BR = local.weight_BL.to(near_BNRL.dtype)
    return torch.lerp(scores_BNRL.softmax(-1), near_BNRL, share_BR[:, None, :, None])


def relative_scores(module: nn.Module, query_BNLD: Tensor, key_BNLD: Tensor) -> Tensor | None:
    """Terms of relative positions in the products of queries and keys, before scaling.

    With the row r = E[i - j + P - 1] of the layer's table: q_i r, and k_j r where the layer's
    configuration says ``relative_key_query``. *Shape:* (B, N, L, L); None without a table.
    """
    table: Any = getattr(module, "distance_embedding", None)
    if table is None:
        return None
    place_L = torch.arange(query_BNLD.shape[2], device=query_BNLD.device)
    first = (table.num_embeddings - 1) // 2
    rows_LLD = table(place_L[:, None] - place_L + first).to(query_BNLD.dtype)
    scores_BNLL = torch.einsum("bnid,ijd->bnij", query_BNLD, rows_LLD)
    config: Any = module.config
    if config.position_embedding_type == "relative_key_query":
        scores_BNLL = scores_BNLL + torch.einsum("bnjd,ijd->bnij", key_BNLD, rows_LLD)
    return scores_BNLL


def check_reads_syntax(implementation: str | None) -> None:
    """Refuse an attention implementation that would drop the keyword ``syntax`` in silence."""
    if implementation not in (SDPA, EAGER):
        raise SpecError(
            f"the encoder's attention implementation is {implementation!r}, which ignores syntax; "
            f"build it with `attn_implementation={SDPA}` or {EAGER!r}, or give `use_syntax=False`"
        )


def _attend_at_once(
    _attention: Attention,
    module: nn.Module,
    states: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    local: LocalAttention,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_options: Any,
) -> tuple[Tensor, Tensor]:
    """Both attentions from the same scores, their weights mixed before they meet the values."""
    query, key, value = states
    weights_BNLL = attention_weights(query, key, mask, local, scaling)
    return _weighted(weights_BNLL, value, dropout, module.training)


def _attend_twice(
    attention: Attention,
    module: nn.Module,
    states: tuple[Tensor, Tensor, Tensor],
    mask: Tensor | None,
    local: LocalAttention,
    **options: Any,
) -> tuple[Tensor, None]:
    """Two fused attentions, their outcomes mixed: no weights take up memory."""
    everywhere, _ = attention(module, *states, mask, **options)
    near, _ = attention(module, *states, _only_near(mask, local.mask_BLL), **options)
    share_BL = local.weight_BL.to(near.dtype)
    return torch.lerp(everywhere, near, share_BL[:, :, None, None]), None


def _scores(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    scores_BNLL = query @ key.transpose(2, 3) * (scaling or query.shape[-1] ** -0.5)
    if mask is None:
        return scores_BNLL
    if mask.dtype == torch.bool:
        return scores_BNLL.masked_fill(~mask, torch.finfo(scores_BNLL.dtype).min)
    return scores_BNLL + mask


def _weighted(
    weights_BNLL: Tensor, value: Tensor, dropout: float, training: bool
) -> tuple[Tensor, Tensor]:
    weights_BNLL = F.dropout(weights_BNLL, dropout, training)
    return (weights_BNLL.to(value.dtype) @ value).transpose(1, 2).contiguous(), weights_BNLL


def _only_near(mask: Tensor | None, near_BLL: Tensor) -> Tensor:
    """A mask of what is near, too; a row without anything near in a window has all of that."""
    near_B1LL = near_BLL[:, None]
    if mask is None:
        return near_B1LL
    if mask.dtype == torch.bool:
        both = mask & near_B1LL
        return torch.where(both.any(-1, keepdim=True), both, mask)
    low = torch.finfo(mask.dtype).min
    both = mask.masked_fill(~near_B1LL, low)
    return torch.where((both > low).any(-1, keepdim=True), both, mask)


def _spelt_out(mask: Tensor | None, module: nn.Module, query: Tensor) -> Tensor | None:
    """The mask of a causal layer, which has none where nothing is padding; else as it is."""
    if mask is not None or not getattr(module, "is_causal", False):
        return mask
    L = query.shape[2]
    return torch.ones(1, 1, L, L, dtype=torch.bool, device=query.device).tril()


def _further_scores(
    factor_BKLL: Tensor,
    query: Tensor,
    key: Tensor,
    relative_BNLL: Tensor | None,
    scaling: float | None,
) -> Tensor:
    """The addend that multiplies scaled scores s of K heads by a factor: (factor - 1) s."""
    K, N = factor_BKLL.shape[1], query.shape[1]
    scores_BKLL = query[:, :K] @ key[:, :K].transpose(2, 3)
    if relative_BNLL is not None:
        scores_BKLL = scores_BKLL + relative_BNLL[:, :K]
    more_BKLL = (factor_BKLL - 1.0) * scores_BKLL * (scaling or query.shape[-1] ** -0.5)
    return F.pad(more_BKLL, (0, 0, 0, 0, 0, N - K))


def _add_to_first_heads(states_BNLD: Tensor, bias_BKLD: Tensor | None) -> Tensor:
    if bias_BKLD is None:
        return states_BNLD
    rest = states_BNLD.shape[1] - bias_BKLD.shape[1]
    return states_BNLD + F.pad(bias_BKLD, (0, 0, 0, 0, 0, rest)).to(states_BNLD.dtype)


def _add_to_mask(mask: Tensor | None, score_BNLL: Tensor | None, dtype: torch.dtype) -> Any:
    if score_BNLL is None:
        return mask
    score_BNLL = score_BNLL.to(dtype)
    if mask is None:
        return score_BNLL
    if mask.dtype == torch.bool:
        return torch.where(mask, score_BNLL, torch.finfo(dtype).min)
    return mask + score_BNLL


# The mask functions go under the same names: without them transformers builds no mask at all for
# an unknown implementation, and padding takes part in the attention without a word.
AttentionInterface.register(SDPA, with_syntax(sdpa_attention_forward))
AttentionMaskInterface.register(SDPA, sdpa_mask)
AttentionInterface.register(EAGER, with_syntax(eager_attention))
AttentionMaskInterface.register(EAGER, eager_mask)


def never_empty(mask_BLL: Tensor, batch: SyntaxBatch) -> Tensor:
    """The mask with its empty rows filled, and each padding position attending to itself alone.

    A softmax over nothing is not defined. So a real position that may attend to nothing attends to
    every real position, as in the releases, whose finite masks cancel out in such a row.
    """
    real_BL = batch.attention_mask_BL
    mask_BLL = mask_BLL & real_BL[:, None, :]
    empty_BL = ~mask_BLL.any(-1)
    filled_BLL = mask_BLL | ((empty_BL & real_BL)[:, :, None] & real_BL[:, None, :])
    return filled_BLL | torch.diag_embed(~real_BL)


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the allowed entries of the last axis; a row without any becomes zeros."""
    masked = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return masked.softmax(-1).masked_fill(~allowed, 0.0)
