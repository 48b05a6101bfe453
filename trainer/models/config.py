"""Configuration of the syntax-augmented encoder; everything needed to build and to feed it."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig, PretrainedConfig

from syntax.errors import SpecError
from trainer.models.attention import SDPA
from trainer.switches import Variant, check_variant


class SyntaxBertConfig(PretrainedConfig):
    """An encoder's own configuration, and what syntax adds to it.

    Args:
        encoder: Configuration of the BERT or XLM-R encoder, as its ``to_dict()`` gives it.
        attention: Attention implementation of the encoder. transformers forgets it on saving,
            so it is kept here under a name of our own.
        use_syntax: False leaves the stock encoder: no graph encoder, no bias, no objective.
        gat, attention_bias, probe_target: The switches of `trainer.switches.SYNTAX_MBERT`.
        gat_layers, gat_heads, gat_head_size, gat_dropout: Size of the graph encoder.
        max_distance: Edges that a node of the graph encoder sees, the paper's delta.
        use_upos, use_deprel: Which tags the graph encoder reads.
        syntax_heads: How many heads of a layer syntax biases, the first ones.
        syntax_layers: Which layers it biases, 0-based; all by default.
        objectives: Names in `trainer.objectives.OBJECTIVES`.
        structure_weight: Weight of their sum in the training loss, the paper's alpha; at 0 no
            objective is built.
        probe_rank: Rank of the structural probes.
        classifier_dropout: Dropout of the task's head.
        task, label: Name in `trainer.tasks.TASKS`, and the label column that it reads.
        requires: What the model was trained on and so needs again: tokenizer, parsers, features
            (`trainer.requirements.Requirements`).

    Raises:
        SpecError: A value is outside its range, or the settings contradict each other.
    """

    model_type = "parsebank-syntax-bert"

    def __init__(
        self,
        encoder: dict[str, Any] | None = None,
        attention: str = SDPA,
        use_syntax: bool = True,
        gat: Variant = "as_published",
        attention_bias: Variant = "as_published",
        probe_target: Variant = "as_published",
        gat_layers: int = 4,
        gat_heads: int = 4,
        gat_head_size: int = 64,
        gat_dropout: float = 0.1,
        max_distance: int = 4,
        use_upos: bool = True,
        use_deprel: bool = False,
        syntax_heads: int = 1,
        syntax_layers: list[int] | None = None,
        objectives: tuple[str, ...] | list[str] = ("tree_distance.v1", "tree_depth.v1"),
        structure_weight: float = 0.0,
        probe_rank: int = 64,
        classifier_dropout: float = 0.1,
        task: str = "sequence_classification.v1",
        label: str = "label",
        requires: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        # transformers builds a configuration without arguments to find out its defaults.
        self.encoder = encoder or {"model_type": "bert"}
        self.attention = attention
        self.use_syntax = use_syntax
        self.gat, self.attention_bias, self.probe_target = gat, attention_bias, probe_target
        self.gat_layers, self.gat_heads = gat_layers, gat_heads
        self.gat_head_size, self.gat_dropout = gat_head_size, gat_dropout
        self.max_distance = max_distance
        self.use_upos, self.use_deprel = use_upos, use_deprel
        self.syntax_heads, self.syntax_layers = syntax_heads, syntax_layers
        self.objectives, self.structure_weight = list(objectives), structure_weight
        self.probe_rank = probe_rank
        self.classifier_dropout = classifier_dropout
        self.task, self.label = task, label
        self.requires = requires or {}
        super().__init__(**kwargs)
        self.check()

    @property
    def syntax_size(self) -> int:
        """Width of the graph encoder's states."""
        return self.gat_heads * self.gat_head_size

    def encoder_config(self) -> PretrainedConfig:
        """The encoder's configuration as the object that transformers builds encoders from."""
        return AutoConfig.for_model(**self.encoder)

    def check(self) -> None:
        """Refuse settings that no model can be built from.

        Raises:
            SpecError: With the setting, its value and its range.
        """
        for switch in ("gat", "attention_bias", "probe_target"):
            check_variant(switch, getattr(self, switch))
        encoder = self.encoder_config()
        _check_range("syntax_heads", self.syntax_heads, 1, encoder.num_attention_heads)
        _check_range("max_distance", self.max_distance, 0, None)
        _check_range("gat_layers", self.gat_layers, 1, None)
        for layer in self.syntax_layers or ():
            _check_range("syntax_layers", layer, 0, encoder.num_hidden_layers - 1)
        if self.structure_weight < 0:
            raise SpecError(f"structure_weight is {self.structure_weight}; it cannot be negative")


def _check_range(name: str, value: int, low: int, high: int | None) -> None:
    if value < low or (high is not None and value > high):
        upper = "" if high is None else f" and at most {high}"
        raise SpecError(f"{name} is {value}; it must be at least {low}{upper} for this encoder")
