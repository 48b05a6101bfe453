"""Options of the order-free parser (Ahmad et al. 2019, https://aclanthology.org/N19-1253)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from syntax.errors import SpecError
from syntax.options import Count, Probability
from syntax.variant import Variant
from trainer.options.model import check_separate_trees
from trainer.systems.frozen.options import FrozenOptions
from trainer.systems.orderfree.words import sentence_arrays

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore
    from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class OrderFreeOptions(FrozenOptions):
    """An encoder over words and their universal tags: self-attention or LSTMs.

    Attributes:
        words: Read beside a word's tag: ``none`` (delexicalised), its ``vectors`` in a file, or the
            ``states`` of a frozen encoder (``encoder``, ``layer``, ``weights``).
        vectors: File in fastText's text format (``.vec``), with ``{lang}`` for the language.
            Vectors of several languages must be aligned.
        vector_width: Numbers of a vector.
        missing_vector, padding_mask: Switches (`trainer.systems.orderfree.SWITCHES`).
        unknown_share: In training, share of the words that occur once whose vector becomes 0.
        upos_width: Of the embedding of universal tags.
        context: ``selfatt`` or ``rnn``.
        root_position: ``first``: ROOT is a word before the others; ``none``: it is not read.
        layers, heads, head_size, feed_forward: Size of the Transformer; its width is the input's.
        position: ``relative``: the distance of two words; ``directed``: and on which side;
            ``absolute``: sinusoids beside the input; ``none``.
        attention_residual: Attention is added to the ``states``, or to these ``normed``, as in the
            encoder of Ahmad et al. 2019 (CoNLL), commit f9b6acd.
        max_distance: Words farther apart than this count as this far.
        position_width: Of the sinusoids.
        rnn_layers, rnn_width: Bidirectional LSTMs, and the width of each direction.
        word_dropout, tag_dropout: Of whole words' vectors or states, and of whole tags.
        attention_dropout, feed_forward_dropout, layer_dropout: Of attention weights, inside a
            feed-forward network, and of the output of both parts of a layer.
        rnn_dropout: Of input and states of an LSTM, the same at all words of a sentence.
    """

    name: str = "orderfree.v1"
    words: Literal["none", "vectors", "states"] = "none"
    vectors: str = ""
    vector_width: Count = 300
    missing_vector: Variant = "as_published"
    unknown_share: Probability = 0.5
    upos_width: Count = 50
    context: Literal["selfatt", "rnn"] = "selfatt"
    root_position: Literal["first", "none"] = "first"
    layers: Count = 6
    heads: Count = 8
    head_size: Count = 64
    feed_forward: Count = 512
    position: Literal["relative", "directed", "absolute", "none"] = "relative"
    attention_residual: Literal["states", "normed"] = "states"
    max_distance: Count = 10
    position_width: Count = 50
    padding_mask: Variant = "as_published"
    rnn_layers: Count = 3
    rnn_width: Count = 300
    word_dropout: Probability = 0.2
    tag_dropout: Probability = 0.0
    attention_dropout: Probability = 0.2
    feed_forward_dropout: Probability = 0.1
    layer_dropout: Probability = 0.2
    rnn_dropout: Probability = 0.33

    def matrices(self) -> tuple[str, ...]:
        return ()

    def extras(self) -> tuple[str, ...]:
        return {
            "none": (),
            "states": ("word_states",),
            "vectors": ("word_states", "rare_words"),
        }[self.words]

    def stream_options(self) -> Mapping[str, Any]:
        return {}

    def new_encoder(self) -> Mapping[str, Any] | None:
        """The smallest configuration, of which nothing is built; None where states are read."""
        if self.words == "states":
            return None
        sizes = {"hidden_size": 1, "num_attention_heads": 1, "intermediate_size": 1}
        return {"model_type": "bert", "num_hidden_layers": self.layers, **sizes}

    def dataset(self, store: FeatureStore | None, dataset: FeatureDataset) -> FeatureDataset:
        from featurestore import ParsedDataset

        if self.words == "states":
            dataset = FrozenOptions.dataset(self, store, dataset)
        if self.words == "vectors":
            from trainer.systems.orderfree.vectors import with_vectors

            of = (self.vectors, self.vector_width, self.missing_vector)
            return with_vectors(store, dataset, *of)
        return dataset if store is None else ParsedDataset(store, dataset)

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        return sentence_arrays(arrays, root=self.root_position == "first")

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)
        if data.template or data.stride is not None or data.level != "document":
            raise SpecError(
                f"{self.name} reads examples as they are; leave data.template, data.stride and "
                "data.level alone"
            )
        if self.words == "vectors" and not self.vectors:
            raise SpecError(
                "model.words is vectors, and model.vectors names no file; give one, such as "
                "wiki.{lang}.align.vec, or set model.words=none"
            )

    def warnings(self, dataset: FeatureDataset, values: Mapping[str, Any]) -> Iterator[str]:
        from featurestore import ParsedDataset

        ends = values.get("training.buckets") or ()
        if ends and isinstance(dataset, ParsedDataset):
            longer = int((dataset.word_counts() + 1 > max(ends)).sum())
            if longer:
                yield (
                    f"{longer} of {len(dataset)} sentences have more than {max(ends)} words, ROOT "
                    "included, and no batch is drawn from them"
                )
