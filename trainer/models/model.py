"""Whole models: an encoder and a task's head, saved and loaded as transformers does.

The classes differ in name only, so that each is found through the auto class of its task.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.encoders import ENCODERS
from trainer.models.heads import HEADS
from trainer.models.outputs import SyntaxOutput
from trainer.options import MAIN


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
        self.head = HEADS[config.task["name"]](config, self.encoder.width)
        self.heads = nn.ModuleDict()  # of further streams that have a task
        for name, stream in config.streams.items():
            if stream["task"] is not None:
                own = config.of_stream(name)
                self.heads[name] = HEADS[own.task["name"]](own, self.encoder.width)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(self, batch: SyntaxBatch) -> SyntaxOutput:
        """Predictions, and the losses when the batch carries the targets of its stream's task."""
        encoding = self.encoder(batch)
        heads = {MAIN: self.head, **dict(self.heads.items())}
        head = heads.get(batch.stream)
        logits, task_loss = ({}, None) if head is None else head(encoding, batch)
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
AutoModelForQuestionAnswering.register(SyntaxConfig, SyntaxForQuestionAnswering)
AutoModelForMultipleChoice.register(SyntaxConfig, SyntaxForMultipleChoice)
AutoModelForSequenceClassification.register(SyntaxConfig, SyntaxForSequenceClassification)
AutoModelForTokenClassification.register(SyntaxConfig, SyntaxForTokenClassification)

MODEL_CLASSES: dict[str, type[SyntaxModel]] = {
    "extractive_qa.v1": SyntaxForQuestionAnswering,
    "multiple_choice.v1": SyntaxForMultipleChoice,
    "sequence_classification.v1": SyntaxForSequenceClassification,
    "token_classification.v1": SyntaxForTokenClassification,
}
"""The class of each task's models; a task that is not here has plain `SyntaxModel`."""
