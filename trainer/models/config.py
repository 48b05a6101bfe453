"""Configuration of every model of ours; everything needed to build and to feed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from transformers import AutoConfig, PretrainedConfig

from syntax.errors import SpecError
from trainer.nn.attention import SDPA
from trainer.options.entries import MAIN
from trainer.options.model import ModelOptions
from trainer.options.objective import ObjectiveOptions
from trainer.options.parser import MixedStates
from trainer.options.settings import section_from_json
from trainer.options.task import TaskOptions
from trainer.systems.syntax_mbert.options import SyntaxBertOptions


class SyntaxConfig(PretrainedConfig):
    """A stock encoder's configuration, what syntax adds to it, and what is predicted.

    Args:
        attention: Attention implementation of the encoder, which transformers forgets on saving.
        classes: Names of the classes of each label column that has some, in id order.
        streams: The ``task`` (None for one without), ``objectives`` and ``classes`` of each further
            stream that the model was trained on, by name.
    """

    model_type = "parsebank-syntax"

    def __init__(
        self,
        encoder: Mapping[str, Any] | None = None,
        attention: str = SDPA,
        model: Mapping[str, Any] | None = None,
        task: Mapping[str, Any] | None = None,
        classes: Mapping[str, list[str]] | None = None,
        requires: Mapping[str, Any] | None = None,
        objectives: Sequence[Mapping[str, Any]] = (),
        streams: Mapping[str, Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        # transformers builds a configuration without arguments to find out its defaults.
        self.encoder = dict(encoder or {"model_type": "bert"})
        self.attention = attention
        self.model = dict(model or {"name": SyntaxBertOptions().name})
        self.objectives = [dict(one) for one in objectives]
        self.task = dict(task or {"name": "sequence_classification.v1"})
        self.classes = {name: list(names) for name, names in (classes or {}).items()}
        self.requires = dict(requires or {})
        self.streams = {name: dict(stream) for name, stream in (streams or {}).items()}
        super().__init__(**kwargs)
        self.model_options(), self.objective_options()
        found = self.task_options().found()
        if len(found) == 1 and self.classes.get(found[0]):
            # Under these names pipelines look for the classes.
            self.id2label = dict(enumerate(self.classes[found[0]]))
            self.label2id = {name: number for number, name in self.id2label.items()}

    def of_stream(self, name: str) -> SyntaxConfig:
        content = {**self.to_dict(), **self.streams[name], "streams": {}}
        config: SyntaxConfig = type(self).from_dict(content)
        return config

    def encoder_config(self) -> PretrainedConfig:
        return AutoConfig.for_model(**self.encoder)

    def state_count(self, states: MixedStates = "mix") -> int:
        """States of each position: those of layers and, but for ``layers``, the embeddings."""
        layers = int(self.encoder_config().num_hidden_layers) + self.model_options().further_layers
        return layers + (states != "layers")

    def model_options(self) -> ModelOptions:
        options: ModelOptions = section_from_json("model", self.model)
        return options

    def task_options(self) -> TaskOptions:
        options: TaskOptions = section_from_json("task", self.task)
        return options

    def objective_options(self, stream: str = MAIN) -> tuple[ObjectiveOptions, ...]:
        content = self.objectives if stream == MAIN else self.streams[stream]["objectives"]
        return tuple(section_from_json("objectives", one) for one in content)

    def label_name(self) -> str:
        """The one label column that the task finds, for callers who give its values alone."""
        found = self.task_options().found()
        if len(found) != 1:
            raise SpecError(
                f"{self.task['name']} finds {', '.join(found) or 'no label'}; give `labels` as a "
                "mapping from the name of each target to its tensor"
            )
        return found[0]
