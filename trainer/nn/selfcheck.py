"""A trial of an encoder's attention before a run: it does what syntax tells it.

An encoder that drops a keyword, or reads a mask in another way, trains without an error and learns
nothing of trees. No list of families can say which do so: transformers rewrites them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.nn.attention import EncoderSyntax, LayerAttention, LayerSyntax
from trainer.nn.stock import run_pieces

HIDDEN: Final = 3
"""The position that only itself may see."""

_LENGTHS: Final = (8, 5)
_TOLERANCE: Final = 0.01
"""Share of a mask's effect that may be left over: rounding is far below, and disobedience is 1."""


@torch.no_grad()
def check_reads_scores(encoder: PreTrainedModel, **options: Any) -> None:
    """Refuse a stock encoder whose attention does not obey the keyword ``syntax``.

    A score that forbids a position must give the states that the stock encoder gives where that
    position is padding; each layer must read its own part, once; biases must have the shape of
    queries, keys and values; no position may read padding.
    """
    with _trial(encoder, encoder, "its attention") as batch:
        config, seen = encoder.config, batch.attention_mask_BL
        heads, layers = int(config.num_attention_heads), int(config.num_hidden_layers)
        zeros = torch.zeros(1, 1, seen.shape[1], config.hidden_size // heads)
        parts = _Recorded([LayerSyntax(zeros, zeros, zeros, _forbidding(seen.shape[1]))] * layers)
        others = _others(seen)

        def states(pieces: Tensor, visible: Tensor, syntax: EncoderSyntax | None = None) -> Tensor:
            types = batch.token_type_ids_BL
            output = run_pieces(encoder, pieces, visible, types, syntax=syntax, **options)
            return cast(Tensor, output.last_hidden_state[others])

        without = seen.clone()
        without[:, HIDDEN] = False
        plain, expected = states(batch.input_ids_BL, seen), states(batch.input_ids_BL, without)
        found = states(batch.input_ids_BL, seen, syntax=parts)
        if parts.read != list(range(layers)):
            raise SpecError(f"its {layers} layers read the parts {parts.read} of {layers}")
        _check_same(found, expected, plain)
        padded = torch.where(seen, batch.input_ids_BL, batch.input_ids_BL.flip(1))
        _check_same(states(padded, seen, syntax=list(parts)), expected, plain)


@torch.no_grad()
def check_attends_locally(
    encoder: PreTrainedModel, gates: nn.ModuleDict, forward: Callable[..., Tensor]
) -> None:
    """Refuse an encoder whose layers do not obey a mask of what is near.

    With everything given to the local attention (``gates`` has its share by layer), it must do what
    the same scores do. ``forward`` takes a batch and ``near``, bool (B, L, L).
    """
    check_reads_scores(encoder, near=torch.ones(1, 1, 1, dtype=torch.bool))
    what = "the attention of its layers"
    with _trial(encoder, encoder, what) as batch, _everything_local(gates):
        near_BLL = _hiding(batch)
        layer = LayerSyntax(score_BNLL=_forbidding(near_BLL.shape[1]))
        count = int(encoder.config.num_hidden_layers)
        parts = [layer if str(number) in gates else None for number in range(count)]
        pieces = (batch.input_ids_BL, batch.attention_mask_BL, batch.token_type_ids_BL)
        expected, plain = (
            run_pieces(encoder, *pieces, syntax=syntax, near=torch.ones_like(near_BLL))
            for syntax in (parts, None)
        )
        others = _others(batch.attention_mask_BL)
        _check_same(
            forward(batch, near_BLL)[others],
            expected.last_hidden_state[others],
            plain.last_hidden_state[others],
        )


@torch.no_grad()
def check_layer_obeys(
    module: nn.Module,
    encoder: PreTrainedModel,
    name: str,
    forward: Callable[[Tensor, SyntaxBatch], Tensor],
) -> None:
    """Refuse a further layer that reads what its mask, the extra ``name``, forbids."""
    with _trial(module, encoder, "a further layer of its kind") as batch:
        mask_BLL, states_BLD = _hiding(batch), _waves(batch, encoder.config.hidden_size)
        changed_BLD = states_BLD.clone()
        changed_BLD[:, HIDDEN] *= -1
        others = _others(batch.attention_mask_BL)
        masked = replace(batch, extras={name: mask_BLL})
        open_to_all = replace(batch, extras={name: torch.ones_like(mask_BLL)})
        expected, found = (forward(one, masked)[others] for one in (states_BLD, changed_BLD))
        _check_same(found, expected, forward(states_BLD, open_to_all)[others])


@torch.no_grad()
def check_hides(encoder: PreTrainedModel, forward: Callable[[SyntaxBatch, Tensor], Tensor]) -> None:
    """Refuse an encoder that reads what a mask of all its layers forbids.

    ``forward`` gives the last states of a batch under a mask, bool (B, L, L).
    """
    with _trial(encoder, encoder, "the attention of its layers") as batch:
        pieces_BL = batch.input_ids_BL.clone()
        pieces_BL[:, HIDDEN] = pieces_BL[:, HIDDEN + 1]
        changed = replace(batch, input_ids_BL=pieces_BL)
        hiding_BLL = _hiding(batch)
        others = _others(batch.attention_mask_BL)
        expected, found = (forward(one, hiding_BLL)[others] for one in (batch, changed))
        _check_same(found, expected, forward(changed, torch.ones_like(hiding_BLL))[others])


@torch.no_grad()
def check_layer_multiplies(
    module: nn.Module, encoder: PreTrainedModel, name: str, forward: Callable[..., Tensor]
) -> None:
    """Refuse a further layer whose scores the mask, the extra ``name``, does not multiply.

    ``forward`` also takes the ``recorder`` of the layer's attention.
    """
    with _trial(module, encoder, "a further layer of its kind") as batch:
        mask_BLL, states_BLD = _hiding(batch), _waves(batch, encoder.config.hidden_size)
        layers = _Layers()
        forward(states_BLD, replace(batch, extras={name: mask_BLL}), recorder=layers)
        if len(layers) != 1:
            raise SpecError(f"its attention was computed {len(layers)} times")
        seen = layers[0]
        scaling = seen.scaling or seen.query.shape[-1] ** -0.5
        plain_BNLL = seen.query @ seen.key.transpose(2, 3) * scaling
        assert seen.mask is not None
        if seen.mask.dtype == torch.bool:
            raise SpecError("its scores are not multiplied")
        others_BL = _others(batch.attention_mask_BL)
        plain, found = (
            scores_BNLL.transpose(1, 2)[others_BL][..., HIDDEN]
            for scores_BNLL in (plain_BNLL, plain_BNLL + seen.mask)
        )
        _check_same(found, torch.zeros_like(found), plain)


class _Layers(list[LayerAttention]):
    """Attention of each layer, as it comes."""

    def record(self, layer: LayerAttention) -> None:
        self.append(layer)


class _Recorded(list[LayerSyntax | None]):
    """Parts of syntax that note which layers asked for theirs."""

    def __init__(self, parts: Sequence[LayerSyntax | None]) -> None:
        super().__init__(parts)
        self.read: list[int] = []

    def __getitem__(self, layer: Any) -> Any:
        self.read.append(layer)
        return super().__getitem__(layer)


@contextmanager
def _trial(module: nn.Module, encoder: PreTrainedModel, what: str) -> Iterator[SyntaxBatch]:
    """A few pieces to try a module on; whatever goes wrong is said with the encoder's type."""
    training = module.training
    module.eval()
    try:
        yield _few_pieces(encoder)
    except Exception as error:  # families fail in their own ways on what they do not know
        told = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SpecError(
            f"the encoder is of type {encoder.config.model_type!r}, and {what} does not obey "
            f"syntax ({told}); take another encoder, such as BERT, XLM-R or ELECTRA, or "
            "set model.use_syntax=false"
        ) from error
    finally:
        module.train(training)


def _few_pieces(encoder: PreTrainedModel) -> SyntaxBatch:
    B, L = len(_LENGTHS), max(_LENGTHS)
    words = cast(nn.Embedding, encoder.get_input_embeddings()).num_embeddings
    ids = [words * (place + 2) // (L + 4) for place in range(L)]
    pad = getattr(encoder.config, "pad_token_id", None)
    lengths_B = torch.tensor(_LENGTHS, dtype=torch.int32)
    zeros_BL = torch.zeros(B, L, dtype=torch.int64)
    real_BL = torch.arange(L)[None] < lengths_B[:, None]
    return SyntaxBatch(
        input_ids_BL=torch.tensor([number + (number == pad) for number in ids]).repeat(B, 1),
        attention_mask_BL=real_BL,
        token_type_ids_BL=zeros_BL,
        special_tokens_mask_BL=torch.zeros_like(real_BL),
        upos_BL=zeros_BL.byte(),
        deprel_BL=zeros_BL.byte(),
        parents_BL=zeros_BL.int() - 1,
        lengths_B=lengths_B,
        depth_BL=None,
        distance_BLL=None,
        ancestor_BLL=None,
        labels={},
        example_ids=("", ""),
    )


def _forbidding(length: int) -> Tensor:
    """Scores that forbid one position to all others. *Shape:* (1, 1, L, L)."""
    scores = torch.zeros(1, 1, length, length)
    scores[..., HIDDEN] = -1e9
    scores[..., HIDDEN, HIDDEN] = 0
    return scores


def _hiding(batch: SyntaxBatch) -> Tensor:
    """True where `_forbidding` forbids nothing. *Shape:* (B, L, L), bool."""
    return (_forbidding(batch.input_ids_BL.shape[1]) == 0)[0].expand(len(batch), -1, -1)


def _waves(batch: SyntaxBatch, width: int) -> Tensor:
    """States that differ everywhere. *Shape:* (B, L, D)."""
    length = batch.input_ids_BL.shape[1]
    states_LD = torch.linspace(-2, 2, length * width).sin().view(length, width)
    return states_LD.repeat(len(batch), 1, 1)


def _others(real_BL: Tensor) -> Tensor:
    """Real positions but the forbidden one. *Shape:* (B, L)."""
    others_BL = real_BL.clone()
    others_BL[:, HIDDEN] = False
    return others_BL


def _check_same(found: Tensor, expected: Tensor, plain: Tensor) -> None:
    effect = float((plain - expected).abs().max())
    left = float((found - expected).abs().max())
    if not left <= _TOLERANCE * effect:
        raise SpecError(f"a mask that changes states by {effect:.1e} is missed by {left:.1e}")


@contextmanager
def _everything_local(gates: nn.ModuleDict) -> Iterator[None]:
    hooks = [
        gate.register_forward_hook(lambda _module, _args, share: torch.ones_like(share))
        for gate in gates.values()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
