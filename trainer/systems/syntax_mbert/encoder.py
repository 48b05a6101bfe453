"""A stock encoder whose attention reads a dependency tree: Syntax-MBERT, for BERT and XLM-R.

A graph encoder over the tree gives each piece a state g, and g biases the attention of the first
heads in chosen layers. The objectives ``tree_distance.v1`` and ``tree_depth.v1`` probe g
(``states=syntax``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from torch import Tensor, nn
from transformers import PreTrainedModel

from syntax.options import check_range
from syntax.variant import Variant
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import EncoderSyntax, LayerSyntax, check_reads_syntax
from trainer.nn.encoder import Encoder
from trainer.nn.selfcheck import check_reads_scores
from trainer.nn.stock import chosen_layers, new_encoder, run_encoder
from trainer.systems.syntax_mbert.gat import graph_encoder
from trainer.systems.syntax_mbert.loading import load_graph_encoder
from trainer.systems.syntax_mbert.options import SyntaxBertOptions, SyntaxGatOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class AttentionBias(nn.Module):
    """From syntax states to biases of each layer's attention.

    Two linear maps for the first heads of chosen layers: of queries or values, and of keys.
    Published (Ahmad et al. 2021, section 2.3): ``Attention(Q + g W_Q, K + g W_K, V)``. Released:
    ``Attention(Q, K + g W_K + b_K, V + g W_V + b_V)``.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        head_size: int,
        layers: Sequence[int],
        encoder_layers: int,
        variant: Variant = "as_published",
    ) -> None:
        super().__init__()
        self.heads, self.encoder_layers, self.variant = heads, encoder_layers, variant
        constant = variant == "as_released"
        names = [str(layer) for layer in sorted(set(layers))]
        self.key = nn.ModuleDict(
            {name: nn.Linear(width, heads * head_size, bias=constant) for name in names}
        )
        self.other = nn.ModuleDict(
            {name: nn.Linear(width, heads * head_size, bias=constant) for name in names}
        )

    def forward(self, states_BLG: Tensor) -> EncoderSyntax:
        return [self._layer(str(layer), states_BLG) for layer in range(self.encoder_layers)]

    def _layer(self, name: str, states_BLG: Tensor) -> LayerSyntax | None:
        if name not in self.key:
            return None
        key_BKLD = self._split(self.key[name](states_BLG))
        other_BKLD = self._split(self.other[name](states_BLG))
        if self.variant == "as_released":
            return LayerSyntax(key_BKLD=key_BKLD, value_BKLD=other_BKLD)
        return LayerSyntax(key_BKLD=key_BKLD, query_BKLD=other_BKLD)

    def _split(self, states: Tensor) -> Tensor:
        B, L, _ = states.shape
        return states.view(B, L, self.heads, -1).transpose(1, 2)


class SyntaxBertEncoder(Encoder):
    """States of the pieces, with syntax in the attention."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    options: SyntaxBertOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options, stock = self.options, config.encoder_config()
        check_range("model.syntax_heads", options.syntax_heads, 1, stock.num_attention_heads)
        layers = chosen_layers(
            "model.syntax_layers", options.syntax_layers, stock.num_hidden_layers
        )
        self.width = int(stock.hidden_size)
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.gat = self.bias = None
        if options.use_syntax:
            self.gat = graph_encoder(options, self.encoder)
            self.syntax_width = options.syntax_size
            self.bias = AttentionBias(
                options.syntax_size,
                options.syntax_heads,
                stock.hidden_size // stock.num_attention_heads,
                layers,
                stock.num_hidden_layers,
                options.attention_bias,
            )

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        states_BLG = None
        if self.gat is not None and self.bias is not None:
            check_reads_syntax(self.encoder.config._attn_implementation)
            words_BLD = self.encoder.get_input_embeddings()(batch.input_ids_BL)
            states_BLG = self.gat(words_BLD, batch)
            options["syntax"] = self.bias(states_BLG)
        output = run_encoder(self.encoder, batch, **options)
        return SyntaxEncoding(
            last_hidden_state=output.last_hidden_state,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
            syntax_states=states_BLG,
        )

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:  # noqa: ARG002
        self.check_attention()
        if self.gat is not None and self.options.gat_from is not None:
            words = cast(nn.Embedding, self.encoder.get_input_embeddings())
            load_graph_encoder(self.gat, words, self.options, profile.requirements)

    def check_attention(self) -> None:
        if self.bias is not None:
            check_reads_scores(self.encoder)


class SyntaxGatEncoder(Encoder):
    """Word embeddings of a stock encoder, which stay as they are, and the graph encoder.

    Ahmad et al. 2021, section 2.4: it is trained on the trees of Universal Dependencies with the
    distance and depth losses alone, then loaded into the whole model (`loading`).
    """

    options: SyntaxGatOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        stock = pretrained if pretrained is not None else new_encoder(config)
        self.embeddings = cast(nn.Embedding, stock.get_input_embeddings()).requires_grad_(False)
        self.gat = graph_encoder(options, stock)
        self.width = self.syntax_width = options.syntax_size

    def forward(self, batch: SyntaxBatch, **_options: Any) -> SyntaxEncoding:
        states_BLG = self.gat(self.embeddings(batch.input_ids_BL), batch)
        return SyntaxEncoding(last_hidden_state=states_BLG, syntax_states=states_BLG)
