"""Models by name: from a recipe's options to a new model that fits the data.

To add one, write its modules beside these, a function like `build_syntax_bert`, and register it
in `MODELS`; docs/trainer.md walks through it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel

from syntax.errors import ModelLoadError, SpecError
from syntax.registry import Registry
from trainer.models.attention import EAGER, SDPA
from trainer.models.config import SyntaxBertConfig
from trainer.models.syntax_bert import SyntaxBertForSequenceClassification, check_family
from trainer.recipes.base import DataOptions, ModelOptions, Recipe
from trainer.requirements import Requirements

if TYPE_CHECKING:
    from syntax.assembly import SpecialTokens

BUNDLED: Final = {"parsebank-tiny": Path(__file__).parents[1] / "resources" / "tiny-encoder"}
"""Encoders that come with the package: a configuration without weights."""

_ATTENTION = {"sdpa": SDPA, "eager": EAGER}


@dataclass(frozen=True, slots=True)
class DataProfile:
    """What the data asks of a model.

    Attributes:
        classes: Names of the classes, in id order.
        special_tokens: Of the tokenizer.
        requirements: What the model is to ask for from now on.
    """

    classes: tuple[str, ...]
    special_tokens: SpecialTokens
    requirements: Requirements


MODELS: Registry[Callable[[Recipe, DataProfile], PreTrainedModel]] = Registry("model")


def build_model(recipe: Recipe, profile: DataProfile) -> PreTrainedModel:
    """A new model for a recipe; its weights depend on torch's seed.

    Raises:
        UnknownNameError: No such model.
        ModelLoadError: The encoder cannot be loaded.
        SpecError: The encoder does not fit the data, or the options do not fit the encoder.
    """
    return MODELS[recipe.model.name](recipe, profile)


def build_syntax_bert(recipe: Recipe, profile: DataProfile) -> PreTrainedModel:
    """Syntax-MBERT's model for classification (see `trainer.models.syntax_bert`)."""
    encoder_config = load_encoder_config(recipe.model, profile.special_tokens)
    check_fits(encoder_config, recipe.data, profile.special_tokens)
    config = SyntaxBertConfig(
        encoder=encoder_config.to_dict(),
        **_settings(recipe.model),
        task=recipe.task,
        label=recipe.data.label,
        requires=profile.requirements.to_json(),
        id2label=dict(enumerate(profile.classes)),
        label2id={name: index for index, name in enumerate(profile.classes)},
    )
    pretrained = recipe.model.weights == "pretrained"
    encoder = load_encoder(recipe.model.encoder, config.attention) if pretrained else None
    return SyntaxBertForSequenceClassification(config, encoder)


MODELS.add("syntax_bert.v1", build_syntax_bert)


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


def _settings(options: ModelOptions) -> dict[str, Any]:
    layers = options.syntax_layers
    return {
        "attention": _ATTENTION[options.attention],
        "use_syntax": options.use_syntax,
        "gat": options.gat,
        "attention_bias": options.attention_bias,
        "probe_target": options.probe_target,
        "gat_layers": options.gat_layers,
        "gat_heads": options.gat_heads,
        "gat_head_size": options.gat_head_size,
        "gat_dropout": options.gat_dropout,
        "max_distance": options.max_distance,
        "use_upos": options.use_upos,
        "use_deprel": options.use_deprel,
        "syntax_heads": options.syntax_heads,
        "syntax_layers": None if layers is None else list(layers),
        "structure_weight": options.structure_weight,
        "probe_rank": options.probe_rank,
        "classifier_dropout": options.classifier_dropout,
    }


def _cannot_load(name: str, error: Exception) -> ModelLoadError:
    first = str(error).strip().partition("\n")[0]
    return ModelLoadError(
        f"cannot load the encoder {name!r}: {first} Give a folder with config.json and weights, a "
        f"name on the model hub, or one of {', '.join(BUNDLED)}"
    )
