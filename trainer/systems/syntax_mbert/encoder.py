"""A stock encoder whose attention reads a dependency tree: Syntax-MBERT, for BERT and XLM-R.

Ahmad et al. 2021, "Syntax-augmented Multilingual BERT for Cross-lingual Transfer"
(https://aclanthology.org/2021.acl-long.350). A graph encoder over the tree gives each piece a
state g; g biases the attention of the first heads in chosen layers; probes on g may add
auxiliary losses. Paper and release differ in places: `trainer.switches.SYNTAX_MBERT`.
"""

from __future__ import annotations

from typing import Any, Final, cast

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import check_reads_syntax
from trainer.nn.selfcheck import check_reads_scores
from trainer.nn.stock import chosen_layers, new_encoder, run_encoder
from trainer.options import SyntaxBertOptions
from trainer.options.checks import check_range
from trainer.systems.syntax_mbert.bias import AttentionBias
from trainer.systems.syntax_mbert.gat import GraphEncoder
from trainer.systems.syntax_mbert.structure import StructureLosses

_EPSILON: Final = 1e-12
"""BERT's, of LayerNorm; for encoders that have none in their configuration."""


class SyntaxBertEncoder(nn.Module):
    """States of the pieces, with syntax in the attention.

    Args:
        config: What to build.
        pretrained: A pretrained encoder to take instead of a new one; it must read syntax
            (`trainer.nn.attention`).

    Raises:
        SpecError: The encoder's attention would ignore syntax, or has fewer heads or layers than
            the options name.
    """

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__()
        options, stock = config.model_options(), config.encoder_config()
        assert isinstance(options, SyntaxBertOptions)
        check_range("model.syntax_heads", options.syntax_heads, 1, stock.num_attention_heads)
        layers = chosen_layers(
            "model.syntax_layers", options.syntax_layers, stock.num_hidden_layers
        )
        self.width, self.options = int(stock.hidden_size), options
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.gat = self.bias = None
        if options.use_syntax:
            self.gat = graph_encoder(options, self.encoder)
            self.bias = _attention_bias(options, stock, layers)
        self.losses = StructureLosses(options)

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        """Encode a batch; ``options`` go to the encoder (such as ``output_attentions``)."""
        states_BLG = None
        if self.gat is not None and self.bias is not None:
            check_reads_syntax(self.encoder.config._attn_implementation)
            words_BLD = self.encoder.get_input_embeddings()(batch.input_ids_BL)
            states_BLG = self.gat(words_BLD, batch)
            options["syntax"] = self.bias(states_BLG)
        output = run_encoder(self.encoder, batch, **options)
        objectives = self.losses(states_BLG, batch)
        return SyntaxEncoding(
            last_hidden_state=output.last_hidden_state,
            objectives=objectives,
            auxiliary_loss=_weighted_sum(self.losses.weight, objectives),
            syntax_states=states_BLG,
            attentions=output.get("attentions"),
        )

    def check_attention(self) -> None:
        """See `ReachesIntoAttention`."""
        if self.bias is not None:
            check_reads_scores(self.encoder)


def _weighted_sum(weight: float, objectives: dict[str, Tensor]) -> Tensor | None:
    return weight * torch.stack(list(objectives.values())).sum() if objectives else None


def graph_encoder(options: SyntaxBertOptions, stock: PreTrainedModel) -> GraphEncoder:
    """A new graph encoder over the embeddings of a stock encoder."""
    words = cast(nn.Embedding, stock.get_input_embeddings())
    return GraphEncoder(
        words.embedding_dim,
        variant=options.gat,
        layers=options.gat_layers,
        heads=options.gat_heads,
        head_size=options.gat_head_size,
        dropout=options.gat_dropout,
        max_distance=options.max_distance,
        use_upos=options.use_upos,
        use_deprel=options.use_deprel,
        eps=getattr(stock.config, "layer_norm_eps", _EPSILON),
    )


def _attention_bias(
    options: SyntaxBertOptions, stock: PretrainedConfig, layers: list[int]
) -> AttentionBias:
    return AttentionBias(
        options.syntax_size,
        options.syntax_heads,
        stock.hidden_size // stock.num_attention_heads,
        layers,
        stock.num_hidden_layers,
        options.attention_bias,
    )
