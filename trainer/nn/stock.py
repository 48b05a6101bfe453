"""Stock encoders of transformers, new or pretrained, whose attention can read syntax."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_MAPPING,
    AlbertConfig,
    AutoConfig,
    AutoModel,
    DebertaV2Config,
    ModernBertModel,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.models.modernbert.modeling_modernbert import ModernBertAttention

from syntax.errors import ModelLoadError, SpecError
from syntax.options import check_range
from trainer.batch import SyntaxBatch
from trainer.nn import bart as bart  # registers its model type
from trainer.nn import relative as relative  # likewise
from trainer.nn import transformer as transformer  # likewise
from trainer.nn.albert import NumberedAlbert
from trainer.nn.attention import EAGER, SDPA
from trainer.nn.deberta import RoutedDeberta
from trainer.options.data import DataOptions
from trainer.options.model import ModelOptions

if TYPE_CHECKING:
    from syntax.batches import SpecialTokens
    from trainer.models.config import SyntaxConfig

_RESOURCES: Final = Path(__file__).parents[1] / "resources"

BUNDLED: Final = {
    "parsebank-tiny": _RESOURCES / "tiny-encoder",
    "parsebank-micro": _RESOURCES / "micro-encoder",
    "parsebank-micro-causal": _RESOURCES / "micro-causal",
}
"""Encoders that come with the package: a configuration without weights."""

ATTENTION: Final = {"sdpa": SDPA, "eager": EAGER}
"""Our implementations, by transformers' name of what they extend."""

_YES: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
"""Values of a variable that mean yes, in any case, as in the service."""


def new_encoder(config: SyntaxConfig) -> PreTrainedModel:
    return new_stock(config.encoder_config(), config.attention)


def new_stock(config: PretrainedConfig, attention: str | None = None) -> PreTrainedModel:
    encoder: PreTrainedModel
    if (family := _own_family(config, attention)) is not None:
        encoder = family._from_config(config, attn_implementation=attention)
    else:
        encoder = AutoModel.from_config(config, **_how(config, attention))
    return encoder


def load_encoder(
    name: str,
    config: PretrainedConfig,
    attention: str | None = None,
    dtype: torch.dtype | str = torch.float32,
    *,
    cached: bool = False,
) -> PreTrainedModel:
    """A pretrained encoder without its pooler, from a folder or the model hub.

    ``attention`` is one of `ATTENTION`'s, taken where the family lets it; else transformers choose.
    Weights that are to be trained are float32, whatever the files hold: mixed precision keeps a
    copy of them, and heads are float32. ``dtype="auto"`` leaves them as they are. With ``cached``
    the hub is not asked: only its cache is read.
    """
    family = _own_family(config, attention)
    how = _how(config, attention) if family is None else {"attn_implementation": attention}
    try:
        encoder: PreTrainedModel = (family or AutoModel).from_pretrained(
            name, dtype=dtype, **_from_hub(cached), **how
        )
    except (OSError, ValueError) as error:
        raise _cannot_load(name, error) from error
    return encoder


def load_pooler(name: str, config: PretrainedConfig) -> nn.Linear:
    """The linear map of a pretrained encoder's own pooler, which goes before a tanh."""
    try:
        encoder, info = AutoModel.from_pretrained(
            name, dtype=torch.float32, output_loading_info=True, **_from_hub()
        )
    except (OSError, ValueError) as error:
        raise _cannot_load(name, error) from error
    dense = getattr(getattr(encoder, "pooler", None), "dense", None)
    if not isinstance(dense, nn.Linear) or any("pooler" in key for key in info["missing_keys"]):
        raise SpecError(
            f"{name}, of type {config.model_type!r}, has no pretrained pooler; set "
            "task.pooler=false"
        )
    return dense


def _from_hub(cached: bool = False) -> dict[str, Any]:
    """Leave to ask the hub for the model and, where PEFT is there, for an adapter."""
    offline = {"local_files_only": cached or is_offline()}
    return {**offline, "adapter_kwargs": offline}


def _own_family(config: PretrainedConfig, attention: str | None) -> type[PreTrainedModel] | None:
    """Our class of an encoder whose own does not hand all that our attention reads to its layers.

    The convolution of some DeBERTas reads neighbours whatever a tree says: these stay as they are.
    """
    if attention is None:
        return None
    if isinstance(config, AlbertConfig):
        return NumberedAlbert
    if isinstance(config, DebertaV2Config) and not getattr(config, "conv_kernel_size", 0):
        return RoutedDeberta
    return None


