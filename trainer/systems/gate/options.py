"""Options of GATE (Ahmad et al. 2021, AAAI, https://arxiv.org/abs/2010.03009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from syntax.errors import SpecError
from syntax.options import Bounds, Count, Probability
from syntax.variant import Variant
from trainer.options.model import ModelOptions
from trainer.systems.frozen.options import FrozenOptions


@dataclass(frozen=True, slots=True)
class GateOptions(FrozenOptions):
    """A Transformer over words, whose first heads attend to what is near in the tree.

    Attributes:
        layers, heads, head_size, feed_forward: Size of the Transformer.
        deltas: Edges that each syntactic head sees, the first heads; the others see everything.
        prune: Edges off the paths between two mentions, beyond which the tree is cut off; 1 in the
            released scripts, negative for the whole tree.
        diagonal, position_sign, position_tables, layer_norm, feed_forward_dropout: Switches.
        positions: ``none``; or as two baselines ``sequence``, relative positions in the text (Shaw
            et al. 2018), and ``structure``, in the tree (Wang et al. 2019).
        max_position: The largest relative position that is told from larger ones.
        use_upos, use_deprel, use_tags, use_types: Read the words' tags, their relations, the
            dataset's own tags, and the types of the two mentions.
        tag_size: Width of each of their embeddings.
        layer_dropout: Of the words' input and in the layers.
        word_dropout: Probability that a word is read as zeros; in training only.
    """

    name: str = "gate.v1"
    dropout: Probability = 0.5
    layers: Count = 1
    heads: Count = 8
    head_size: Count = 64
    feed_forward: Count = 2048
    deltas: tuple[Annotated[int, Bounds(1, 254)], ...] = (2, 2, 4, 4)
    prune: int = -1
    diagonal: Variant = "as_published"
    position_sign: Variant = "as_published"
    position_tables: Variant = "as_published"
    layer_norm: Variant = "as_published"
    feed_forward_dropout: Variant = "as_published"
    positions: Literal["none", "sequence", "structure"] = "none"
    max_position: Count = 10
    use_upos: bool = True
    use_deprel: bool = True
    use_tags: bool = True
    use_types: bool = False
    tag_size: Count = 30
    layer_dropout: Probability = 0.5
    word_dropout: Probability = 0.0

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if len(self.deltas) > self.heads:
            raise SpecError(
                f"model.deltas has {len(self.deltas)} values, and model.heads is {self.heads}; "
                "give at most one for each head"
            )

    @property
    def distance(self) -> str:
        return f"gate_distance(keep={self.prune})"

    @property
    def thresholds(self) -> tuple[int, ...]:
        return self.deltas if self.use_syntax else ()

    def matrices(self) -> tuple[str, ...]:
        reads = bool(self.thresholds) or self.positions == "structure"
        return (self.distance,) if reads else ()
