"""Options of PLBART (Ahmad et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from syntax.errors import SpecError
from syntax.options import Count, Probability
from trainer.nn.earlier import run_config
from trainer.systems.transformer.options import TransformerOptions

BART: Final = "parsebank-plbart"
"""The type of `trainer.nn.bart.NormedBartEncoder`, which needs torch."""


@dataclass(frozen=True, slots=True)
class PlbartOptions(TransformerOptions):
    """An encoder and a decoder of the same, published size, that share embeddings, built new.

    A size that is published for pre-training holds for runs that start from it, too.

    Attributes:
        start_from: Folder of a run of ``plbart.v1``, whose sizes and weights are taken.
        states: States that a task reads: those of the ``encoder``, which tasks with a text to write
            need; or those of the ``decoder`` over the same pieces, to classify.
        dropout_steps: Steps at which ``layer_dropout`` becomes the next one of ``dropouts``.
        dropouts: One for each of these steps.
    """

    name: str = "plbart.v1"
    hidden_size: Count = 768
    heads: Count = 12
    feed_forward: Count = 3072
    start_from: str | None = None
    states: Literal["encoder", "decoder"] = "encoder"
    dropout_steps: tuple[int, ...] = ()
    dropouts: tuple[Probability, ...] = ()

    def __post_init__(self) -> None:
        TransformerOptions.__post_init__(self)
        if self.weights == "pretrained" and self.start_from:
            raise SpecError(
                "model.weights=pretrained takes the weights of model.encoder, and "
                "model.start_from those of a run; set one of them"
            )
        if list(self.dropout_steps) != sorted(set(self.dropout_steps)):
            raise SpecError(f"model.dropout_steps is {self.dropout_steps}; give rising steps")

    @property
    def has_decoder(self) -> bool:
        return True

    @property
    def starts_from(self) -> Path | None:
        return None if self.start_from is None else Path(self.start_from)

    def dropout_at(self, step: int) -> float | None:
        """The dropout from a step (0-based) on; None before the first change.

        >>> options = PlbartOptions(dropout_steps=(50_000, 80_000), dropouts=(0.05, 0.0))
        >>> [options.dropout_at(step) for step in (49_999, 50_000, 79_999, 80_000)]
        [None, 0.05, 0.05, 0.0]
        """
        if len(self.dropout_steps) != len(self.dropouts):
            raise SpecError(
                f"model.dropout_steps are {self.dropout_steps}, and model.dropouts "
                f"{self.dropouts}; give as many of each"
            )
        passed = [
            new for at, new in zip(self.dropout_steps, self.dropouts, strict=True) if step >= at
        ]
        return passed[-1] if passed else None

    def new_encoder(self) -> dict[str, Any] | None:
        if self.starts_from is not None:
            content = run_config(self.starts_from)
            if content["model"]["name"] != self.name:
                raise SpecError(
                    f"the run in {self.start_from} trained {content['model']['name']}; "
                    f"model.start_from names a run of {self.name}"
                )
            return dict(content["encoder"])
        # Named, as slots leave no `super()`.
        sizes = TransformerOptions.new_encoder(self)
        if sizes is None:
            return None
        return {**sizes, "model_type": BART, "activation_function": "gelu"}
