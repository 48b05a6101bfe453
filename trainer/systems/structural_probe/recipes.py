"""Structural probes (Hewitt and Manning 2019), much as the authors train them.

Figures are the release's (commit ad37b02): ``ptb-prd-BERTbase7`` and ``ptb-pad-BERTbase7``,
``regimen.py``, and for the cased encoder ``convert_raw_to_bert.py``. Its README counts layers of
BERT base from 0 to 11, without the embeddings, by which its layer 7 is our 8; comments in its
configurations count from 1 to 12, as we do.
"""

from __future__ import annotations

from trainer import options
from trainer.options import FrozenOptions, Recipe, TrainingOptions
from trainer.recipes.base import RECIPES, whole_sentences


def distance() -> Recipe:
    """Distances between words of a treebank."""
    return _probe("probe-distance", options.StructuralProbeOptions(target="distance", rank=768))


def depth() -> Recipe:
    """Depths of words of a treebank."""
    return _probe("probe-depth", options.StructuralProbeOptions(target="depth", rank=768))


def _probe(name: str, task: options.StructuralProbeOptions) -> Recipe:
    return Recipe(
        name=name,
        data=whole_sentences("ud"),
        model=FrozenOptions(encoder="bert-base-cased", layer=7),
        task=task,
        training=TrainingOptions(
            batch_size=20,
            epochs=40,
            learning_rate=1e-3,
            schedule="plateau",
            decay=0.1,
            clip_norm=0.0,
            evaluate_every="epoch",
            patience=5,
        ),
    )


RECIPES.add("probe-distance", distance)
RECIPES.add("probe-depth", depth)
