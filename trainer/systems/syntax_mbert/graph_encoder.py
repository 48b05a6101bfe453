"""The graph encoder of Syntax-MBERT by itself, to be trained on trees before a task.

Ahmad et al. 2021, section 3.3: pretrained on the trees of Universal Dependencies with the distance
and depth losses alone, then loaded into the whole model, and left as it is or trained on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import torch
from torch import nn
from transformers import PreTrainedModel

from syntax.errors import ModelLoadError, SpecError
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.stock import new_encoder
from trainer.options import SyntaxBertOptions
from trainer.options.models import SyntaxGatOptions
from trainer.requirements import Requirements
from trainer.systems.syntax_mbert.encoder import SyntaxBertEncoder, graph_encoder
from trainer.systems.syntax_mbert.structure import StructureLosses

GRAPH_OPTIONS = (
    *("gat", "gat_layers", "gat_heads", "gat_head_size"),
    *("max_distance", "use_upos", "use_deprel"),
)
"""What a pretrained graph encoder and the model that loads it must agree on."""

TREES = ("policy", "joint_root", "separator_edge")
"""Likewise: how words, sentences and special tokens hang in the trees that it reads."""


class SyntaxGatEncoder(nn.Module):
    """Word embeddings of a stock encoder, kept as they are; the graph encoder; its losses.

    Args:
        config: What to build.
        pretrained: A pretrained encoder to take the embeddings of instead of a new one.
    """

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__()
        options = config.model_options()
        assert isinstance(options, SyntaxGatOptions)
        stock = pretrained if pretrained is not None else new_encoder(config)
        self.embeddings = cast(nn.Embedding, stock.get_input_embeddings()).requires_grad_(False)
        self.gat = graph_encoder(options, stock)
        self.losses, self.options = StructureLosses(options), options
        self.width = options.syntax_size

    def forward(self, batch: SyntaxBatch, **_options: Any) -> SyntaxEncoding:
        """States of the graph encoder, and its losses."""
        states_BLG = self.gat(self.embeddings(batch.input_ids_BL), batch)
        return SyntaxEncoding(
            last_hidden_state=states_BLG,
            objectives=self.losses(states_BLG, batch),
            syntax_states=states_BLG,
        )


def load_graph_encoder(
    encoder: SyntaxBertEncoder, options: SyntaxBertOptions, requirements: Requirements
) -> None:
    """Put the weights of ``options.gat_from`` into an encoder, and freeze them if it is asked.

    Args:
        encoder: Whose graph encoder gets them.
        options: Say whence.
        requirements: Of the model that the encoder is part of.

    Raises:
        ModelLoadError: The folder holds no model.
        SpecError: The model there has another graph encoder, or its own read other trees, pieces
            or embeddings.
    """
    from trainer.models.model import SyntaxModel

    folder = Path(options.gat_from or "")
    if not folder.is_dir():
        raise ModelLoadError(
            f"model.gat_from is {folder}, and there is no such folder; give the output of a run of "
            "syntax_gat.v1"
        )
    place = folder / "model" if (folder / "model").is_dir() else folder
    try:
        model = SyntaxModel.from_pretrained(place)
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot load the graph encoder in {place}: {error}") from error
    loaded = model.encoder
    if not isinstance(loaded, SyntaxGatEncoder):
        raise SpecError(f"the model in {place} is no graph encoder by itself; train syntax_gat.v1")
    _check_same(options, loaded.options, place)
    _check_trees(requirements, Requirements.from_json(model.config.requires), place)
    words = cast(nn.Embedding, encoder.encoder.get_input_embeddings())
    if not torch.equal(words.weight, loaded.embeddings.weight):
        raise SpecError(
            f"the graph encoder in {place} was trained over other word embeddings than those of "
            f"{options.encoder}; give both runs the same model.encoder"
        )
    assert encoder.gat is not None
    encoder.gat.load_state_dict(loaded.gat.state_dict())
    encoder.gat.requires_grad_(not options.freeze_gat)


def _check_same(ours: SyntaxBertOptions, theirs: SyntaxBertOptions, place: Path) -> None:
    for name in GRAPH_OPTIONS:
        if getattr(ours, name) != getattr(theirs, name):
            raise SpecError(
                f"the graph encoder in {place} was trained with model.{name}="
                f"{getattr(theirs, name)}, and the recipe says {getattr(ours, name)}"
            )


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
