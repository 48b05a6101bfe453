"""GATE (Ahmad et al. 2021, AAAI, https://arxiv.org/abs/2010.03009)."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.gate.options import GateOptions

SWITCHES = (
    Switch(
        "model.diagonal",
        "a word is at distance 1 from itself, so that it attends to itself in every head",
        "at distance 0, which masks: a syntactic head never sees the word itself",
    ),
    Switch(
        "model.position_sign",
        "a structural position says on which side a word stands",
        "it does not: the sign is multiplied twice, and so lost",
    ),
    Switch(
        "model.position_tables",
        "all layers share one table of relative positions",
        "each layer has its own",
    ),
    Switch(
        "model.layer_norm",
        "LayerNorm divides by the root of the variance plus 1e-5",
        "it divides by the standard deviation, of n - 1, plus 1e-6",
    ),
    Switch(
        "model.feed_forward_dropout",
        "the feed-forward network drops between its two maps too",
        "it does not: dropout is on its output alone",
    ),
    Switch(
        "model.graph_bias",
        "a graph convolution adds its bias once",
        "twice, divided by the number of a word's neighbours, itself among them",
    ),
)

SYSTEMS.add(
    "gate.v1",
    System(
        options=GateOptions,
        encoder="trainer.systems.gate.encoder:GateEncoder",
        recipes="trainer.systems.gate.recipes",
        switches=SWITCHES,
        relations="trainer.systems.gate.relations:RELATIONS",
    ),
)
