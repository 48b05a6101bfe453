"""From a recipe's options to a new model that fits the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, cast

from trainer.models.config import SyntaxConfig
from trainer.models.encoders import ReachesIntoAttention, SlaEncoder, SyntaxBertEncoder
from trainer.models.model import SyntaxModel, model_class
from trainer.nn.stock import (
    ATTENTION,
    check_fits,
    load_encoder,
    load_encoder_config,
)
from trainer.nn.tokenizer import check_tokenizer, pieces_of
from trainer.options import (
    FrozenOptions,
    Recipe,
    SyntaxBertOptions,
)
from trainer.requirements import Requirements
from trainer.systems.syntax_mbert.graph_encoder import load_graph_encoder

if TYPE_CHECKING:
    from syntax.batches import SpecialTokens


@dataclass(frozen=True, slots=True)
class DataProfile:
    """What the data asks of a model.

    Attributes:
        classes: Names of the classes of each label column that has some, in id order.
        special_tokens: Of the tokenizer.
        requirements: What the model is to ask for from now on.
        streams: As ``classes``, for each further stream of the run by name.
    """

    classes: Mapping[str, tuple[str, ...]]
    special_tokens: SpecialTokens
    requirements: Requirements
    streams: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)


def build_model(recipe: Recipe, profile: DataProfile) -> SyntaxModel:
    """A new model for a recipe; its weights depend on torch's seed.

    Raises:
        UnknownNameError: No such model.
        ModelLoadError: The encoder cannot be loaded.
        SpecError: The encoder does not fit the data, or reads another tokenizer's pieces; the
            options do not fit the encoder, or its attention does not do what syntax tells it.
    """
    options = recipe.model
    options.check_data(recipe.data)
    stock, needs = load_encoder_config(options, profile.special_tokens), profile.requirements
    frozen = isinstance(options, FrozenOptions)
    if not frozen:  # its encoder has read the data already, in windows
        check_fits(stock, recipe.data, profile.special_tokens)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=ATTENTION[options.attention],
        model=asdict(options),
        task=asdict(recipe.task),
        classes={name: list(names) for name, names in profile.classes.items()},
        requires=needs.to_json(),
        streams={
            stream.name: {
                "task": None if stream.task is None else asdict(stream.task),
                "classes": {
                    name: list(names) for name, names in profile.streams[stream.name].items()
                },
            }
            for stream in recipe.streams
        },
    )
    pretrained = options.weights == "pretrained" and not frozen
    encoder = None
    if pretrained:
        if not options.any_tokenizer:
            check_tokenizer(options.encoder, needs.tokenizer, needs.tokenizer_name)
        encoder = load_encoder(options.encoder, stock, config.attention)
    model = model_class(recipe.task.name)(config, encoder)
    if isinstance(model.encoder, ReachesIntoAttention):
        model.encoder.check_attention()
    if isinstance(model.encoder, SlaEncoder) and model.encoder.punctuation_V is not None:
        places = (options.encoder, needs.tokenizer_name)
        model.encoder.mark_punctuation(pieces_of(needs.tokenizer, places))
    if hasattr(model.head, "prepare"):
        model.head.prepare(recipe, profile)
    if isinstance(options, SyntaxBertOptions) and options.gat_from is not None:
        graph = cast(SyntaxBertEncoder, model.encoder)
        load_graph_encoder(graph, options, needs)
    return model
