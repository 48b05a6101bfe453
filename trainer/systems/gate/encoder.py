"""GATE: a Transformer over the words of a frozen encoder, with attention divided by distance.

A word is its frozen state, or its vector in a file, and the embeddings of its tags, all mapped to
the width of the layers. Without syntax all heads are free: the paper's Transformer baseline. The
baselines CL_GCN and CL_RNN read the same words by graph convolutions, or LSTMs, without the map; a
graph convolution without syntax has no neighbours. CL_Trans_GCN is CL_GCN over vectors of words, or
of their translations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from syntax.errors import SpecError
from syntax.trees.ud import DEPREL, UPOS
from trainer.batch import EXTRA_TAGS, SyntaxBatch, tag_ids
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.context import BiLstm, sinusoids
from trainer.nn.encoder import Encoder
from trainer.nn.graph import GraphConvolutions
from trainer.options import RelationOptions
from trainer.systems.gate.attention import (
    DistanceLayer,
    RelativePositions,
    head_weights,
    sequence_positions,
    structure_positions,
)
from trainer.systems.gate.options import GateOptions
from trainer.systems.gate.translation import Translation
from trainer.tasks.mentions import MENTION_IDS, TAG_IDS

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class WordInput(nn.Module):
    """Maps frozen states and embeddings of tags to the width of the layers."""

    def __init__(self, config: SyntaxConfig) -> None:
        super().__init__()
        options = config.model_options()
        assert isinstance(options, GateOptions)
        self.options, task = options, _relation_options(config)
        size = options.tag_size
        self.upos = _embedding(len(UPOS) + EXTRA_TAGS, size) if options.use_upos else None
        self.deprel = _embedding(len(DEPREL) + EXTRA_TAGS, size) if options.use_deprel else None
        self.tags: nn.Embedding | None = None
        self.types = nn.ModuleDict()
        if options.use_tags and task is not None and task.tags:
            self.tag_column = task.tags
            self.tags = _embedding(len(config.classes[task.tags]) + TAG_IDS, size)
        if options.use_types and task is not None:
            for name in task.spans():
                names = config.classes.get(name, [])
                self.types[name] = _embedding(len(names) + MENTION_IDS, size)
        tables = sum((options.use_upos, options.use_deprel, options.use_tags, options.use_types))
        self.width = int(config.encoder_config().hidden_size) + tables * size
        self.linear: nn.Module = nn.Identity()
        if options.context == "attention":
            width, self.width = self.width, options.heads * options.head_size
            self.linear = nn.Linear(width, self.width)
        self.dropout = nn.Dropout(options.layer_dropout)
        self.vector_width = int(config.encoder_config().hidden_size)
        self.translation = Translation(self.width, options) if options.target else None

    def forward(self, batch: SyntaxBatch) -> Tensor:
        tags = self._tags(batch)
        own, *translations = self._states(batch).split(self.vector_width, -1)
        words = self._read(own, tags)
        if self.translation is None or not self.training:
            return words
        candidates = torch.stack([self._read(one, tags) for one in translations], 2)
        read: Tensor = self.translation(words, candidates, batch.attention_mask_BL)
        return read

    def _read(self, states_BWD: Tensor, tags: list[Tensor]) -> Tensor:
        words: Tensor = self.linear(self.dropout(torch.cat([states_BWD, *tags], -1)))
        return words

    def _tags(self, batch: SyntaxBatch) -> list[Tensor]:
        tags = []
        if self.upos is not None:
            tags.append(self.upos(tag_ids(batch, batch.upos_BL, len(UPOS))))
        if self.deprel is not None:
            tags.append(self.deprel(tag_ids(batch, batch.deprel_BL, len(DEPREL))))
        if self.tags is not None:
            tags.append(self.tags(batch.labels[self.tag_column]))
        if self.types:
            # A word in no mention, or in one of the two, has that one's type; outside are zeros.
            types = [table(batch.labels[name]) for name, table in self.types.items()]
            tags.append(torch.stack(types).sum(0))
        return tags

    def _states(self, batch: SyntaxBatch) -> Tensor:
        states_BWD = batch.extra("word_states").float()
        if not self.training or not self.options.word_dropout:
            return states_BWD
        kept_BW = torch.rand(states_BWD.shape[:2], device=states_BWD.device)
        return states_BWD * (kept_BW >= self.options.word_dropout)[..., None]


class GateEncoder(Encoder):
    """States of the words."""

    options: GateOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        self.input = WordInput(config)
        self.width, self.relative = self.input.width, None
        self.graph: GraphConvolutions | None = None
        self.lstm: BiLstm | None = None
        if options.context == "gcn":
            size = (self.width, options.context_width, options.layers)
            self.graph = GraphConvolutions(*size, options.layer_dropout, options.graph_bias)
        if options.context == "lstm":
            size = (self.width, options.context_width // 2, options.layers)
            self.lstm = BiLstm(*size, options.layer_dropout)
            self.dropout = nn.Dropout(options.layer_dropout)
        if options.context != "attention":
            self.width = options.context_width
            return
        self.layers = nn.ModuleList(
            DistanceLayer(
                self.width,
                options.heads,
                options.head_size,
                options.feed_forward,
                options.layer_dropout,
                layer_norm=options.layer_norm,
                feed_forward_dropout=options.feed_forward_dropout,
            )
            for _ in range(options.layers)
        )
        self.relative = _position_tables(options)

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:  # noqa: ARG002
        states_BWD = self.input(batch)
        if self.graph is not None:
            states_BWD = self.graph(states_BWD, self._edges(batch))
            return SyntaxEncoding(last_hidden_state=states_BWD)
        if self.lstm is not None:
            states_BWD = self.dropout(self.lstm(states_BWD, batch.attention_mask_BL))
            return SyntaxEncoding(last_hidden_state=states_BWD)
        if self.options.positions == "depth":
            states_BWD = states_BWD + depth_positions(batch, self.width)
        weights_BNWW = self._weights(batch)
        for layer, relative in zip(self.layers, self._relative(batch), strict=True):
            states_BWD = layer(states_BWD, weights_BNWW, relative)
        return SyntaxEncoding(last_hidden_state=states_BWD)

    def _weights(self, batch: SyntaxBatch) -> Tensor:
        options, distance_BWW = self.options, None
        if options.thresholds:
            distance_BWW = batch.extra(options.distance)
        return head_weights(
            distance_BWW,
            batch.attention_mask_BL,
            options.heads,
            options.thresholds,
            options.diagonal,
        )

    def _edges(self, batch: SyntaxBatch) -> Tensor:
        """True for a word and itself and, with syntax, its head and dependents. (B, W, W)."""
        real_BW = batch.attention_mask_BL
        if self.options.reads_graph:
            near_BWW = batch.extra(self.options.distance) <= 1
        else:
            near_BWW = torch.eye(real_BW.shape[1], dtype=torch.bool, device=real_BW.device)
        return near_BWW & real_BW[:, :, None] & real_BW[:, None, :]

    def _relative(self, batch: SyntaxBatch) -> list[tuple[Tensor, Tensor] | None]:
        if self.relative is None:  # none, or absolute ones
            return [None] * len(self.layers)
        options, shape = self.options, batch.input_ids_BL.shape
        if options.positions == "sequence":
            positions = sequence_positions(shape[1], batch.input_ids_BL.device)
        else:
            distance_BWW = batch.extra(options.distance)
            positions = structure_positions(
                distance_BWW, options.max_position, options.position_sign
            )
        positions_BWW = positions.expand(*shape, -1)
        if isinstance(self.relative, RelativePositions):
            return [self.relative(positions_BWW)] * len(self.layers)
        return [table(positions_BWW) for table in self.relative]


def depth_positions(batch: SyntaxBatch, width: int) -> Tensor:
    """Sinusoids of the words' depths: absolute structural positions. *Shape:* (B, W, width).

    Wang et al. (2019, https://aclanthology.org/D19-1145), section 3.1: a word's distance from the
    root, encoded as Vaswani et al. (2017) encode places in the text.
    """
    depth_BW = batch.depth_BL
    assert depth_BW is not None
    table = sinusoids(torch.iinfo(depth_BW.dtype).max + 1, width).to(depth_BW.device)
    return table[depth_BW.long()]


def _position_tables(options: GateOptions) -> RelativePositions | nn.ModuleList | None:
    """One table of relative positions for all layers; as released, one for each."""
    if options.positions in ("none", "depth"):
        return None
    size = (options.head_size, options.max_position)
    if options.position_tables == "as_published":
        return RelativePositions(*size)
    return nn.ModuleList(RelativePositions(*size) for _ in range(options.layers))


def _relation_options(config: SyntaxConfig) -> RelationOptions | None:
    model, task = config.model_options(), config.task_options()
    assert isinstance(model, GateOptions)
    found = task if isinstance(task, RelationOptions) else None
    if model.use_tags and (found is None or not found.tags):
        raise SpecError(
            f"model.use_tags reads the tags of relation.v1 (task.tags), and {task.name} has none; "
            "set model.use_tags=false"
        )
    if model.use_types and found is None:
        raise SpecError(
            f"model.use_types reads the mentions of relation.v1, and {task.name} has none; set "
            "model.use_types=false"
        )
    return found


def _embedding(ids: int, size: int) -> nn.Embedding:
    return nn.Embedding(ids, size, padding_idx=0)
