"""The order-free parser's runs (Ahmad et al. 2019; the dissertation's chapter 3).

Trained on the gold trees of one language, selected on its dev split, scored on all others. The
treebanks are one dataset, `ud`, with a language for each. For word vectors, set ``model.vectors``.
"""

from __future__ import annotations

from dataclasses import replace

from trainer import options
from trainer.options import OrderFreeOptions, Recipe, TrainingOptions
from trainer.options.settings import with_settings
from trainer.recipes.base import RECIPES, variant, whole_sentences
from trainer.systems.orderfree import SWITCHES

# Compared with train_graph.sh, train_stptr.sh and their twins with _rnn of the release (7ac7c15).
_TRAINING = TrainingOptions(
    seed=1234,
    batch_size=80,
    epochs=1000,
    learning_rate=1e-4,
    epsilon=1e-4,
    betas=(0.9, 0.9),
    schedule="restarts",
    decay=0.75,
    restart_metric="uas_no_punct",
    max_restarts=9,
    warmup_epochs=1,
    clip_norm=5.0,
    evaluate_every="epoch",
    evaluate_epochs=5,
    # A sentence is in the first of 10, 15, ..., 140 that is larger than its words with ROOT, and
    # those of more than 100 are not trained on.
    buckets=(9, 14, 19, 24, 29, 34, 39, 49, 59, 69, 79, 89, 99, 100),
)


def selfatt_graph() -> Recipe:
    """Self-attention without order, and the graph decoder, over word vectors and tags."""
    return Recipe(
        name="orderfree-selfatt-graph",
        data=whole_sentences("ud"),
        model=OrderFreeOptions(words="vectors", vectors="wiki.{lang}.align.vec"),
        task=options.GraphParserOptions(),
        training=_TRAINING,
    )


def rnn_graph() -> Recipe:
    """LSTMs and the graph decoder, over word vectors and tags."""
    settings = ("context=rnn", "word_dropout=0.33", "rnn_dropout=0.33", "parser_dropout=0.33")
    changed = variant(selfatt_graph(), "", *settings, "learning_rate=0.001", "batch_size=32")
    return replace(changed, name="orderfree-rnn-graph")


def selfatt_graph_delex() -> Recipe:
    """Self-attention without order, and the graph decoder, over tags alone."""
    return variant(selfatt_graph(), "delex", "words=none", "vectors=")


def rnn_graph_delex() -> Recipe:
    """LSTMs and the graph decoder, over tags alone."""
    return variant(rnn_graph(), "delex", "words=none", "vectors=")


def selfatt_stack() -> Recipe:
    """Self-attention without order, and the stack-pointer decoder, over word vectors and tags."""
    changed = replace(selfatt_graph(), task=options.StackParserOptions())
    return replace(changed, name="orderfree-selfatt-stack")


def selfatt_stack_delex() -> Recipe:
    """Self-attention without order, and the stack-pointer decoder, over tags alone."""
    return variant(selfatt_stack(), "delex", "words=none", "vectors=")


def rnn_stack() -> Recipe:
    """LSTMs, which also drop tags, and the stack-pointer decoder, over word vectors and tags."""
    task = options.StackParserOptions(parser_dropout=0.33, input_dropout=0.33, state_dropout=0.33)
    changed = with_settings(replace(rnn_graph(), task=task), ["model.tag_dropout=0.33"])
    return replace(changed, name="orderfree-rnn-stack")


def rnn_stack_delex() -> Recipe:
    """LSTMs and the stack-pointer decoder, over tags alone."""
    return variant(rnn_stack(), "delex", "words=none", "vectors=")


def selfatt_graph_directed() -> Recipe:
    """Self-attention that knows on which side a word is."""
    return variant(selfatt_graph(), "directed", "position=directed")


def selfatt_graph_absolute() -> Recipe:
    """Self-attention over words and their absolute positions."""
    return variant(selfatt_graph(), "absolute", "position=absolute")


def selfatt_graph_none() -> Recipe:
    """Self-attention that knows nothing of positions."""
    return variant(selfatt_graph(), "none", "position=none")


def selfatt_graph_as_released() -> Recipe:
    """Self-attention and the graph decoder with every switch as released."""
    return _as_released(selfatt_graph())


def selfatt_graph_delex_as_released() -> Recipe:
    """The same over tags alone."""
    return _as_released(selfatt_graph_delex())


def _as_released(recipe: Recipe) -> Recipe:
    from trainer.tasks import TASKS

    both = (*SWITCHES, *TASKS[recipe.task.name].switches)
    return variant(recipe, "as-released", *(f"{one.option}=as_released" for one in both))


RECIPES.add("orderfree-selfatt-graph", selfatt_graph)
RECIPES.add("orderfree-rnn-graph", rnn_graph)
RECIPES.add("orderfree-selfatt-graph-delex", selfatt_graph_delex)
RECIPES.add("orderfree-rnn-graph-delex", rnn_graph_delex)
RECIPES.add("orderfree-selfatt-stack", selfatt_stack)
RECIPES.add("orderfree-selfatt-stack-delex", selfatt_stack_delex)
RECIPES.add("orderfree-rnn-stack", rnn_stack)
RECIPES.add("orderfree-rnn-stack-delex", rnn_stack_delex)
RECIPES.add("orderfree-selfatt-graph-directed", selfatt_graph_directed)
RECIPES.add("orderfree-selfatt-graph-absolute", selfatt_graph_absolute)
RECIPES.add("orderfree-selfatt-graph-none", selfatt_graph_none)
RECIPES.add("orderfree-selfatt-graph-as-released", selfatt_graph_as_released)
RECIPES.add("orderfree-selfatt-graph-delex-as-released", selfatt_graph_delex_as_released)
