"""Whole models: an encoder and a task's head, saved and loaded as transformers does.

The classes differ in name only, so that each is found through the auto class of its task.
"""

from __future__ import annotations

import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.encoders import ENCODERS
from trainer.models.outputs import SyntaxOutput
from trainer.tasks import TASKS


class SyntaxModel(PreTrainedModel):
    """An encoder with the head of a task; a batch in, predictions and losses out.

    Args:
        config: What to build.
        pretrained: A stock encoder to take instead of a new one.

    Raises:
        SpecError: The options do not fit the stock encoder.
    """

    config_class = SyntaxConfig
    base_model_prefix = "encoder"
    main_input_name = "batch"
    _supports_sdpa = True

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.encoder = ENCODERS[config.model["name"]](config, pretrained)
        self.head = TASKS[config.task["name"]].head(config, self.encoder.width)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, batch: SyntaxBatch) -> SyntaxOutput:
        """Predictions, and the losses when the batch carries the task's targets."""
        encoding = self.encoder(batch)
        logits, task_loss = self.head(encoding, batch)
        loss = task_loss
        if self.training and loss is not None and encoding.auxiliary_loss is not None:
            loss = loss + encoding.auxiliary_loss
        return SyntaxOutput(loss, task_loss, encoding.objectives, logits)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if getattr(module, "own_initial_weights", False):
            module.reset_parameters()  # type: ignore[operator]
        else:
            super()._init_weights(module)  # type: ignore[no-untyped-call]


class SyntaxForQuestionAnswering(SyntaxModel):
    """A model of the task ``extractive_qa.v1``."""


class SyntaxForMultipleChoice(SyntaxModel):
    """A model of the task ``multiple_choice.v1``."""


class SyntaxForSequenceClassification(SyntaxModel):
    """A model of the task ``sequence_classification.v1``."""


class SyntaxForTokenClassification(SyntaxModel):
    """A model of the task ``token_classification.v1``."""


AutoConfig.register(SyntaxConfig.model_type, SyntaxConfig)
AutoModel.register(SyntaxConfig, SyntaxModel)

_CLASSES: dict[str, type[SyntaxModel]] = {
    "AutoModelForMultipleChoice": SyntaxForMultipleChoice,
    "AutoModelForQuestionAnswering": SyntaxForQuestionAnswering,
    "AutoModelForSequenceClassification": SyntaxForSequenceClassification,
    "AutoModelForTokenClassification": SyntaxForTokenClassification,
}
"""The class that each auto class of transformers loads."""

for auto_class, own_class in _CLASSES.items():
    getattr(transformers, auto_class).register(SyntaxConfig, own_class)


def model_class(task: str) -> type[SyntaxModel]:
    """The class of a task's models: the one that the task's auto class loads."""
    auto_class = TASKS[task].auto_class
    return SyntaxModel if auto_class is None else _CLASSES[auto_class]
