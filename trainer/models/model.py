"""Whole models: an encoder and a task's head, saved and loaded as transformers does.

The classes differ in name only, so that each is found through the auto class of its task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxOutput
from trainer.objectives.base import Objective, build_objectives, weighted_sum
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS

EARLIER_NAMES: Final = {r"^encoder\.losses\.objectives\.": "objectives."}
"""Weights under the names of earlier releases, as patterns, with what stands there now."""


class SyntaxModel(PreTrainedModel):
    """An encoder, the objectives over its states, and the head of a task.

    A model takes a `SyntaxBatch`, or its tensors by name, as Hugging Face's ``Trainer``, pipelines
    and PEFT give them.

    Args:
        config: What to build.
        pretrained: A stock encoder to take instead of a new one.
    """

    config_class = SyntaxConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.encoder = SYSTEMS[config.model["name"]].load_encoder()(config, pretrained)
        options = config.objective_options()
        found = build_objectives(options, config, self.encoder)
        self.objectives = nn.ModuleList(cast(Iterable[nn.Module], found))
        self.head = TASKS[config.task["name"]].head(config, self.encoder.width)
        self.register_load_state_dict_pre_hook(_rename_earlier)  # type: ignore[no-untyped-call]
        self.post_init()  # type: ignore[no-untyped-call]

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """As transformers loads a model; weights of earlier releases are found, too."""
        model = super().from_pretrained(*args, key_mapping=EARLIER_NAMES, **kwargs)
        # Otherwise transformers would save the weights under the earlier names again.
        loaded = model[0] if isinstance(model, tuple) else model
        loaded._weight_conversions = []
        return model

    @property
    def supports_gradient_checkpointing(self) -> bool:  # type: ignore[override]
        """Whether the layers of the stock encoder can compute their activations again."""
        stock = self.encoder.stock if "encoder" in self._modules else None
        return stock is not None and bool(stock.supports_gradient_checkpointing)

    def forward(
        self,
        batch: SyntaxBatch | None = None,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | Mapping[str, Tensor] | None = None,
        *,
        objectives: Sequence[str] | None = None,
        **arrays: Any,
    ) -> SyntaxOutput:
        """Predictions, and the losses when there are targets of the task.

        Args:
            batch: What to read; or instead of it the tensors below.
            input_ids: As transformers' encoders take them, like the next two.
            attention_mask: Likewise.
            token_type_ids: Likewise.
            labels: Targets by name; or those of the only label column that the task finds.
            objectives: Names of the objectives to compute; all when left out.
            **arrays: The trees, by the names that a stream gives them: ``special_tokens_mask``,
                ``upos``, ``deprel``, ``parents``, ``distance``, ``depth``, ``ancestor``, and other
                matrices or arrays that the model reads. Switches of transformers' calls, such as
                ``return_dict``, are not read.

        Raises:
            SpecError: There are neither a batch nor ``input_ids``, or the trees are not whole.
        """
        if batch is not None:
            return self._run(batch, objectives)
        if input_ids is None:
            raise SpecError("the model was called without a batch and without `input_ids`")
        if isinstance(labels, Tensor):
            labels = {self.config.label_name(): labels}
        tensors = {name: array for name, array in arrays.items() if isinstance(array, Tensor)}
        batch = SyntaxBatch.from_tensors(
            input_ids, attention_mask, token_type_ids, labels=labels or {}, **tensors
        )
        output = self._run(batch, objectives)
        if isinstance(output.logits, dict) and len(output.logits) == 1:
            (output.logits,) = output.logits.values()
        return output

    def _run(self, batch: SyntaxBatch, names: Sequence[str] | None) -> SyntaxOutput:
        built = cast(Iterable[Objective], self.objectives)
        chosen = [one for one in built if names is None or one.options.name in names]
        needs: frozenset[str] = frozenset().union(*(one.needs for one in chosen))
        wanted = {
            f"output_{name}": True for name in ("hidden_states", "attentions") if name in needs
        }
        encoding = self.encoder(batch, **wanted)
        losses = {one.options.name: one(encoding, batch) for one in chosen}
        logits, task_loss = self.head(encoding, batch)
        loss = task_loss
        if self.training and losses:
            further = weighted_sum(losses, {one.options.name: one.options.weight for one in chosen})
            loss = further if loss is None else loss + further
        return SyntaxOutput(loss, task_loss, losses, logits)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if getattr(module, "own_initial_weights", False):
            module.reset_parameters()  # type: ignore[operator]
        else:
            super()._init_weights(module)  # type: ignore[no-untyped-call]


def _rename_earlier(_module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Bring the names of an earlier release's state dict up to date, in place."""
    for name in list(state):
        renamed = name.removeprefix(prefix)
        for pattern, new in EARLIER_NAMES.items():
            renamed = re.sub(pattern, new, renamed)
        state[prefix + renamed] = state.pop(name)


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

_CLASSES: dict[type, type[SyntaxModel]] = {
    AutoModelForMultipleChoice: SyntaxForMultipleChoice,
    AutoModelForQuestionAnswering: SyntaxForQuestionAnswering,
    AutoModelForSequenceClassification: SyntaxForSequenceClassification,
    AutoModelForTokenClassification: SyntaxForTokenClassification,
}
for auto_class, own_class in _CLASSES.items():
    auto_class.register(SyntaxConfig, own_class)  # type: ignore[attr-defined]


def model_class(task: str) -> type[SyntaxModel]:
    """The class of a task's models: the one that the task's auto class loads."""
    auto_class = TASKS[task].auto_class
    return SyntaxModel if auto_class is None else _CLASSES[auto_class]
