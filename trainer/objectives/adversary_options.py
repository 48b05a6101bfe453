"""Options of the language adversary (`trainer.objectives.adversary`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed
from syntax.options import NonNegative, Probability
from syntax.variant import Variant, is_released
from trainer.nn.positions import every_position, word_positions
from trainer.options.objective import ObjectiveOptions

if TYPE_CHECKING:
    from trainer.options.entries import StreamOptions
    from trainer.options.recipe import Recipe

READ: Final = "adversary_positions"
"""Positions whose states the discriminator reads, -1 for none. *Shape:* (B, W)."""


@dataclass(frozen=True, slots=True)
class AdversaryOptions(ObjectiveOptions):
    """A discriminator tells languages apart by the states, and the encoder makes that hard.

    Ahmad et al. 2019. The main stream has the source language; each further stream that has the
    objective is an auxiliary language, and joins the steps.

    Attributes:
        method: ``gan``, ``wgan`` or ``reversal``, the gradient of the discriminator's loss
            reversed; or ``multitask``, that gradient as it is: the states then tell the language.
        strength: Factor of what the encoder learns, lambda; 0 trains the discriminator alone.
        level: Classify each ``word``, or the mean of a ``sentence``.
        discriminator: ``weak``, a linear map, which the authors found to work best;
            ``not_so_weak`` or ``strong``.
        dropout: Of whole features of the states that the discriminator reads, in training.
        residual: A switch: the blocks of the strong discriminator.
        gan_loss: A switch: the losses of ``gan``.
        positions: A switch: which states are read.
        soft_labels: Targets for the source and for the auxiliary language with
            ``gan_loss=as_released``; drawn from the seed when left out, and recorded in a result.
    """

    name: str = "adversary.v1"
    method: Literal["gan", "wgan", "reversal", "multitask"] = "gan"
    strength: NonNegative = 0.01
    level: Literal["word", "sentence"] = "word"
    discriminator: Literal["weak", "not_so_weak", "strong"] = "weak"
    dropout: Probability = 0.2
    residual: Variant = "as_published"
    gan_loss: Variant = "as_published"
    positions: Variant = "as_published"
    soft_labels: tuple[Probability, ...] = ()

    def __post_init__(self) -> None:
        ObjectiveOptions.__post_init__(self)
        if len(self.soft_labels) not in (0, 2):
            raise SpecError(
                f"objectives.{self.name}.soft_labels is {self.soft_labels}; give two numbers, of "
                "the source and of the auxiliary language, or leave it out"
            )

    @property
    def is_soft(self) -> bool:
        return self.method == "gan" and is_released(self.gan_loss)

    def arrays(self) -> tuple[str, ...]:
        return (READ,)

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """First pieces of words; as released every position, padding among them."""
        read = every_position if is_released(self.positions) else word_positions
        return {READ: read(arrays)}

    def prepared(self, recipe: Recipe) -> AdversaryOptions:
        """With soft labels, drawn from the seed: U(.7, 1) and U(0, .3)."""
        others = [one for one in recipe.streams if self.name in {of.name for of in one.objectives}]
        if self.name not in {one.name for one in recipe.objectives} or not others:
            raise SpecError(
                f"{self.name} tells languages apart, and the recipe has one alone; list it in the "
                "objectives of the main stream and of a stream of another language"
            )
        for stream in others:
            _check_auxiliary(self.name, stream, recipe)
        if not self.is_soft or self.soft_labels:
            return self
        first, second = splitmix(2, stream_seed(recipe.training.seed, "soft labels")) / 2.0**64
        return replace(self, soft_labels=(float(0.7 + 0.3 * first), float(0.3 * second)))

    def settled(self, before: ObjectiveOptions) -> ObjectiveOptions:
        if not isinstance(before, AdversaryOptions):
            return self
        return replace(self, soft_labels=self.soft_labels or before.soft_labels)


def _check_auxiliary(name: str, stream: StreamOptions, recipe: Recipe) -> None:
    if not stream.joins:
        raise SpecError(
            f"{name} compares the batches of a step, and the stream {stream.name} has steps of its "
            f"own; set streams.{stream.name}.joins=true"
        )
    ours, theirs = (
        (data.dataset, data.train_split, data.lang) for data in (recipe.data, stream.data)
    )
    if ours == theirs:
        raise SpecError(
            f"{name} tells languages apart, and the stream {stream.name} reads what the main one "
            f"reads, {'/'.join(ours)}; set streams.{stream.name}.data.lang to another language"
        )
