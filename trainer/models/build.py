"""From a recipe's options to a new model that fits the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import cast

from syntax.errors import SpecError
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel, model_class
from trainer.models.parts import take_parts
from trainer.nn.stock import (
    ATTENTION,
    check_fits,
    load_encoder,
    load_encoder_config,
)
from trainer.nn.tokenizer import check_tokenizer
from trainer.objectives.base import Objective
from trainer.options import Recipe
from trainer.requirements import DataProfile
from trainer.tasks.base import Head


def build_model(recipe: Recipe, profile: DataProfile) -> SyntaxModel:
    """A new model for a recipe; its weights depend on torch's seed."""
    options = recipe.model
    data = [recipe.of_stream(name).data for name in recipe.stream_names]
    for one in data:
        options.check_data(one)
    stock, needs = load_encoder_config(options, profile.special_tokens), profile.requirements
    pretrained = options.weights == "pretrained" and not options.reads_words
    if pretrained:
        stock.vocab_size += recipe.task.added_tokens()
    if not options.reads_words:
        for one in data:
            check_fits(stock, one, profile.special_tokens)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=ATTENTION[options.attention],
        model=asdict(options),
        task=asdict(recipe.task),
        objectives=[asdict(one) for one in recipe.objectives],
        classes={name: list(names) for name, names in profile.classes.items()},
        requires=needs.to_json(),
        streams={
            stream.name: {
                "task": None if stream.task is None else asdict(stream.task),
                "objectives": [asdict(one) for one in stream.objectives],
                "classes": {
                    name: list(names) for name, names in profile.streams[stream.name].items()
                },
            }
            for stream in recipe.streams
        },
    )
    encoder = None
    if pretrained:
        if not options.any_tokenizer:
            check_tokenizer(options.encoder, needs.tokenizer, needs.tokenizer_name)
        encoder = load_encoder(options.encoder, stock, config.attention)
        if recipe.task.added_tokens():
            encoder.resize_token_embeddings(stock.vocab_size, mean_resizing=False)
    model = model_class(recipe.task.name)(config, encoder)
    take_parts(model.encoder, options, needs)
    model.encoder.prepare(recipe, profile)
    model.head.prepare(recipe, profile)
    for name, head in model.heads.items():
        cast(Head, head).prepare(recipe.of_stream(name), profile)
    _check_learns(model)
    if recipe.training.gradient_checkpointing:
        recompute_activations(model)
    return model


def _check_learns(model: SyntaxModel) -> None:
    built = {one.options.name for one in cast(Iterable[Objective], model.objectives)}
    for name, stream in model.config.streams.items():
        weighed = {one.name for one in model.config.objective_options(name) if one.weight}
        if stream["task"] is None and not weighed & built:
            raise SpecError(
                f"the stream {name} has neither a task nor an objective that the model learns; "
                f"set streams.{name}.task or streams.{name}.objectives, or leave the stream out"
            )


def recompute_activations(model: SyntaxModel) -> None:
    """Compute activations of the stock encoder again for the gradients: less memory, more time."""
    if not model.supports_gradient_checkpointing:
        raise SpecError(
            f"{model.config.model['name']} trains no layers of a stock encoder whose activations "
            "could be computed again; set training.gradient_checkpointing=false"
        )
    # transformers has renamed the method and warns of the earlier name.
    name = "activation_checkpointing_enable"
    enable = getattr(model, name, None) or model.gradient_checkpointing_enable
    enable({"use_reentrant": False})