def _how(config: PretrainedConfig, attention: str | None) -> dict[str, Any]:
    """Arguments that the family of an encoder takes: no pooler, and our attention."""
    found: Any = MODEL_MAPPING[type(config)]
    family = found[0] if isinstance(found, tuple) else found
    wishes: dict[str, Any] = {}
    if attention is not None and family._supports_sdpa:
        wishes["attn_implementation"] = attention
    if "add_pooling_layer" in signature(family).parameters:
        wishes["add_pooling_layer"] = False
    return wishes


def load_encoder_config(options: ModelOptions, special: SpecialTokens) -> PretrainedConfig:
    """The encoder's configuration; a random encoder takes the tokenizer's vocabulary."""
    if (content := options.new_encoder()) is not None:
        sizes = {"vocab_size": special.vocab_size, "pad_token_id": special.pad_id}
        return AutoConfig.for_model(**{**content, **sizes})
    name = options.encoder
    if name in BUNDLED and options.weights == "pretrained":
        raise SpecError(f"{name} has no weights; set model.weights=random")
    config = read_encoder_config(name)
    if config.dtype in (torch.float16, torch.bfloat16):
        config.dtype = None  # What is built from it is trained.
    if options.weights == "random":
        config.vocab_size, config.pad_token_id = special.vocab_size, special.pad_id
    return config


def read_encoder_config(name: str, *, cached: bool = False) -> PretrainedConfig:
    """The configuration of a stock encoder as it is; ``cached`` as for `load_encoder`."""
    try:
        config: PretrainedConfig = AutoConfig.from_pretrained(
            BUNDLED.get(name, name), local_files_only=cached or is_offline()
        )
    except (OSError, ValueError) as error:
        raise _cannot_load(name, error) from error
    if type(config) not in MODEL_MAPPING or config.is_encoder_decoder:
        raise SpecError(
            f"{name} is of type {config.model_type!r}, which is no encoder by itself; give a model "
            "of one stack of layers, such as BERT or XLM-R"
        )
    return config


def is_offline() -> bool:
    """True where ``PARSEBANK_OFFLINE`` forbids the model hub: then only its cache is read."""
    return os.environ.get("PARSEBANK_OFFLINE", "").lower() in _YES


def run_encoder(encoder: PreTrainedModel, batch: SyntaxBatch, **options: Any) -> Any:
    """Run a stock encoder on a batch; ``last_hidden_state`` has the *shape* (B, L, D)."""
    pieces = (batch.input_ids_BL, batch.attention_mask_BL, batch.token_type_ids_BL)
    return run_pieces(encoder, *pieces, **options)


def run_pieces(
    encoder: PreTrainedModel,
    input_ids_BL: Tensor,
    attention_mask_BL: Tensor,
    token_type_ids_BL: Tensor,
    **options: Any,
) -> Any:
    """Run a stock encoder on arrays; types of segments reach only encoders that embed them."""
    if getattr(encoder.config, "type_vocab_size", 0):
        options["token_type_ids"] = token_type_ids_BL
    return encoder(input_ids=input_ids_BL, attention_mask=attention_mask_BL.long(), **options)


def chosen_layers(name: str, layers: Sequence[int] | None, count: int) -> list[int]:
    """The 0-based layers that the option ``name`` gives, in order; all where it gives none."""
    if layers is None:
        return list(range(count))
    for layer in layers:
        check_range(name, layer, 0, count - 1)
    return sorted(set(layers))


def layers_of(encoder: PreTrainedModel) -> list[nn.Module]:
    """The layers, first to last; one that has several places stands at each."""
    layers: Any = getattr(getattr(encoder, "encoder", None), "layer", None)
    if isinstance(encoder, NumberedAlbert | ModernBertModel):
        layers = encoder.layers
    elif not isinstance(layers, nn.ModuleList) or not hasattr(layers[0].attention, "self"):
        raise _other_layers(encoder)
    return list(layers)


