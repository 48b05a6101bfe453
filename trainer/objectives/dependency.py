"""A parser of words as an auxiliary loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding, layers_of
from trainer.nn.encoder import Encoder
from trainer.nn.parser import BiaffineParser, Words, parser_loss
from trainer.nn.parser_targets import TREES, WORDS, further_words
from trainer.objectives.base import needed_for_mix
from trainer.objectives.options import DependencyObjectiveOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class DependencyObjective(nn.Module):
    """`trainer.nn.parser.BiaffineParser` over the states, detached from the encoder where asked."""

    def __init__(
        self, options: DependencyObjectiveOptions, config: SyntaxConfig, encoder: Encoder
    ) -> None:
        super().__init__()
        self.options, self.needs = options, needed_for_mix(options.parser.states)
        stock = config.encoder_config()
        width = int(stock.hidden_size) if self.needs else encoder.width
        layers = config.state_count(options.parser.states)
        self.parser = BiaffineParser(options.parser, width, layers)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:
        """The loss, a scalar; 0 for a batch without trees to learn."""
        layers = layers_of(encoding, self.options.parser.states)
        if self.options.detached:
            layers = tuple(layer.detach() for layer in layers)
        words = Words(*(batch.extra(name) for name in WORDS))
        further = further_words(self.options.parser)
        words = words._replace(**{field: batch.extra(name) for field, name in further.items()})
        heads_BW, relations_BW, _ = (batch.extra(name) for name in TREES)
        states_BWD = self.parser.states(layers, words)
        arcs_BWH = self.parser(states_BWD, words.sentences)
        real_BW = words.sentences >= 0
        found = (states_BWD, arcs_BWH, heads_BW, relations_BW, real_BW)
        return parser_loss(self.parser, *found, variant=self.options.average)
