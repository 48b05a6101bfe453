"""Options of the objectives: probes, contrastive losses, masked pieces, parser heads, taggers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from syntax.batches.labels import IGNORE
from syntax.options import Count, Share
from syntax.variant import Variant
from trainer.masking import MASKED_ARRAYS, PieceMasking, piece_masking
from trainer.nn.parser_targets import (
    TREES,
    WORDS,
    column_ids,
    further_words,
    learned_rows,
    parser_targets,
)
from trainer.options.objective import ObjectiveOptions
from trainer.options.parser import MICROBERT, ParserOptions, Trees, fitted_parser, words_with

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from syntax.batches import SpecialTokens

PHRASE_ARRAYS: Final = ("phrase_offsets", "phrase_anchor", "phrase_positive", "phrase_negatives")
"""The loss's input of `syntax.contrast.PhraseSampler`'s samples."""

TREE_ARRAYS: Final = ("tree_offsets", "tree_root", "tree_positive", "tree_negatives")
"""The loss's input of `syntax.contrast.TreeSampler`'s samples."""


@dataclass(frozen=True, slots=True)
class TreeDepthOptions(ObjectiveOptions):
    """States must tell the depths of the nodes (Ahmad et al. 2021, section 2.4).

    Attributes:
        states: ``last``; ``syntax``, those of a graph encoder; or the number of a layer, 0 for the
            embeddings.
        rank: Of the probe.
    """

    name: str = "tree_depth.v1"
    states: Literal["last", "syntax"] | int = "last"
    rank: Count = 64

    def reads_syntax_states(self) -> bool:
        return self.states == "syntax"

    def matrices(self) -> tuple[str, ...]:
        return ("distance", "depth")


@dataclass(frozen=True, slots=True)
class TreeDistanceOptions(ObjectiveOptions):
    """States must tell the distances between nodes (Ahmad et al. 2021, section 2.4).

    Attributes:
        states, rank: As in `TreeDepthOptions`.
        target: A switch: what the squared norm equals.
    """

    name: str = "tree_distance.v1"
    states: Literal["last", "syntax"] | int = "last"
    rank: Count = 64
    target: Variant = "as_published"

    def reads_syntax_states(self) -> bool:
        return self.states == "syntax"

    def matrices(self) -> tuple[str, ...]:
        return ("distance",)


@dataclass(frozen=True, slots=True)
class PhraseContrastOptions(ObjectiveOptions):
    """Pieces of a phrase attend alike, and unlike others (`trainer.objectives.phrase`).

    It reads the samples of ``data.samplers=phrase``.

    Attributes:
        phrase_loss: A switch, with JSD the divergence of what two pieces attend to.
            ``as_published``: InfoNCE of -JSD. ``synclm``: the negated InfoNCE of +JSD, which pulls
            the same way and is never above 0. ``lr_sib``: InfoNCE of +JSD per position, which
            pulls the other way, and hardly at all.
        per_position: Divide divergences by the number of real positions; left out, only
            ``lr_sib`` does.
        attention: Weights ``before_dropout``, or ``after_dropout`` in training (both releases).
        temperature: Divisor of similarities, tau.
    """

    name: str = "phrase.v1"
    phrase_loss: Literal["as_published", "synclm", "lr_sib"] = "as_published"
    per_position: bool | None = None
    attention: Literal["before_dropout", "after_dropout"] = "before_dropout"
    temperature: Share = 0.1

    def arrays(self) -> tuple[str, ...]:
        return PHRASE_ARRAYS


@dataclass(frozen=True, slots=True)
class TreeContrastOptions(ObjectiveOptions):
    """A subtree is nearer to its root than changed copies of it are (`trainer.objectives.tree`).

    It reads the samples of ``data.samplers=tree``.

    Attributes:
        tree_root: A switch: the root is ``out`` of its own set (published), or ``in`` it (SynCLM).
        projection: A switch: compare two linear maps of the states (SynCLM), not the states.
        tree_topk: A switch: the three most similar of all real negatives count (``masked``), or
            of these and empty cells of similarity 0 (``released``, lr-sib).
        temperature: Divisor of similarities, tau.
    """

    name: str = "tree.v1"
    tree_root: Literal["out", "in"] = "out"
    projection: bool = False
    tree_topk: Literal["masked", "released"] = "masked"
    temperature: Share = 0.1

    def arrays(self) -> tuple[str, ...]:
        return TREE_ARRAYS


@dataclass(frozen=True, slots=True)
class MlmObjectiveOptions(ObjectiveOptions):
    """Some pieces are hidden from the encoder, and its states must tell them.

    In evaluation nothing is masked.

    Attributes:
        masked, whole_words, output_bias: As in `trainer.tasks.mlm.MlmOptions`.
    """

    name: str = "mlm.v1"
    masked: Share = 0.15
    whole_words: bool = False
    output_bias: bool = True

    def arrays(self) -> tuple[str, ...]:
        return MASKED_ARRAYS

    def samplers(self, special: SpecialTokens, training: bool) -> tuple[PieceMasking, ...]:
        return (piece_masking(special, self.masked if training else 0.0, self.whole_words),)


@dataclass(frozen=True, slots=True)
class DependencyObjectiveOptions(ObjectiveOptions):
    """States must tell the tree of words: the parser head of MicroBERT (Gessler and Zeldes 2022).

    Attributes:
        parser: Parts and sizes of the parser.
        detached: The parser learns from it, and the encoder does not.
        trees: Which trees are learned, ``gold`` ones or ``all``.
        rows: A switch: which words of a batch have a head to learn.
        average: A switch: what the sum of losses is divided by.
    """

    name: str = "dependency.v1"
    parser: ParserOptions = MICROBERT
    detached: bool = True
    trees: Trees = "gold"
    rows: Variant = "as_published"
    average: Variant = "as_published"

    def reads_parses(self) -> bool:
        return True

    def arrays(self) -> tuple[str, ...]:
        return (*WORDS, *TREES, *further_words(self.parser).values())

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return parser_targets(self.parser, arrays, self.trees, self.rows)

    def fitted(self, dataset: FeatureDataset) -> DependencyObjectiveOptions:
        return replace(self, parser=fitted_parser(self.parser, dataset, self.trees))

    def settled(self, before: ObjectiveOptions) -> ObjectiveOptions:
        if not isinstance(before, DependencyObjectiveOptions):
            return self
        return replace(self, parser=self.parser.settled(before.parser))


@dataclass(frozen=True, slots=True)
class XposTaggingOptions(ObjectiveOptions):
    """States must tell the language-specific tag of each word (Gessler and Zeldes 2022).

    Attributes:
        states: ``mix``, a learned mean of embeddings and layers, or ``last``.
        pieces: A word's state is that of its ``first`` piece, or the ``mean`` of all its pieces.
        tags: A switch: whose tags are learned.
        names: The tags; left out, those of the training examples, which a result records.
    """

    name: str = "xpos_tagging.v1"
    states: Literal["last", "mix"] = "mix"
    pieces: Literal["first", "mean"] = "mean"
    tags: Variant = "as_published"
    names: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        return self.name.partition("_")[0]

    @property
    def trees(self) -> Trees:
        return "gold" if self.tags == "as_published" else "all"

    def reads_parses(self) -> bool:
        return True

    def arrays(self) -> tuple[str, ...]:
        return (f"{self.column}_pieces", f"{self.column}_sources", f"{self.column}_tags")

    def targets(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays; tags by their place among the names, -100 for none to learn."""
        layout = arrays["word_layout"]
        tags = np.full(layout.words.shape, IGNORE, np.int64)
        if "parses" in arrays:
            tags = column_ids(arrays, self.column, self.names)
            tags[~learned_rows(arrays, self.trees)] = IGNORE
        return dict(zip(self.arrays(), (layout.pieces, layout.sources, tags), strict=True))

    def fitted(self, dataset: FeatureDataset) -> XposTaggingOptions:
        return replace(self, names=self.names or words_with(dataset, self.column, self.trees))

    def warnings(self, dataset: FeatureDataset) -> Iterator[str]:
        from featurestore import ParsedDataset

        if self.trees == "gold" or not isinstance(dataset, ParsedDataset):
            return
        count = 0
        for parses in dataset.made_by_parsers():
            if any(any(getattr(parse, self.column)) for parse in parses):
                return
            count += 1
        if count:
            yield (
                f"objectives.{self.name}.tags is {self.tags}, and none of the {count} parsed "
                f"examples of {dataset.name} has {self.column}, so gold trees alone teach tags; "
                "parse with a model that gives them, such as one of `parsebank models train "
                "udpipe --recipe full`"
            )

    def settled(self, before: ObjectiveOptions) -> ObjectiveOptions:
        if not isinstance(before, XposTaggingOptions):
            return self
        return replace(self, names=self.names or before.names)


@dataclass(frozen=True, slots=True)
class UposTaggingOptions(XposTaggingOptions):
    """States must tell the universal tag of each word; as `XposTaggingOptions`."""

    name: str = "upos_tagging.v1"
