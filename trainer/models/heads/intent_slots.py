"""One class for an utterance, and one for each of its tokens."""

from __future__ import annotations

from torch import nn
from torch.nn import functional as F

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.heads.sequence_classification import NO_LABEL, ClassifierOfFirst
from trainer.models.heads.token_classification import piece_loss
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.options import IntentSlotsOptions


class IntentSlotsHead(nn.Module):
    """The classifier of [CLS] beside a linear map at every position (Ahmad et al. 2021, section 4).

    Args:
        config: Dropout, the two label columns and their classes.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, IntentSlotsOptions)
        self.options, dropout = options, config.model_options().dropout
        self.intent = ClassifierOfFirst(width, len(config.classes[options.intent]), dropout)
        self.dropout = nn.Dropout(dropout)
        self.slots = nn.Linear(width, len(config.classes[options.slots]))

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits by label column, *shapes* (B, intents) and (B, L, slots), and the joint loss."""
        assert encoding.last_hidden_state is not None
        intent, slots = self.options.intent, self.options.slots
        intent_BC = self.intent(encoding.last_hidden_state)
        slots_BLC = self.slots(self.dropout(encoding.last_hidden_state)).float()
        logits = {intent: intent_BC, slots: slots_BLC}
        slot_loss = piece_loss(slots_BLC, batch, slots)
        if intent not in batch.labels or slot_loss is None:
            return HeadOutput(logits, None)
        intent_loss = F.cross_entropy(intent_BC, batch.labels[intent], ignore_index=NO_LABEL)
        return HeadOutput(logits, intent_loss + self.options.slot_weight * slot_loss)
