"""LISA's runs. The paper labels semantic roles; slots are the nearest that readers give.

The weights 1 and 0.1 of heads and labels are the release's (commit 231cac7); the rest is ours.
"""

from __future__ import annotations

from dataclasses import replace

from trainer.options import LisaOptions, ParseHeadOptions, Recipe
from trainer.recipes.base import RECIPES
from trainer.systems.sgnet.recipes import atis


def lisa_atis() -> Recipe:
    """Intents and slots of ATIS, with one head of BERT that learns to parse."""
    model = LisaOptions(encoder="bert-base-uncased")
    return replace(atis(), name="lisa-atis", model=model, objectives=(ParseHeadOptions(),))


RECIPES.add("lisa-atis", lisa_atis)