def before_attention(
    encoder: PreTrainedModel,
    number: int,
    further: Callable[[Tensor, Mapping[str, Any]], Mapping[str, Any]],
) -> None:
    """Give the self-attention of a layer further keywords, from its input states and its own.

    ``further`` takes the states (B, L, D), after a norm that stands before the attention, and the
    keywords, among them those of `run_encoder`.
    """

    def hook(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if options.get("number", number) != number:
            return None
        return args, {**options, **further(args[0], options)}

    layer: Any = layers_of(encoder)[number]
    attention = layer.attn if isinstance(encoder, ModernBertModel) else layer.attention
    getattr(attention, "self", attention).register_forward_pre_hook(hook, with_kwargs=True)


def further_layer(encoder: PreTrainedModel) -> nn.Module:
    """A new layer of the encoder's kind, with the number behind its last.

    It takes states, a mask and `further_keywords`.
    """
    if isinstance(encoder, transformer.TransformerEncoder | NumberedAlbert):
        return encoder.further_layer()
    if isinstance(encoder, ModernBertModel):
        raise SpecError(
            "the encoder is of type 'modernbert', and a further layer of its kind would read "
            "states behind the encoder's last norm; take another encoder, such as BERT or "
            "DeBERTa-v3, for sgnet.v1 set model.layer=as_published, or set model.use_syntax=false"
        )
    layers = layers_of(encoder)
    kind: Callable[..., nn.Module] = type(layers[0])
    if "layer_idx" not in signature(kind).parameters:
        raise _other_layers(encoder)
    return kind(encoder.config, layer_idx=len(layers))


def further_attention(encoder: PreTrainedModel) -> nn.Module:
    """The attention of a further layer without the map behind it, whose outcomes come first."""
    if isinstance(encoder, NumberedAlbert):
        return encoder.further_attention()
    if isinstance(encoder, ModernBertModel):
        kinds: Any = encoder.config.layer_types
        everywhere = kinds.index("full_attention")
        attention: Any = ModernBertAttention(encoder.config, layer_idx=everywhere)
        attention.layer_idx, attention.Wo = len(encoder.layers), nn.Identity()
        return cast(nn.Module, attention)
    layer: Any = further_layer(encoder)
    return cast(nn.Module, layer.attention.self)


def further_keywords(encoder: PreTrainedModel, states_BLD: Tensor) -> dict[str, Any]:
    """Positions, where layers of the encoder's kind are told them."""
    if isinstance(encoder, RoutedDeberta):
        return encoder.positions(states_BLD)
    if isinstance(encoder, ModernBertModel):
        place_1L = torch.arange(states_BLD.shape[1], device=states_BLD.device)[None]
        turns = encoder.rotary_emb(states_BLD, place_1L, "full_attention")
        return {"position_embeddings": turns}
    return {}


def is_causal(encoder: PreTrainedModel) -> bool:
    """True of an encoder whose positions see only themselves and those before, as GPT-2."""
    return any(getattr(module, "is_causal", False) for module in encoder.modules())


def positions_of(encoder: PreTrainedModel) -> int | None:
    """Pieces that an encoder has positions for; None where any number will do."""
    count: int | None = getattr(encoder.config, "max_position_embeddings", None)
    for name, module in encoder.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa's positions start after the padding id, and so do those of its kin.
            first = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - first
    return count


def check_fits(encoder: PretrainedConfig, data: DataOptions, special: SpecialTokens) -> None:
    if special.vocab_size > encoder.vocab_size:
        raise SpecError(
            f"the tokenizer has {special.vocab_size} pieces and the encoder embeds "
            f"{encoder.vocab_size}; backfill with the encoder's own tokenizer"
        )
    with torch.device("meta"):
        positions = positions_of(AutoModel.from_config(encoder))
    if positions is not None and data.max_length > positions:
        raise SpecError(
            f"data.max_length is {data.max_length}, and the encoder has {positions} positions; "
            f"set data.max_length to {positions} at most"
        )


def _other_layers(encoder: PreTrainedModel) -> SpecError:
    return SpecError(
        f"the layers of {encoder.config.model_type!r} encoders are not built as BERT's are; take "
        "an encoder such as BERT, XLM-R or ELECTRA, or set model.use_syntax=false"
    )


def _cannot_load(name: str, error: Exception) -> ModelLoadError:
    first = str(error).strip().partition("\n")[0]
    return ModelLoadError(
        f"cannot load the encoder {name!r}: {first} Give a folder with config.json and weights, a "
        f"name on the model hub, or one of {', '.join(BUNDLED)}"
    )
