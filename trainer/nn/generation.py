"""Beam search and greedy decoding over the states of an encoder; the search is transformers' own.

Letters in shapes: ``B`` examples, ``L`` source pieces, ``T`` target pieces, ``D`` width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    StoppingCriteriaList,
)

from trainer.nn.transformer import GeneratingDecoder


@dataclass(frozen=True, slots=True)
class Search:
    """The search for translations.

    Attributes:
        beam: Hypotheses kept; 1 is greedy decoding.
        length_penalty: A hypothesis of T pieces, the end among them, has the sum of its
            log-probabilities divided by ``T ** length_penalty``.
        further: Pieces that a hypothesis, its end among them, may have beyond those of its source
            (Vaswani et al. 2017).
        longest: Most pieces of any hypothesis, the end among them.
        stop: ``best``: end once no hypothesis that goes on could be better if it ended now;
            ``exact``: once none could be better whenever it ended.
    """

    start: int
    end: int
    pad: int
    beam: int = 5
    length_penalty: float = 0.6
    further: int = 50
    longest: int = 256
    stop: Literal["best", "exact"] = "best"
    cache: bool = True


@torch.no_grad()
def generate(
    decoder: GeneratingDecoder, states_BLD: Tensor, mask_BL: Tensor, search: Search
) -> Tensor:
    """The best hypothesis of each example, without the start. *Shape:* (B, T), int64.

    After its end a row has padding, or the end again. No row depends on the others.
    """
    untyped = cast(Any, decoder)  # transformers types it by a protocol
    start_B1 = torch.full((len(states_BLD), 1), search.start, device=states_BLD.device)
    several = search.beam > 1
    told = GenerationConfig(
        max_new_tokens=min(mask_BL.shape[1] + search.further, search.longest),
        num_beams=search.beam,
        length_penalty=search.length_penalty if several else None,
        early_stopping=("never" if search.stop == "exact" else False) if several else None,
        do_sample=False,
        use_cache=search.cache,
        bos_token_id=search.start,
        eos_token_id=search.end,
        pad_token_id=search.pad,
    )
    cache = {"past_key_values": EncoderDecoderCache(DynamicCache(), DynamicCache())}
    found = untyped.generate(
        start_B1,
        generation_config=told,
        stopping_criteria=StoppingCriteriaList([_at_limit(mask_BL.sum(1) + search.further)]),
        encoder_hidden_states=states_BLD,
        encoder_attention_mask=mask_BL,
        **(cache if search.cache else {}),
    )
    ids_BT: Tensor = found[:, 1:]
    return ids_BT


def _at_limit(longest_B: Tensor) -> Callable[..., Tensor]:
    """A stopping criterion, for equally many hypotheses of each example: all pieces are there."""

    def ends(ids_NT: Tensor, _scores: Any, **_: Any) -> Tensor:
        longest_N = longest_B.repeat_interleave(len(ids_NT) // len(longest_B))
        return ids_NT.shape[1] - 1 >= longest_N

    return ends
