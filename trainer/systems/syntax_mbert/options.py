"""Options of Syntax-MBERT (Ahmad et al. 2021, https://aclanthology.org/2021.acl-long.350)."""

from __future__ import annotations

from dataclasses import dataclass

from syntax.errors import SpecError
from syntax.variant import Variant, check_variant
from trainer.options.checks import check_range
from trainer.options.model import MODEL_OPTIONS, ModelOptions


@dataclass(frozen=True, slots=True)
class SyntaxBertOptions(ModelOptions):
    """A graph encoder over the tree, whose states bias the attention of an encoder.

    Attributes:
        gat, attention_bias, probe_target: Switches (`trainer.switches.SYNTAX_MBERT`).
        gat_layers, gat_heads, gat_head_size, gat_dropout: Size of the graph encoder.
        max_distance: Edges that a node of the graph encoder sees, the paper's delta.
        use_upos, use_deprel: Tags that the graph encoder reads.
        syntax_heads: Heads of a layer that syntax biases, the first ones.
        syntax_layers: Layers that it biases, 0-based; all when left out.
        structure_weight: Weight of the sum of the objectives in the training loss, the paper's
            alpha; at 0 none is built.
        objectives: Names in `trainer.objectives.OBJECTIVES`.
        probe_rank: Rank of the structural probes.
        gat_from: Folder of a run of ``syntax_gat.v1``, whose graph encoder is taken.
        freeze_gat: Whether that is left as it is.
    """

    name: str = "syntax_bert.v1"
    gat: Variant = "as_published"
    attention_bias: Variant = "as_published"
    probe_target: Variant = "as_published"
    gat_layers: int = 4
    gat_heads: int = 4
    gat_head_size: int = 64
    gat_dropout: float = 0.1
    max_distance: int = 4
    use_upos: bool = True
    use_deprel: bool = False
    syntax_heads: int = 1
    syntax_layers: tuple[int, ...] | None = None
    structure_weight: float = 0.0
    objectives: tuple[str, ...] = ("tree_distance.v1", "tree_depth.v1")
    probe_rank: int = 64
    gat_from: str | None = None
    freeze_gat: bool = False

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        for switch in ("gat", "attention_bias", "probe_target"):
            check_variant(f"model.{switch}", getattr(self, switch))
        for count in ("gat_layers", "gat_heads", "gat_head_size", "syntax_heads", "probe_rank"):
            check_range(f"model.{count}", getattr(self, count), 1)
        check_range("model.gat_dropout", self.gat_dropout, 0, 1)
        check_range("model.max_distance", self.max_distance, 0)
        if self.freeze_gat and self.gat_from is None:
            raise SpecError("model.freeze_gat needs model.gat_from, a run to take it from")
        check_range("model.structure_weight", self.structure_weight, 0)

    def matrices(self) -> tuple[str, ...]:
        """Distances and depths, unless the trees are left out."""
        return ("distance", "depth") if self.use_syntax else ()

    @property
    def syntax_size(self) -> int:
        """Width of the graph encoder's states."""
        return self.gat_heads * self.gat_head_size


@dataclass(frozen=True, slots=True)
class SyntaxGatOptions(SyntaxBertOptions):
    """The graph encoder by itself, over the word embeddings of an encoder.

    Attributes:
        structure_weight: As above; the losses are all that is learned.
    """

    name: str = "syntax_gat.v1"
    structure_weight: float = 1.0


MODEL_OPTIONS.add("syntax_bert.v1", SyntaxBertOptions)
MODEL_OPTIONS.add("syntax_gat.v1", SyntaxGatOptions)
