"""Options of UD-PrLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from syntax.errors import SpecError
from syntax.options import Count, Probability
from syntax.variant import Variant
from trainer.nn.earlier import run_config
from trainer.options.model import ModelOptions, bert_config

if TYPE_CHECKING:
    from trainer.options.data import DataOptions
    from trainer.options.task import TaskOptions

PIECE_TREES: Final = ("attach", "chain", "copy_head")
"""Policies under which each piece has a head."""

OF_PARSER: Final = ("arc", "relation", "activation")
OF_USI: Final = ("usi_width", "fusion", "neighbours", "mixing")
"""Options in which a run and the one that it starts from must agree."""

LEARNS_TREES: Final = "usl.v1"
"""The task, whose options need torch."""

Corrected = Literal["as_published", "corrected"]


@dataclass(frozen=True, slots=True)
class UdPrlmOptions(ModelOptions):
    """An encoder with a parser of its pieces on top, whose trees may reach one more layer.

    Without ``encoder`` and ``start_from`` it is built new; without syntax it is the encoder alone.

    Attributes:
        layers, hidden_size, heads, feed_forward: Size of a new encoder, the further layer apart.
        max_positions: Pieces that it has positions for.
        layer_dropout: In it: of states and of attention weights.
        start_from: Folder of a run of ``udprlm.v1``: its encoder, parser, labels, decoder of masked
            pieces and, where both have one, its USI are taken.
        labels: Relations of the parser; by default those of the trees that the run learns, or of
            the run it starts from. A result records them.
        usi: Put trees into the states (universal syntax integration) for one more layer.
        arc, relation: Width of the parser's projections that score heads, and labels.
        parser_dropout: Of these projections.
        usi_width: Width of the states that the labels scale; None for no projection, as the paper
            writes, which takes as many weights for each label as the encoder has numbers squared.
        activation, mlp_init, fusion, neighbours, mixing: Switches.
    """

    name: str = "udprlm.v1"
    encoder: str = ""
    weights: Literal["pretrained", "random"] = "random"
    layers: Count = 11
    hidden_size: Count = 768
    heads: Count = 12
    feed_forward: Count = 3072
    max_positions: Count = 512
    layer_dropout: Probability = 0.1
    start_from: str | None = None
    labels: tuple[str, ...] = ()
    usi: bool = True
    arc: Count = 128
    relation: Count = 64
    parser_dropout: Probability = 0.33
    usi_width: Count | None = 16
    activation: Variant = "as_published"
    mlp_init: Variant = "as_published"
    fusion: Variant = "as_published"
    neighbours: Corrected = "as_published"
    mixing: Corrected = "as_published"

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if self.weights == "pretrained" and (self.start_from or not self.encoder):
            raise SpecError(
                "model.weights=pretrained takes the weights of model.encoder, and "
                "model.start_from those of a run; set model.encoder, or model.weights=random"
            )

    @property
    def learned_with(self) -> tuple[str, ...]:
        return (*OF_PARSER, "labels", "usi", *OF_USI)

    @property
    def integrates(self) -> bool:
        return self.use_syntax and self.usi

    @property
    def further_layers(self) -> int:
        return int(self.integrates)

    @property
    def starts_from(self) -> Path | None:
        return None if self.start_from is None else Path(self.start_from)

    def new_encoder(self) -> Mapping[str, Any] | None:
        """The encoder of the run to start from, or a BERT of these sizes; None with ``encoder``."""
        if self.starts_from is not None:
            content: Mapping[str, Any] = self._earlier()["encoder"]
            return content
        if self.encoder:
            return None
        return bert_config(self)

    def fitted(self, tasks: Sequence[TaskOptions]) -> UdPrlmOptions:
        if self.labels or not self.use_syntax:
            return self
        labels: tuple[str, ...] = ()
        if self.starts_from is not None:
            labels = tuple(self._earlier()["model"]["labels"])
        for task in tasks:
            if task.name == LEARNS_TREES:
                labels = labels or getattr(task, "labels", ())
        if not labels:
            raise SpecError(
                "model.labels is empty, and no stream of the recipe learns trees of pieces "
                "(usl.v1); set model.start_from to a run of udprlm.v1"
            )
        return replace(self, labels=labels)

    def settled(self, before: ModelOptions) -> UdPrlmOptions:
        if not isinstance(before, UdPrlmOptions):
            return self
        return replace(self, labels=self.labels or before.labels)

    def check_data(self, data: DataOptions) -> None:
        policy = data.policy.removesuffix(".v1")
        if self.use_syntax and policy not in PIECE_TREES:
            raise SpecError(
                f"udprlm.v1 reads trees of pieces, and data.policy is {data.policy!r}; set it to "
                f"one of {', '.join(PIECE_TREES)}"
            )

    def _earlier(self) -> Mapping[str, Any]:
        assert self.starts_from is not None
        content = run_config(self.starts_from)
        theirs: Mapping[str, Any] = content["model"]
        if theirs["name"] != self.name:
            raise SpecError(
                f"the run in {self.start_from} trained {theirs['name']}; model.start_from names a "
                f"run of {self.name}"
            )
        shared: tuple[str, ...] = OF_PARSER if self.use_syntax and theirs["use_syntax"] else ()
        if self.integrates and theirs["use_syntax"] and theirs["usi"]:
            shared = (*OF_PARSER, *OF_USI)
        for name in shared:
            if getattr(self, name) != theirs[name]:
                raise SpecError(
                    f"the run in {self.start_from} was trained with model.{name}={theirs[name]}, "
                    f"and the recipe says {getattr(self, name)}; set both alike"
                )
        return content
