"""Loading a graph encoder that was trained on trees into the whole model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import torch
from torch import nn
from transformers import AutoModel

from syntax.errors import ModelLoadError, SpecError
from trainer.models.config import SyntaxConfig
from trainer.requirements import TREES, Requirements
from trainer.systems.syntax_mbert.gat import GraphEncoder
from trainer.systems.syntax_mbert.options import SyntaxBertOptions, SyntaxGatOptions

GRAPH_OPTIONS: Final = (
    *("gat", "gat_layers", "gat_heads", "gat_head_size"),
    *("max_distance", "use_upos", "use_deprel"),
)
"""Options in which the two models must agree."""


def load_graph_encoder(
    gat: GraphEncoder,
    words: nn.Embedding,
    options: SyntaxBertOptions,
    requirements: Requirements,
) -> None:
    """Put the weights of ``options.gat_from`` into a graph encoder; freeze them if asked to."""
    folder = Path(options.gat_from or "")
    if not folder.is_dir():
        raise ModelLoadError(
            f"model.gat_from is {folder}, and there is no such folder; give the output of a run of "
            "syntax_gat.v1"
        )
    place = folder / "model" if (folder / "model").is_dir() else folder
    try:
        model: Any = AutoModel.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot load the graph encoder in {place}: {error}") from error
    if not (
        isinstance(model.config, SyntaxConfig)
        and isinstance(theirs := model.config.model_options(), SyntaxGatOptions)
    ):
        raise SpecError(f"the model in {place} is no graph encoder by itself; train syntax_gat.v1")
    for name in GRAPH_OPTIONS:
        if getattr(options, name) != getattr(theirs, name):
            raise SpecError(
                f"the graph encoder in {place} was trained with model.{name}="
                f"{getattr(theirs, name)}, and the recipe says {getattr(options, name)}"
            )
    _check_trees(requirements, Requirements.from_json(model.config.requires), place)
    if not torch.equal(words.weight, model.encoder.embeddings.weight):
        raise SpecError(
            f"the graph encoder in {place} was trained over other word embeddings than those of "
            f"{options.encoder}; give both runs the same model.encoder"
        )
    gat.load_state_dict(model.encoder.gat.state_dict())
    gat.requires_grad_(not options.freeze_gat)


def _check_trees(ours: Requirements, theirs: Requirements, place: Path) -> None:
    if theirs.tokenizer != ours.tokenizer:
        raise SpecError(
            f"the graph encoder in {place} was trained on pieces of {theirs.tokenizer_name} "
            f"({theirs.tokenizer[:12]}), and the data are of {ours.tokenizer_name} "
            f"({ours.tokenizer[:12]}); backfill both with the same tokenizer"
        )
    for name in TREES:
        if theirs.features.get(name) != ours.features.get(name):
            raise SpecError(
                f"the graph encoder in {place} was trained on trees with data.{name} "
                f"{theirs.features.get(name)!r}, and the recipe has {ours.features.get(name)!r}; "
                "set both alike"
            )
