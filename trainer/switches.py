"""Where a published system and its released code differ.

A paper and its code rarely agree in every line. Each such place is one switch with two settings,
so that either can be trained, and compared. Differences that are plain faults of the release, with
nothing to compare, have no switch; the pages of docs/systems list them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Switch:
    """One place where paper and code differ.

    Attributes:
        option: The recipe option that sets it.
        published, released: What each setting does.
    """

    option: str
    published: str
    released: str


SYNTAX_MBERT: Final = (
    Switch(
        "model.gat",
        "scaled dot-product attention whose queries and keys share one projection",
        "additive attention: LeakyReLU(0.2) of a source and a target score, weights over the "
        "same projection as the values",
    ),
    Switch(
        "model.attention_bias",
        "syntax biases queries and keys, through linear maps without a constant",
        "syntax biases keys and values, through linear maps with a constant",
    ),
    Switch(
        "model.probe_target",
        "the distance probe's squared L2 norm is to equal the squared tree distance",
        "it is to equal the tree distance itself",
    ),
    Switch(
        "data.separator_edge",
        "each [SEP] hangs from [CLS]",
        "in pairs, each [SEP] hangs from the last piece of the segment before it",
    ),
)
"""The switches of Syntax-MBERT (Ahmad et al. 2021, https://aclanthology.org/2021.acl-long.350)."""


SGNET: Final = (
    Switch(
        "model.mask",
        "a word attends to itself and its ancestors, a special token to itself",
        "a word attends to each word between the first and the last of whose subtree it lies, if "
        "these are two; leaves of one piece and later pieces do not attend to themselves; special "
        "tokens attend to everything",
    ),
    Switch(
        "model.aggregation",
        "the states before and after the syntax-guided layer are mixed in fixed shares",
        "their shares are learned, and so is a factor of the outcome",
    ),
)
"""The switches of SG-Net (Zhang et al. 2020, https://arxiv.org/abs/1908.05147)."""

SLA: Final = (
    Switch(
        "model.window",
        "a piece sees what is near itself or one of its two neighbours",
        "what is near itself or its left neighbour (lr-sib); special tokens but the first attend "
        "to everything",
    ),
    Switch(
        "model.gate",
        "the gate weighs the global attention",
        "the gate weighs the local attention (the authors' own code)",
    ),
)
"""The switches of syntax-aware local attention (Li et al. 2021, Findings of ACL)."""

GATE: Final = (
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
        "it does not: dropout is on its outcome alone",
    ),
)
"""The switches of GATE (Ahmad et al. 2021, AAAI, https://arxiv.org/abs/2010.03009)."""

RELATION: Final = (
    Switch(
        "task.empty_precision",
        "precision is 0 where no relation is predicted at all",
        "it is 1",
    ),
    Switch(
        "task.classifier",
        "a hidden layer with dropout, then the classes",
        "two hidden layers without dropout, then the classes",
    ),
)
"""The switches of relations, in the scores and the classifier of GATE's release."""

TAGGING: Final = (
    Switch(
        "task.word_labels",
        "a token that the parser made several words of has its label once: B- goes on as I-",
        "each of its words has the token's label, so that one mention becomes several",
    ),
)
"""The switch of tagging, in the data of Syntax-MBERT's release."""

SWITCHES: Final = {
    "gate.v1": GATE,
    "intent_slots.v1": TAGGING,
    "relation.v1": RELATION,
    "sgnet.v1": SGNET,
    "sla.v1": SLA,
    "syntax_bert.v1": SYNTAX_MBERT,
    "syntax_gat.v1": SYNTAX_MBERT,
    "token_classification.v1": TAGGING,
}
"""The switches of each model and task that has some, by its name."""
