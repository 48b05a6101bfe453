"""Options of Syntax-MBERT (Ahmad et al. 2021, https://aclanthology.org/2021.acl-long.350)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from syntax.errors import SpecError
from syntax.options import Count, NonNegativeInt, Probability
from syntax.variant import Switch, Variant
from trainer.options.model import ModelOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset


SWITCHES: Final = (
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


_AS_WRITTEN: Final = ("raw", "sentence", "retokenize", "tokens_mwt")
"""Modes of datasets in which a multiword token is one stretch of text."""


@dataclass(frozen=True, slots=True)
class SyntaxBertOptions(ModelOptions):
    """A graph encoder over the tree, whose states bias the attention of an encoder.

    Attributes:
        gat, attention_bias: Switches (`SWITCHES`).
        gat_layers, gat_heads, gat_head_size, gat_dropout: Size of the graph encoder.
        max_distance: Edges that a node of the graph encoder sees, the paper's delta.
        use_upos, use_deprel: Tags that the graph encoder reads.
        syntax_heads: Heads of a layer that syntax biases, the first ones.
        syntax_layers: Layers that it biases, 0-based; all when left out.
        gat_from: Folder of a run of ``syntax_gat.v1``, whose graph encoder is taken.
        freeze_gat: Keep its weights as they are; it has no dropout then.
    """

    name: str = "syntax_bert.v1"
    gat: Variant = "as_published"
    attention_bias: Variant = "as_published"
    gat_layers: Count = 4
    gat_heads: Count = 4
    gat_head_size: Count = 64
    gat_dropout: Probability = 0.1
    max_distance: NonNegativeInt = 4
    use_upos: bool = True
    use_deprel: bool = False
    syntax_heads: Count = 1
    syntax_layers: tuple[int, ...] | None = None
    gat_from: str | None = None
    freeze_gat: bool = False

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if self.freeze_gat and self.gat_from is None:
            raise SpecError("model.freeze_gat needs model.gat_from, a run to take it from")

    @property
    def learned_with(self) -> tuple[str, ...]:
        return (
            *("gat", "attention_bias", "gat_layers", "gat_heads", "gat_head_size", "max_distance"),
            *("use_upos", "use_deprel", "syntax_heads", "syntax_layers"),
        )

    @property
    def has_syntax_states(self) -> bool:
        return True

    def matrices(self) -> tuple[str, ...]:
        return ("distance",) if self.use_syntax else ()

    def warnings(self, dataset: FeatureDataset, values: Mapping[str, Any]) -> Iterator[str]:
        """Warn if all is as released but multiword tokens stay whole, which the release expands."""
        settings = {values.get(switch.option, "as_released") for switch in SWITCHES}
        if settings == {"as_released"} and dataset.spec.mode in _AS_WRITTEN:
            yield (
                "every switch is as released, but the release reads the words of multiword tokens "
                f"(de el, not del), and the pieces of {dataset.name} are of its texts as they are "
                "written; backfill it with --expand-words to have the words"
            )

    @property
    def syntax_size(self) -> int:
        return self.gat_heads * self.gat_head_size


@dataclass(frozen=True, slots=True)
class SyntaxGatOptions(SyntaxBertOptions):
    """The graph encoder by itself, over the word embeddings of an encoder; it learns trees."""

    name: str = "syntax_gat.v1"

    def warnings(self, dataset: FeatureDataset, values: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG002
        return iter(())
