"""UD-PrLM: an encoder, a parser of its pieces, and a layer that reads the parser's trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.attention import EAGER
from trainer.nn.earlier import check_same_tokenizer, run_weights
from trainer.nn.encoder import Encoder
from trainer.nn.piece_parser import PieceParser
from trainer.nn.stock import further_keywords, further_layer, new_encoder, run_encoder
from trainer.systems.udprlm.options import UdPrlmOptions
from trainer.systems.udprlm.usi import SyntaxIntegration

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class UdPrlmEncoder(Encoder):
    """States h_L of an encoder; with USI, those of one more layer, h_(L+1).

    A batch of trees is asked for ``tree_scores``: it ends at h_L and the parser.
    """

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    options: UdPrlmOptions

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        options = self.options
        self.labels = options.labels if options.use_syntax else ()
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.width = int(self.encoder.config.hidden_size)
        self.parser = self.usi = self.layer = None
        if not options.use_syntax:
            return
        if not options.labels:
            raise SpecError("model.labels is empty; name what the parser calls relations")
        # Only with a parser, so each encoder has its own.
        self.gives = self.gives | {"tree_scores"}  # type: ignore[misc]
        self.parser = PieceParser(
            self.width,
            len(options.labels),
            arc=options.arc,
            relation=options.relation,
            dropout=options.parser_dropout,
            activation=options.activation,
            mlp_init=options.mlp_init,
        )
        if options.integrates:
            stock = self.encoder.config
            dropout = float(getattr(stock, "hidden_dropout_prob", options.layer_dropout))
            epsilon = float(getattr(stock, "layer_norm_eps", 1e-12))
            self.usi = SyntaxIntegration(options, self.width, len(options.labels), dropout, epsilon)
            self.layer = further_layer(self.encoder)

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        of_trees = options.pop("output_tree_scores", False)
        output = run_encoder(self.encoder, batch, **options)
        states_BLD, hidden = output.last_hidden_state, output.get("hidden_states")
        scores = None
        if self.parser is not None and (of_trees or self.usi is not None):
            scores = self.parser(states_BLD, batch.attention_mask_BL)
        if self.usi is not None and self.layer is not None and not of_trees:
            integrated_BLD = self.usi(states_BLD, scores)
            mask = self._attention_mask(batch, integrated_BLD)
            keywords = further_keywords(self.encoder, integrated_BLD)
            states_BLD = self.layer(integrated_BLD, mask, **keywords)
            hidden = None if hidden is None else (*hidden, states_BLD)
        return SyntaxEncoding(
            last_hidden_state=states_BLD,
            hidden_states=hidden,
            attentions=output.get("attentions"),
            tree_scores=scores,
        )

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:
        options = recipe.model
        if options.starts_from is None:
            return
        if not options.any_tokenizer:
            check_same_tokenizer(options.starts_from, profile.requirements)
        self._take(run_weights(options.starts_from, "encoder"))

    def _take(self, weights: dict[str, Tensor]) -> None:
        """Load weights of another encoder; either may have parts that the other lacks."""
        own = self.state_dict()
        missing = [name for name in own if name not in weights]
        other = [name for name in own if name in weights and own[name].shape != weights[name].shape]
        parts = {name.partition(".")[0] for name in weights}
        wrong = [name for name in missing if name.partition(".")[0] in parts] + other
        if wrong or "encoder" not in parts:
            raise SpecError(
                f"the weights to start from are those of another model: {', '.join(wrong[:3])} "
                "differ; set the options of the model as in that run"
            )
        self.load_state_dict({name: weights[name] for name in own if name in weights}, strict=False)

    def _attention_mask(self, batch: SyntaxBatch, states_BLD: Tensor) -> Tensor:
        L = batch.input_ids_BL.shape[1]
        mask_B1LL = batch.attention_mask_BL[:, None, None, :].expand(-1, 1, L, L)
        if self.encoder.config._attn_implementation != EAGER:
            return mask_B1LL
        low = torch.finfo(states_BLD.dtype).min
        return torch.zeros_like(mask_B1LL, dtype=states_BLD.dtype).masked_fill(~mask_B1LL, low)
