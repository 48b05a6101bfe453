"""Options of SG-Net (Zhang et al. 2020, AAAI, https://arxiv.org/abs/1908.05147)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from syntax.matrices import SgNetVariant
from syntax.options import Probability
from syntax.variant import Variant
from trainer.options.model import ModelOptions, check_separate_trees
from trainer.systems.transformer.options import TransformerOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class SgNetOptions(ModelOptions):
    """A stock encoder, and a layer in which each word attends to itself and its ancestors.

    Attributes:
        mask: A switch (`trainer.systems.sgnet.SWITCHES`); or ``convert_span``, the released mask as
            the script of that name makes it: every piece attends to itself.
        masking: A switch: how the mask enters the scores; or ``none``, a layer without a mask,
            which reads no tree (Table 6).
        layer: A switch: what follows the attention in the layer.
        aggregation: A switch: the mix of the states before and after the layer; or, of Table 6,
            ``concatenation`` or ``bi_attention`` before a linear map.
        specials: A switch: the states of special tokens.
        alpha: Share of the encoder's own states, where the mix is fixed (equation 9).
    """

    name: str = "sgnet.v1"
    mask: SgNetVariant = "as_published"
    masking: Literal["as_published", "as_released", "none"] = "as_published"
    layer: Variant = "as_published"
    aggregation: Literal["as_published", "as_released", "concatenation", "bi_attention"] = (
        "as_published"
    )
    specials: Variant = "as_published"
    alpha: Probability = 0.5

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("mask", "masking", "layer", "aggregation", "specials", "alpha")

    @property
    def sgnet(self) -> SgNetOptions:
        """The options of the layer and of the mix."""
        return self

    @property
    def mask_name(self) -> str:
        return f"sgnet_mask(variant={self.mask})"

    def matrices(self) -> tuple[str, ...]:
        return (self.mask_name,) if self.use_syntax and self.masking != "none" else ()

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)

    def warnings(self, dataset: FeatureDataset, values: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG002
        """Warn where a task of whole texts reads the first position, which the layer leaves."""
        reads_first = values["task.name"] in ("sequence_classification.v1", "multiple_choice.v1")
        if self.use_syntax and self.specials == "as_published" and reads_first:
            yield (
                f"{values['task.name']} reads the first position, whose state stays the stock "
                "encoder's, so that the layer learns nothing from it; set "
                "model.specials=as_released to mix it, too"
            )


@dataclass(frozen=True, slots=True)
class SgNetTransformerOptions(TransformerOptions):
    """The Transformer's encoder, and a layer as that of `SgNetOptions`, for translation.

    Attributes:
        masking: ``add``: words other than ancestors have no weight; ``multiply``: their score is 0,
            which leaves them one.
        aggregation: Shares of the states before and after the layer: ``fixed``, or ``learned`` with
            a factor of the mix, as the release of `SgNetOptions` has it.
        alpha: Share of the encoder's own states, where they are fixed.
    """

    name: str = "sgnet_transformer.v1"
    masking: Literal["add", "multiply"] = "add"
    aggregation: Literal["fixed", "learned"] = "fixed"
    alpha: Probability = 0.5

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("masking", "aggregation", "alpha")

    @property
    def sgnet(self) -> SgNetOptions:
        return SgNetOptions(
            masking="as_published" if self.masking == "multiply" else "as_released",
            layer="as_released",
            aggregation="as_published" if self.aggregation == "fixed" else "as_released",
            specials="as_released",
            alpha=self.alpha,
        )

    @property
    def mask_name(self) -> str:
        return self.sgnet.mask_name

    def matrices(self) -> tuple[str, ...]:
        return (self.mask_name,) if self.use_syntax else ()

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)
