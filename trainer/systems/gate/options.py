"""Options of GATE (Ahmad et al. 2021, AAAI, https://arxiv.org/abs/2010.03009)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from syntax.errors import SpecError
from syntax.options import Bounds, Count, Probability
from syntax.variant import Variant
from trainer.options.model import ModelOptions
from trainer.systems.frozen.options import FrozenOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore
    from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class GateOptions(FrozenOptions):
    """A Transformer over words, whose first heads attend to what is near in the tree.

    Attributes:
        words: A word's ``states`` in the frozen encoder, or its ``vectors`` in a file.
        vectors: File in fastText's text format (``.vec``), with ``{lang}`` for the language.
            Vectors of several languages must be aligned.
        vector_width: Numbers of a vector.
        target: A language into whose words half of the sentences are translated in training, word
            by word (Liu et al. 2019); needs vectors of both.
        neighbours: Words of the target that may translate a word, the nearest ones.
        choice: ``mix`` of them by their probabilities in context, or the ``best``, as released.
        context: ``attention``; or as two baselines ``gcn``, graph convolutions over the tree
            (Subburathinam et al. 2019), and ``lstm``, bidirectional LSTMs (Ni and Florian 2019).
        context_width: Of the states of a baseline, both directions of an LSTM together.
        layers: Of any context.
        heads, head_size, feed_forward: Size of the Transformer.
        deltas: Edges that each syntactic head sees, the first heads; the others see everything.
        prune: Edges off the paths between two mentions, beyond which the tree is cut off; 1 in the
            released scripts, negative for the whole tree.
        diagonal, position_sign, position_tables, layer_norm, feed_forward_dropout, graph_bias:
            Switches.
        positions: ``none``; or as baselines ``sequence``, relative positions in the text (Shaw et
            al. 2018), ``structure``, in the tree, and ``depth``, the absolute ones there: sinusoids
            of a word's distance from its root, added to the input (Wang et al. 2019).
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
    graph_bias: Variant = "as_published"
    positions: Literal["none", "sequence", "structure", "depth"] = "none"
    max_position: Count = 10
    use_upos: bool = True
    use_deprel: bool = True
    use_tags: bool = True
    use_types: bool = False
    tag_size: Count = 30
    layer_dropout: Probability = 0.5
    word_dropout: Probability = 0.0
    context: Literal["attention", "gcn", "lstm"] = "attention"
    context_width: Count = 200
    words: Literal["states", "vectors"] = "states"
    vectors: str = ""
    vector_width: Count = 300
    target: str = ""
    neighbours: Count = 3
    choice: Literal["mix", "best"] = "mix"

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if len(self.deltas) > self.heads:
            raise SpecError(
                f"model.deltas has {len(self.deltas)} values, and model.heads is {self.heads}; "
                "give at most one for each head"
            )
        if self.context != "attention" and self.positions != "none":
            raise SpecError(
                f"model.positions is {self.positions}, and model.context={self.context} has none; "
                "set model.positions=none"
            )
        if self.context == "lstm" and self.context_width % 2:
            raise SpecError(
                f"model.context_width is {self.context_width}, and each direction of an LSTM has "
                "half of it; give an even number"
            )
        if self.target and self.words != "vectors":
            raise SpecError(
                f"model.target is {self.target}, and model.words={self.words} cannot be "
                "translated; set model.words=vectors"
            )

    @property
    def distance(self) -> str:
        return f"gate_distance(keep={self.prune})"

    @property
    def thresholds(self) -> tuple[int, ...]:
        return self.deltas if self.use_syntax and self.context == "attention" else ()

    @property
    def reads_graph(self) -> bool:
        return self.use_syntax and self.context == "gcn"

    def matrices(self) -> tuple[str, ...]:
        reads = bool(self.thresholds) or self.reads_graph or self.positions == "structure"
        depth = ("depth",) if self.positions == "depth" else ()
        return ((self.distance,) if reads else ()) + depth

    def new_encoder(self) -> Mapping[str, Any] | None:
        """With vectors, a configuration of their width, of which nothing is built."""
        if self.words == "states":
            return None
        sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 1}
        return {"model_type": "bert", "hidden_size": self.vector_width, **sizes}

    def dataset(self, store: FeatureStore | None, dataset: FeatureDataset) -> FeatureDataset:
        if self.words == "states":
            return FrozenOptions.dataset(self, store, dataset)
        from trainer.systems.orderfree.vectors import with_vectors

        if self.target and store is not None:
            from trainer.systems.gate.neighbours import NeighbourDataset

            near = (self.target, self.neighbours)
            return NeighbourDataset(store, dataset, self.vectors, self.vector_width, *near)
        return with_vectors(store, dataset, self.vectors, self.vector_width)

    def check_data(self, data: DataOptions) -> None:
        FrozenOptions.check_data(self, data)
        if self.words == "vectors" and not self.vectors:
            raise SpecError(
                "model.words is vectors, and model.vectors names no file; give one, such as "
                "wiki.{lang}.align.vec, or set model.words=states"
            )
