"""Parsers whose encoder hides the language of its input (Ahmad et al. 2019).

"Cross-lingual dependency parsing with unlabeled auxiliary languages", commit f9b6acd. Of an
auxiliary language nothing is read but its text, and universal tags where the encoder reads them.
``adversarial-orderfree`` trains the authors' encoder with the release's passes, batches and
optimizers of discriminators; the others have the recipe ``parser``, whose passes and delay are our
own choice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Literal

from syntax.variant import Variant
from trainer.options import (
    AdversaryOptions,
    OptimizerOptions,
    Recipe,
    StreamOptions,
)
from trainer.options.settings import with_settings
from trainer.recipes.base import RECIPES
from trainer.recipes.parsing import parser

DISCRIMINATOR: Final = r"objectives\.\d+\.discriminator\..*"
"""Names of the weights of a discriminator, whatever other objectives there are."""

_ADAM: Final = OptimizerOptions(
    "discriminator",
    parameters=(DISCRIMINATOR,),
    optimizer="adamw",
    learning_rate=1e-3,
    betas=(0.9, 0.999),
    epsilon=1e-8,
    weight_decay=0.0,
    schedule="constant",
    warmup_steps=0,
    warmup_share=0.0,
    clip_norm=0.0,
    clip_value=0.0,
)

_RMSPROP: Final = replace(_ADAM, optimizer="rmsprop", learning_rate=5e-5, clamp=0.01)


def adversarial(
    recipe: Recipe,
    langs: tuple[str, ...],
    adversary: AdversaryOptions,
    n_critic: int = 5,
) -> Recipe:
    """A recipe whose encoder hides which of several languages it reads.

    ``recipe`` has one optimizer at most. Each of ``langs`` is a part of its dataset; one of them
    joins each step, drawn by its number of examples. The discriminator takes ``n_critic`` steps for
    one of all else; or, negative, the other way round.
    """
    (main,) = recipe.optimizers or (OptimizerOptions("main"),)
    main = replace(main, every=max(n_critic, 1))
    critic = _RMSPROP if adversary.method == "wgan" else _ADAM
    critic = replace(critic, every=max(-n_critic, 1))
    if critic.clamp is not None:
        critic = replace(critic, clamp_every=main.every)
    streams = tuple(
        StreamOptions(
            lang if len(langs) > 1 else "auxiliary",
            data=replace(recipe.data, lang=lang),
            objectives=(adversary,),
            joins="in_turn",
        )
        for lang in langs
    )
    return replace(
        recipe,
        objectives=(*recipe.objectives, adversary),
        streams=(*recipe.streams, *streams),
        optimizers=(main, critic),
    )


def _run(
    name: str,
    method: Literal["gan", "wgan", "reversal", "multitask"],
    *,
    as_released: bool = False,
) -> Recipe:
    plain = parser()
    training = replace(plain.training, batch_size=40, delay_batch_size=80, epochs=20, delay=5)
    variant: Variant = "as_released" if as_released else "as_published"
    adversary = AdversaryOptions(
        method=method, residual=variant, gan_loss=variant, positions=variant
    )
    return adversarial(replace(plain, name=name, training=training), ("de",), adversary)


def gan() -> Recipe:
    """A parser of English whose encoder hides English from German: a GAN of two languages."""
    return _run("adversarial", "gan")


def gan_as_released() -> Recipe:
    """The same with the released losses, soft labels, and padding among what is classified."""
    return _run("adversarial-as-released", "gan", as_released=True)


def wgan() -> Recipe:
    """The same as a Wasserstein GAN, whose critic is clamped."""
    return _run("adversarial-wgan", "wgan")


def reversal() -> Recipe:
    """The same by reversed gradients (Ganin et al. 2016)."""
    return _run("adversarial-reversal", "reversal")


def multitask() -> Recipe:
    """The contrary, for comparison: the encoder learns to tell the language, too."""
    return _run("adversarial-multitask", "multitask")


def orderfree() -> Recipe:
    """The order-free parser over tags alone, whose encoder hides English from French: a GAN."""
    plain = RECIPES["orderfree-selfatt-graph-delex"]()
    training = replace(plain.training, batch_size=40, delay_batch_size=80, epochs=400, delay=100)
    named = replace(plain, name="adversarial-orderfree", training=training)
    named = with_settings(named, ["model.attention_residual=normed"])
    return adversarial(named, ("fr",), AdversaryOptions())


RECIPES.add("adversarial", gan)
RECIPES.add("adversarial-as-released", gan_as_released)
RECIPES.add("adversarial-wgan", wgan)
RECIPES.add("adversarial-reversal", reversal)
RECIPES.add("adversarial-multitask", multitask)
RECIPES.add("adversarial-orderfree", orderfree)
