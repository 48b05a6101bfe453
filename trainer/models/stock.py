"""Stock encoders of transformers, new or pretrained, whose attention can read syntax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from torch import nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel

from syntax.errors import ModelLoadError, SpecError
from trainer.batch import SyntaxBatch
from trainer.models.attention import EAGER, SDPA
from trainer.models.config import SyntaxConfig
from trainer.options import DataOptions, ModelOptions
from trainer.options.checks import check_range

if TYPE_CHECKING:
    from syntax.assembly import SpecialTokens

BUNDLED: Final = {"parsebank-tiny": Path(__file__).parents[1] / "resources" / "tiny-encoder"}
"""Encoders that come with the package: a configuration without weights."""

ATTENTION: Final = {"sdpa": SDPA, "eager": EAGER}
"""Our implementations, by transformers' name of what they extend."""


def new_encoder(config: SyntaxConfig) -> PreTrainedModel:
    """A stock encoder with random weights, whose attention is ours.

    Raises:
        SpecError: Its family is not one that the interface was tried with.
    """
    encoder_config = config.encoder_config()
    check_family(encoder_config.model_type)
    encoder: PreTrainedModel = AutoModel.from_config(
        encoder_config, attn_implementation=config.attention, add_pooling_layer=False
    )
    return encoder


def load_encoder(name: str, attention: str) -> PreTrainedModel:
    """A pretrained encoder whose attention reads syntax.

    Raises:
        ModelLoadError: It has no weights, or cannot be had.
    """
    try:
        encoder: PreTrainedModel = AutoModel.from_pretrained(
            name, attn_implementation=attention, add_pooling_layer=False
        )
    except (OSError, ValueError) as error:
        raise _cannot_load(name, error) from error
    return encoder


def load_encoder_config(options: ModelOptions, special: SpecialTokens) -> PretrainedConfig:
    """The encoder's configuration; a random encoder takes the tokenizer's vocabulary.

    Raises:
        ModelLoadError: It is neither a folder with a configuration, nor on the hub, nor bundled.
        SpecError: The encoder is of another family, or a bundled one was asked for weights.
    """
    name = options.encoder
    if name in BUNDLED and options.weights == "pretrained":
        raise SpecError(f"{name} has no weights; set model.weights=random")
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(BUNDLED.get(name, name))
    except (OSError, ValueError) as error:
        raise _cannot_load(name, error) from error
    check_family(config.model_type)
    if options.weights == "random":
        config.vocab_size, config.pad_token_id = special.vocab_size, special.pad_id
    return config


def run_encoder(encoder: PreTrainedModel, batch: SyntaxBatch, **options: Any) -> Any:
    """Run a stock encoder on the pieces of a batch.

    Args:
        encoder: The encoder.
        batch: What it reads.
        options: Further arguments of its ``forward``, such as ``output_attentions``.

    Returns:
        What it gives; ``last_hidden_state`` has the *shape* (B, L, D).
    """
    return encoder(
        input_ids=batch.input_ids_BL,
        attention_mask=batch.attention_mask_BL.long(),
        token_type_ids=batch.token_type_ids_BL,
        **options,
    )


def chosen_layers(name: str, layers: Sequence[int] | None, count: int) -> list[int]:
    """The layers that an option names, in order; every one where it names none.

    Args:
        name: Of the option.
        layers: Its value, 0-based.
        count: How many layers the encoder has.

    Raises:
        SpecError: The encoder has no such layer.
    """
    if layers is None:
        return list(range(count))
    for layer in layers:
        check_range(name, layer, 0, count - 1)
    return sorted(set(layers))


def layers_of(encoder: PreTrainedModel) -> list[nn.Module]:
    """The layers of an encoder, from the first to the last."""
    stack = cast(nn.Module, encoder.encoder)
    return list(cast(nn.ModuleList, stack.layer))


def further_layer(encoder: PreTrainedModel) -> nn.Module:
    """A new layer of the encoder's own kind, to go on top of it.

    Like its own it is called with states, *shape* (B, L, D), and an attention mask.
    """
    layers = layers_of(encoder)
    kind: Callable[..., nn.Module] = type(layers[0])
    return kind(encoder.config, layer_idx=len(layers))


def check_family(model_type: str) -> None:
    """Refuse an encoder that may not hand ``syntax`` down to its attention.

    Raises:
        SpecError: The family is neither BERT nor XLM-R (or RoBERTa, which shares its code).
    """
    if model_type not in ("bert", "roberta", "xlm-roberta"):
        raise SpecError(
            f"the encoder is of type {model_type!r}; syntax reaches the attention of bert, "
            "roberta and xlm-roberta encoders"
        )


def check_fits(encoder: PretrainedConfig, data: DataOptions, special: SpecialTokens) -> None:
    """Refuse an encoder that cannot read the data.

    Raises:
        SpecError: Its vocabulary is smaller than the tokenizer's, or its positions are fewer than
            ``max_length``.
    """
    if special.vocab_size > encoder.vocab_size:
        raise SpecError(
            f"the tokenizer has {special.vocab_size} pieces and the encoder embeds "
            f"{encoder.vocab_size}; backfill with the encoder's own tokenizer"
        )
    # RoBERTa's positions start after the padding id.
    offset = 0 if encoder.model_type == "bert" else encoder.pad_token_id + 1
    positions = encoder.max_position_embeddings - offset
    if data.max_length > positions:
        raise SpecError(
            f"data.max_length is {data.max_length}, and the encoder has {positions} positions; "
            f"set data.max_length to {positions} at most"
        )


def _cannot_load(name: str, error: Exception) -> ModelLoadError:
    first = str(error).strip().partition("\n")[0]
    return ModelLoadError(
        f"cannot load the encoder {name!r}: {first} Give a folder with config.json and weights, a "
        f"name on the model hub, or one of {', '.join(BUNDLED)}"
    )
