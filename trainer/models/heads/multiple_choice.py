"""Which of several sequences of an example is right."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.heads.sequence_classification import NO_LABEL, ClassifierOfFirst
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import MultipleChoiceOptions


class MultipleChoiceHead(nn.Module):
    """A score for each sequence, a softmax over those of an example (SG-Net, section 4.2).

    Args:
        config: Dropout, label column and its classes.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, MultipleChoiceOptions)
        self.label, self.choices = options.label, len(config.classes[options.label])
        self.score = ClassifierOfFirst(width, 1, config.model_options().dropout)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shape* (examples, choices), and the mean cross-entropy."""
        assert encoding.last_hidden_state is not None
        scores_B = self.score(encoding.last_hidden_state).squeeze(-1)
        logits_EC = by_example(scores_B, batch, self.choices)
        gold_B = batch.labels.get(self.label)
        if gold_B is None:
            return HeadOutput({self.label: logits_EC}, None)
        gold_E = gold_B[batch.extra("choice_index") == 0]
        return HeadOutput(
            {self.label: logits_EC}, F.cross_entropy(logits_EC, gold_E, ignore_index=NO_LABEL)
        )


def by_example(scores_B: Tensor, batch: SyntaxBatch, choices: int) -> Tensor:
    """The scores of each example's sequences in a row. *Shape:* (examples, choices)."""
    choice_B = batch.extra("choice_index").long()
    examples = int(scores_B.shape[0]) // choices
    logits_EC = scores_B.new_empty(examples, choices)
    return logits_EC.index_put((batch.extra("example_index").long(), choice_B), scores_B)
