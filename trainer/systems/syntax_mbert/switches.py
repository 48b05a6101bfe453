"""Differences between paper and release of Syntax-MBERT."""

from trainer.switches import Switch

SWITCHES = (
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
        "objectives.tree_distance.target",
        "the distance probe's squared L2 norm is to equal the squared tree distance",
        "it is to equal the tree distance itself",
    ),
    Switch(
        "data.separator_edge",
        "each [SEP] hangs from [CLS]",
        "in pairs, each [SEP] hangs from the last piece of the segment before it",
    ),
)
