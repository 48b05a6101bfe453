"""Syntax-MBERT's runs (Ahmad et al. 2021, table 4), and those that the shipped scripts start.

The scripts (commit 1af0ef5) start XNLI, PAWS-X, WikiAnn and mTOP; figures were compared with
``xlt_classify.sh``, ``panx.sh``, ``mtop.sh`` and their defaults. Lengths and steps between
evaluations are theirs; for CoNLL, mATIS++ and SQuAD, and SQuAD's batches, they are our own choice.

We have no figures from the paper for the graph encoder's own training (section 2.4), and the
release only loads what it gave: passes, learning rate and evaluations are our own choice.
"""

from __future__ import annotations

from trainer import options
from trainer.options import (
    DataOptions,
    Recipe,
    SyntaxBertOptions,
    SyntaxGatOptions,
    TrainingOptions,
)
from trainer.options.settings import with_settings
from trainer.recipes.base import RECIPES, probes, variant
from trainer.systems.syntax_mbert.options import SWITCHES


def xnli() -> Recipe:
    """XNLI from English: delta 4, alpha 0."""
    return Recipe(
        name="xnli",
        data=DataOptions(dataset="xnli"),
        model=SyntaxBertOptions(max_distance=4),
        objectives=probes(0.0),
        training=TrainingOptions(epochs=5, evaluate_every=2000),
    )


def pawsx() -> Recipe:
    """PAWS-X from English: delta 4, alpha 0.5."""
    return Recipe(
        name="pawsx",
        data=DataOptions(dataset="pawsx"),
        model=SyntaxBertOptions(max_distance=4),
        objectives=probes(0.5),
        training=TrainingOptions(epochs=5, evaluate_every=2000),
    )


def wikiann() -> Recipe:
    """WikiAnn from English: delta 1, alpha 0.5, 10 passes."""
    return _tagging("wikiann", weight=0.5, evaluate_every=5000)


def conll() -> Recipe:
    """CoNLL-2002/2003 from English: delta 1, alpha 1, 10 passes."""
    return _tagging("conll", weight=1.0, evaluate_every=1000)


def mtop() -> Recipe:
    """Utterances of mTOP: delta 1, two syntactic heads, alpha 2, 96 pieces, 10 passes."""
    recipe = _tagging("mtop", weight=2.0, evaluate_every=200)
    return with_settings(recipe, ["syntax_heads=2", "max_length=96", "task.name=intent_slots.v1"])


def matis() -> Recipe:
    """mATIS++ from English: delta 1, alpha 0.2, 10 passes."""
    return with_settings(
        _tagging("matis", weight=0.2, evaluate_every=200), ["task.name=intent_slots.v1"]
    )


def squad() -> Recipe:
    """SQuAD 1.1, for MLQA and XQuAD: a question with one sentence of the passage; two heads."""
    return Recipe(
        name="squad",
        data=DataOptions(dataset="squad", truncation="only_second", level="sentence"),
        model=SyntaxBertOptions(max_distance=4, syntax_heads=2),
        objectives=probes(0.5),
        task=options.ExtractiveQaOptions(normalisation="passage", sentence_head=True),
        training=TrainingOptions(epochs=3, batch_size=8, evaluation_batch_size=8),
    )


def gat_ud() -> Recipe:
    """The graph encoder alone, on gold trees of every language of the dataset ``ud``."""
    return Recipe(
        name="gat-ud",
        data=DataOptions(dataset="ud", lang="*"),
        model=SyntaxGatOptions(),
        objectives=probes(1.0),
        task=options.TreesOptions(),
        training=TrainingOptions(epochs=10, learning_rate=1e-4, evaluate_every=1000),
    )


def _tagging(dataset: str, *, weight: float, evaluate_every: int) -> Recipe:
    return Recipe(
        name=dataset,
        data=DataOptions(dataset=dataset),
        model=SyntaxBertOptions(max_distance=1),
        objectives=probes(weight),
        task=options.TokenClassificationOptions(label="ner_tags"),
        training=TrainingOptions(epochs=10, evaluate_every=evaluate_every),
    )


def weighing(weight: float) -> tuple[str, str]:
    return (f"objectives.tree_distance.weight={weight}", f"objectives.tree_depth.weight={weight}")


def as_released(recipe: Recipe, *further: str) -> Recipe:
    """The run of the shipped script: every switch as released, alpha 1, and ``further``."""
    settings = [f"{switch.option}=as_released" for switch in SWITCHES]
    return variant(recipe, "as-released", *settings, *weighing(1), *further)


def xnli_as_released() -> Recipe:
    """XNLI as the released script trains it: every switch as released, alpha 1."""
    return as_released(xnli())


def pawsx_as_released() -> Recipe:
    """PAWS-X as the released script trains it: every switch as released, alpha 1."""
    return as_released(pawsx())


def wikiann_as_released() -> Recipe:
    """WikiAnn as released: 3 passes, alpha 0.5, a token's label repeated on each of its words."""
    return as_released(wikiann(), *_WORDS, *weighing(0.5), "epochs=3")


def mtop_as_released() -> Recipe:
    """Utterances of mTOP as released: alpha 1, a token's label repeated on each of its words."""
    return as_released(mtop(), *_WORDS)


_WORDS = ("task.pieces=words", "task.word_labels=as_released")

RECIPES.add("xnli", xnli)
RECIPES.add("pawsx", pawsx)
RECIPES.add("wikiann", wikiann)
RECIPES.add("conll", conll)
RECIPES.add("mtop", mtop)
RECIPES.add("matis", matis)
RECIPES.add("squad", squad)
RECIPES.add("xnli-as-released", xnli_as_released)
RECIPES.add("pawsx-as-released", pawsx_as_released)
RECIPES.add("wikiann-as-released", wikiann_as_released)
RECIPES.add("mtop-as-released", mtop_as_released)
RECIPES.add("gat-ud", gat_ud)
