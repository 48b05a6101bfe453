"""UD-PrLM, pre-trained on trees and text, with trees in its last layer."""

from syntax.variant import Switch
from trainer.systems.base import SYSTEMS, System
from trainer.systems.udprlm.options import UdPrlmOptions

SWITCHES = (
    Switch(
        "model.activation",
        "the projections of the parser have a ReLU",
        "a LeakyReLU with a slope of 0.1",
    ),
    Switch(
        "model.mlp_init",
        "the projections start with orthogonal weights",
        "with those of the encoder, N(0, 0.02), which are drawn over the orthogonal ones",
    ),
    Switch(
        "model.fusion",
        "the further layer reads h + u, the states and what the structure makes of them",
        "LayerNorm(dropout(Linear(u)) + h)",
    ),
    Switch(
        "model.neighbours",
        "the labels of a token scale its own state; so does the release",
        "`corrected`: they scale the states of its heads, as the text says",
    ),
    Switch(
        "model.mixing",
        "each label has a gain for each feature, the sum of a row of its matrix; so does the "
        "release",
        "`corrected`: the features are multiplied with the matrix of the label",
    ),
)

SYSTEMS.add(
    "udprlm.v1",
    System(
        options=UdPrlmOptions,
        encoder="trainer.systems.udprlm.encoder:UdPrlmEncoder",
        recipes="trainer.systems.udprlm.recipes",
        switches=SWITCHES,
    ),
)
