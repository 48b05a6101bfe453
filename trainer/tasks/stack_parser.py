"""``stack_parser.v1``: the stack-pointer decoder of the order-free parser.

Ma et al. (2018, https://aclanthology.org/P18-1130) as Ahmad et al. (2019) configure it: children
from left to right, with the state of the node's head.

Letters in shapes: ``B`` sequences, ``W`` words, ``S`` steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from syntax.batches import IGNORE
from syntax.examples import LabelSpec
from syntax.trees.pointers import pointer_steps
from trainer.batch import SyntaxBatch
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.graph_parser import SYMBOLS
from trainer.nn.stack_parser import StackParser, Steps
from trainer.tasks.base import Arrays
from trainer.tasks.graph_parser import (
    UniversalParserHead,
    UniversalParsing,
)
from trainer.tasks.options import StackParserOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.nn.encoder import Encoder
    from trainer.options import Recipe
    from trainer.requirements import DataProfile

STEPS: Final = ("stack_tops", "stack_above", "stack_targets", "stack_relations")


class StackParsing(UniversalParsing):
    """Heads and relations of words, and the steps that build them."""

    def __init__(self, options: StackParserOptions, labels: Mapping[str, LabelSpec]) -> None:
        super().__init__(options, labels)

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The words, what their trees teach, and `STEPS`, int64 (B, S).

        -100 behind the last step, and at all steps of a sequence of which no tree is learned.
        """
        found = super().targets(arrays)
        heads, relations = found["parser_heads"], found["parser_relations"]
        count = 2 * heads.shape[1] + 1
        steps = {name: np.zeros((len(heads), count), np.int64) for name in STEPS}
        steps["stack_targets"][:] = steps["stack_relations"][:] = IGNORE
        for row, layout_words in enumerate(arrays["word_layout"].counts.tolist()):
            own = np.asarray(heads[row, :layout_words], np.int64)
            if (own == IGNORE).any():
                continue
            tops, targets = pointer_steps(own)
            here, above = slice(0, len(tops)), np.append(0, own)
            types = np.asarray(relations[row, :layout_words], np.int64)
            types = np.append(0, np.where(types == IGNORE, IGNORE, types + SYMBOLS))
            steps["stack_tops"][row, here] = tops
            steps["stack_above"][row, here] = above[tops]
            steps["stack_targets"][row, here] = targets
            steps["stack_relations"][row, here] = np.where(targets == tops, 0, types[targets])
        return {**found, **steps}


class StackParserHead(UniversalParserHead):
    """The stack-pointer decoder; ``beam`` is the number of hypotheses that are kept."""

    options: StackParserOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.beam = options.beam
        self.parser = StackParser(
            width,
            options.arc,
            options.relation,
            len(options.relations),
            options.decoder_input,
            options.decoder_width,
            options.parser_dropout,
            options.input_dropout,
            options.state_dropout,
        )

    def connect(self, encoder: Encoder) -> None:
        """Begin with the last memory of an LSTM encoder instead of a mean of the states."""
        if "last_memory" in encoder.gives:
            self.needs, self.parser.weigh = frozenset({"last_memory"}), None

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:  # noqa: ARG002
        """Keep as many hypotheses as on dev, for this is the model of a training run."""
        self.beam = self.options.dev_beam

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """The loss, and in evaluation ``heads``, 0 for ROOT, and ``relations``, int64 (B, W)."""
        states_BHD = self.states(encoding, batch).float()
        real_BW = batch.labels["parser_sentences"] >= 0
        real_BH = torch.cat([torch.ones_like(real_BW[:, :1]), real_BW], dim=1)
        steps = Steps(*(batch.labels[name] for name in STEPS))
        if encoding.last_memory is None:
            summary_BD = self.parser.mean(states_BHD, real_BH)
        else:
            summary_BD = encoding.last_memory.float()
        loss = self.parser.loss(states_BHD, summary_BD, real_BH, steps)
        if self.training:
            return HeadOutput({}, loss)
        heads_BW, relations_BW = (torch.zeros_like(real_BW, dtype=torch.int64) for _ in range(2))
        for row, count in enumerate(real_BW.sum(1).tolist()):
            own = (states_BHD[row, : count + 1], summary_BD[row])
            heads, relations = self.parser.parse(
                *own, self.beam, self.options.ordered, self.options.search
            )
            heads_BW[row, :count] = heads_BW.new_tensor(heads)
            relations_BW[row, :count] = relations_BW.new_tensor(relations)
        return HeadOutput({"heads": heads_BW, "relations": relations_BW}, loss)
