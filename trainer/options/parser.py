"""Options of parsers and taggers over the words of any encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from syntax.errors import SpecError
from syntax.options import Count, NonNegativeInt, Probability, check_fields
from syntax.trees.ud import UPOS

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.options.data import DataOptions

Trees: TypeAlias = Literal["gold", "all"]
"""Trees that count: ``gold`` ones alone, or those that parsers made, too."""

MixedStates: TypeAlias = Literal["last", "mix", "layers"]
"""States that words have: the ``last``, or a learned mean (Peters et al. 2018, equation 1).

``mix`` is of the embeddings and all layers; ``layers`` of the layers alone, as in AllenNLP.
"""


@dataclass(frozen=True, slots=True)
class ParserOptions:
    """A biaffine parser over the words of any encoder (Dozat and Manning 2017, section 2).

    A task and an objective share it.

    Attributes:
        states: ``last``, or a learned mean (Peters et al. 2018, equation 1): ``mix``, of the
            embeddings and all layers; ``layers``, of the layers alone.
        mixed_layers: How many states are mixed, the last ones; all when left out.
        pieces: A word's state is that of its ``first`` piece, or the ``mean`` of all its pieces.
        tag_width: Of the embedding of a word's tag, which joins its state; 0 for none. The tags
            come with the trees.
        tag: ``xpos``, the language-specific tag, or ``upos``, which languages share.
        word_width: Of the embedding of the word itself in lower case, which joins its state; 0 for
            none. Words that occur once in the training trees share one vector with unknown words.
        char_width: Of the last states of a bidirectional LSTM over a word's characters, which join
            its state; 0 for none. The words come with the trees.
        projection: Of a linear map of a word's state, before anything joins it; 0 for none.
        context: What is between encoder and parser: ``none``, a bidirectional ``lstm``, one with
            highway connections (``highway_lstm``, a slower loop over words), or layers of a
            ``transformer``.
        context_layers: Its layers.
        context_width: Of an LSTM, in each direction; of the feed-forward part of a transformer.
        context_heads: Heads of a transformer; they divide the width of the words' states.
        context_dropout: Of its input and, but for ``highway_lstm``, between its layers.
        recurrent_dropout: Of the states of a ``highway_lstm``, the same for all words of a
            sequence.
        arc, relation: Width of the two projections of each word, as a dependent and as a head, that
            score heads and relations.
        activation: Of the projections.
        dropout: Of the projections.
        shared_dropout: Whether that drops the same features of all words of a sequence, and those
            of the words' states before the projections, too.
        labels: ``biaffine``: scores of relations have linear terms, too; ``bilinear``: they have
            none.
        relations: What the parser calls relations, subtypes among them; those of the training trees
            when left out, and a result records them.
        xpos, chars, words: What is embedded of each, likewise.
    """

    states: MixedStates = "last"
    mixed_layers: Count | None = None
    pieces: Literal["first", "mean"] = "first"
    tag_width: NonNegativeInt = 0
    context: Literal["none", "lstm", "highway_lstm", "transformer"] = "none"
    context_layers: Count = 1
    context_width: Count = 400
    context_heads: Count = 8
    context_dropout: Probability = 0.0
    arc: Count = 500
    relation: Count = 100
    activation: Literal["leaky_relu", "elu"] = "leaky_relu"
    dropout: Probability = 0.33
    labels: Literal["biaffine", "bilinear"] = "biaffine"
    relations: tuple[str, ...] = ()
    xpos: tuple[str, ...] = ()
    recurrent_dropout: Probability = 0.0
    shared_dropout: bool = False
    char_width: NonNegativeInt = 0
    projection: NonNegativeInt = 0
    chars: tuple[str, ...] = ()
    tag: Literal["xpos", "upos"] = "xpos"
    word_width: NonNegativeInt = 0
    words: tuple[str, ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        return UPOS[1:] if self.tag == "upos" else self.xpos

    def __post_init__(self) -> None:
        check_fields("parser", self)
        if self.char_width % 2:
            raise SpecError(
                f"parser.char_width is {self.char_width}, and each of two directions has half of "
                "it; give an even number"
            )

    def check_fitted(self) -> None:
        if not self.relations:
            raise SpecError(
                "parser.relations is empty, and no training trees have filled it; name the "
                "relations that the parser may give"
            )

    def settled(self, before: ParserOptions) -> ParserOptions:
        return replace(
            self,
            relations=self.relations or before.relations,
            xpos=self.xpos or before.xpos,
            chars=self.chars or before.chars,
            words=self.words or before.words,
        )


BIAFFINE: Final = ParserOptions()
"""The sizes of Dozat and Manning (2017), on the last states."""

MICROBERT: Final = ParserOptions(
    states="mix",
    pieces="mean",
    tag_width=64,
    context="transformer",
    context_width=512,
    arc=50,
    relation=50,
    activation="elu",
    dropout=0.0,
    labels="bilinear",
)
"""The parser head of MicroBERT (Gessler and Zeldes 2022)."""


def fitted_parser(options: ParserOptions, dataset: FeatureDataset, trees: Trees) -> ParserOptions:
    if options.relations:
        return options
    relations = words_with(dataset, "deprel", trees)
    xpos, chars, words = options.xpos, options.chars, options.words
    if options.tag_width and options.tag == "xpos" and not xpos:
        xpos = words_with(dataset, "xpos", trees)
    if options.char_width and not chars:
        chars = tuple(sorted(set("".join(words_with(dataset, "form", trees)))))
    if options.word_width and not words:
        words = _frequent_words(dataset, trees)
    return replace(options, relations=relations, xpos=xpos, chars=chars, words=words)


def _frequent_words(dataset: FeatureDataset, trees: Trees) -> tuple[str, ...]:
    """Words in lower case that occur at least twice in the training trees, as in supar."""
    from featurestore import ParsedDataset

    if not isinstance(dataset, ParsedDataset):
        return ()
    counts = Counter(
        form.lower()
        for parses in dataset.parses(trees == "gold")
        for parse in parses
        for form in parse.form
    )
    return tuple(sorted(word for word, count in counts.items() if count > 1))


def words_with(dataset: FeatureDataset, column: str, trees: Trees) -> tuple[str, ...]:
    """Values of a column of `Parse` in training examples; of those in memory none is known."""
    from featurestore import ParsedDataset

    if not isinstance(dataset, ParsedDataset):
        return ()
    values = dataset.values(column, trees == "gold")
    if not values and trees == "gold":
        raise SpecError(
            f"{dataset.name} has no gold trees with {column}; name a treebank that has them "
            "(`parsebank backfill ud`) as data.dataset, or as data.gold beside parsed text, or "
            "learn what parsers gave: `trees=all`, for tags `tags=as_released`"
        )
    if not values:
        raise SpecError(
            f"{dataset.name} has no trees with {column}; parse it with a model that gives them, "
            "such as one of `parsebank models train udpipe --recipe full`"
        )
    return values


def cut_trees(dataset: FeatureDataset, data: DataOptions) -> Iterator[str]:
    """A warning of texts from which no tree is learned, as something of them is cut."""
    special = dataset.special_tokens.count(len(dataset.card.fields))
    longer = int((dataset.rows.pieces + special > data.max_length).sum())
    if longer and not data.splits:
        yield (
            f"{longer} of {len(dataset)} examples are longer than data.max_length="
            f"{data.max_length}; no tree is learned of a sentence of which something is cut"
        )


def universal(relation: str | None) -> str:
    """A relation without its subtype.

    >>> universal("nsubj:pass")
    'nsubj'
    """
    return (relation or "_").partition(":")[0]


@dataclass(frozen=True, slots=True)
class TaggerOptions:
    """Layers between an encoder and the tags of tokens.

    Attributes:
        states: ``last``, or a learned mean: ``mix``, of the embeddings and all layers;
            ``layers``, of the layers alone.
        pieces: A token's state is that of its ``first`` piece, or the ``mean`` of all its pieces.
        lstm_layers: Layers of a bidirectional LSTM over tokens; 0 for none.
        lstm_width: Of each direction.
        lstm_dropout: Of its input, between its layers, and behind it.
        crf: ``bio`` or ``bioul``: a conditional random field finds the tags of a whole sequence,
            and only such as the scheme allows. With ``bioul`` it knows where mentions end; scores
            are of the dataset's own tags. ``none``: each token has its best tag.
        crf_ends: Whether the field also scores which tag is first, and which is last.
        crf_loss: ``mean`` or ``sum`` of the losses of a batch's sequences.
    """

    states: MixedStates = "last"
    pieces: Literal["first", "mean"] = "first"
    lstm_layers: NonNegativeInt = 0
    lstm_width: Count = 200
    lstm_dropout: Probability = 0.5
    crf: Literal["none", "bio", "bioul"] = "none"
    crf_ends: bool = True
    crf_loss: Literal["mean", "sum"] = "mean"

    def __post_init__(self) -> None:
        check_fields("task.tagger", self)


LINEAR: Final = TaggerOptions()
"""One linear map from the last states."""
