"""Whole models: an encoder and a task's head, saved and loaded as transformers does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, cast

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxOutput
from trainer.nn.rows import AttentionRows
from trainer.objectives.base import Objective, build_objectives, weighted_sum
from trainer.options import MAIN, ObjectiveOptions
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS
from trainer.tasks.base import Head


class SyntaxModel(PreTrainedModel):
    """An encoder, the objectives over its states, and the head of a task.

    It takes a `SyntaxBatch`, or its tensors by name, as Hugging Face's ``Trainer`` gives them.
    """

    config_class = SyntaxConfig
    base_model_prefix = "encoder"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    _supports_sdpa = True

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config)
        self.encoder = SYSTEMS[config.model["name"]].load_encoder()(config, pretrained)
        self._weights = {
            stream: {one.name: one.weight for one in config.objective_options(stream)}
            for stream in (MAIN, *config.streams)
        }
        found = build_objectives(_of_all_streams(config), config, self.encoder)
        self.objectives = nn.ModuleList(cast(Iterable[nn.Module], found))
        self.head = TASKS[config.task["name"]].head(config, self.encoder.width)
        self.heads = nn.ModuleDict()  # of further streams that have a task
        for name, stream in config.streams.items():
            if stream["task"] is not None:
                own = config.of_stream(name)
                self.heads[name] = TASKS[own.task["name"]].head(own, self.encoder.width)
        for head in (self.head, *self.heads.values()):
            cast(Head, head).connect(self.encoder)
            self._check_gives(cast(Head, head))
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        if self.encoder.stock is None:
            raise NotImplementedError(f"{self.config.model['name']} trains no stock encoder")
        embeddings: nn.Module = self.encoder.stock.get_input_embeddings()
        return embeddings

    @property
    def supports_gradient_checkpointing(self) -> bool:  # type: ignore[override]
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

        Tensors make a batch where none is given. ``labels`` are targets by name, or those of the
        only label column that the task finds; ``arrays`` are the trees, by the names that a stream
        gives them, and others that the model reads. Switches of transformers' calls, such as
        ``return_dict``, are not read. By default all ``objectives`` are computed.
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
        weights = self._weights[batch.stream]
        chosen = [
            one
            for one in cast(Iterable[Objective], self.objectives)
            if weights.get(one.options.name) and (names is None or one.options.name in names)
        ]
        head = {MAIN: self.head, **dict(self.heads.items())}.get(batch.stream)
        needs: frozenset[str] = frozenset().union(*(one.needs for one in chosen))
        if head is not None:
            needs |= cast(Head, head).needs
        wanted: dict[str, Any] = {
            f"output_{name}": True
            for name in ("hidden_states", "attentions", "tree_scores", "last_memory")
            if name in needs
        }
        rows = AttentionRows() if "attention_rows" in needs else None
        if rows is not None:
            wanted["recorder"] = rows
        encoding = self.encoder(batch, **wanted)
        encoding.attention_rows = rows
        losses = {one.options.name: one(encoding, batch) for one in chosen}
        logits, task_loss = ({}, None) if head is None else head(encoding, batch)
        loss = task_loss
        if self.training and losses:
            further = weighted_sum(losses, weights)
            loss = further if loss is None else loss + further
        return SyntaxOutput(loss, task_loss, losses, logits)

    def _check_gives(self, head: Head) -> None:
        if missing := sorted(head.needs - self.encoder.gives):
            raise SpecError(
                f"the head of {self.config.task['name']} reads {', '.join(missing)}, which "
                f"{self.config.model['name']} does not give; let it read the last states"
            )

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if getattr(module, "own_initial_weights", False):
            module.reset_parameters()  # type: ignore[operator]
        else:
            super()._init_weights(module)  # type: ignore[no-untyped-call]


def _of_all_streams(config: SyntaxConfig) -> list[ObjectiveOptions]:
    found: dict[str, ObjectiveOptions] = {}
    for stream in (MAIN, *config.streams):
        for one in config.objective_options(stream):
            if one.weight == 0:
                continue
            first = found.setdefault(one.name, one)
            if replace(one, weight=first.weight) != first:
                raise _other_options(stream, one, first)
    return list(found.values())


def _other_options(stream: str, one: ObjectiveOptions, first: ObjectiveOptions) -> SpecError:
    ours, theirs = asdict(one), asdict(first)
    names = [name for name in ours if name != "weight" and ours[name] != theirs[name]]
    called = one.name.partition(".")[0]
    return SpecError(
        f"the stream {stream} has the objective {one.name} with other options than another stream "
        f"({', '.join(names)}); streams share an objective, and only its weight may differ. Set "
        f"streams.{stream}.objectives.{called}.{names[0]} and that of the other to the same value; "
        "tags and relations that a recipe does not name are those of each stream's own data"
    )


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

for auto_class, own_class in _CLASSES.items():
    getattr(transformers, auto_class).register(SyntaxConfig, own_class)


def model_class(task: str) -> type[SyntaxModel]:
    auto_class = TASKS[task].auto_class
    return SyntaxModel if auto_class is None else _CLASSES[auto_class]
