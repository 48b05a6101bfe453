"""A system's own parts, such as gates, in a file beside the weights of an exported encoder."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from syntax.errors import ModelLoadError, SpecError
from syntax.strict_json import parse_json
from trainer.models.config import SyntaxConfig
from trainer.nn.encoder import Encoder
from trainer.options import ModelOptions
from trainer.requirements import TREES, Requirements

PARTS: Final = "parts.safetensors"

_LOG: Final = logging.getLogger(__name__)


def own_parts(encoder: Encoder) -> dict[str, Tensor]:
    stock = set() if encoder.stock is None else {id(one) for one in encoder.stock.parameters()}
    return {name: one for name, one in encoder.named_parameters() if id(one) not in stock}


def save_parts(encoder: Encoder, config: SyntaxConfig, folder: Path) -> None:
    parts = {name: one.detach().contiguous() for name, one in own_parts(encoder).items()}
    if parts:
        features = config.requires["features"]
        metadata = {"model": config.model, "trees": {name: features[name] for name in TREES}}
        told = {name: json.dumps(content) for name, content in metadata.items()}
        save_file(parts, folder / PARTS, metadata=told)


def take_parts(encoder: Encoder, options: ModelOptions, needs: Requirements) -> None:
    """Give a new encoder the parts beside its weights; log a warning for another system's.

    Trees of another form are told, too: parts may well learn to read them.
    """
    path = Path(options.encoder) / PARTS
    if options.weights != "pretrained" or not path.is_file():
        return
    model, trees, parts = _read(path)
    if model["name"] != options.name or not options.use_syntax:
        _LOG.warning(
            "%s also has parts that %s learned, and they are left behind: set model.name=%s and "
            "model.use_syntax=true to take them",
            *(path.parent, model["name"], model["name"]),
        )
        return
    own = parse_json(json.dumps(asdict(options)))
    for name in options.learned_with:
        if model[name] != own[name]:
            raise SpecError(
                f"the parts in {path} were trained with model.{name}={json.dumps(model[name])}, "
                f"and the recipe says {json.dumps(own[name])}; set both alike, or remove the file "
                "to begin with new parts"
            )
    places = own_parts(encoder)
    ours, theirs = ({name: tuple(one.shape) for name, one in x.items()} for x in (places, parts))
    if ours != theirs:
        differing = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        raise SpecError(
            f"the parts in {path} are of another size or number, beginning with {differing[0]}: "
            f"{theirs.get(differing[0])} there and {ours.get(differing[0])} here; set the options "
            "of the model as they were in training"
        )
    for name in TREES:
        if trees[name] != needs.features[name]:
            _LOG.warning(
                "the parts in %s learned on trees with data.%s %r, and the recipe has %r",
                *(path, name, trees[name], needs.features[name]),
            )
    with torch.no_grad():
        for name, one in places.items():
            one.copy_(parts[name])


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """The options of the model, the form of its trees, and the parts."""
    try:
        with safe_open(path, "pt") as file:
            model, trees = (parse_json(file.metadata()[name]) for name in ("model", "trees"))
            return model, trees, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}; export the run again") from error
