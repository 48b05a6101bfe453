"""Options of SG-Net (Zhang et al. 2020, AAAI, https://arxiv.org/abs/1908.05147)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from syntax.matrices import SgNetVariant
from syntax.options import Probability
from syntax.variant import Variant
from trainer.options.model import ModelOptions, check_separate_trees
from trainer.systems.transformer.options import TransformerOptions

if TYPE_CHECKING:
    from trainer.options.data import DataOptions


@dataclass(frozen=True, slots=True)
class SgNetOptions(ModelOptions):
    """A stock encoder, and a layer in which each word attends to itself and its ancestors.

    Attributes:
        mask: A switch (`trainer.systems.sgnet.SWITCHES`); or ``convert_span``, the released mask as
            the script of that name makes it: every piece attends to itself.
        aggregation: A switch: the mix of the states before and after the layer.
        alpha: Share of the encoder's own states, where the mix is fixed (equation 9).
    """

    name: str = "sgnet.v1"
    mask: SgNetVariant = "as_published"
    aggregation: Variant = "as_published"
    alpha: Probability = 0.5

    @property
    def learned_with(self) -> tuple[str, ...]:
        return ("mask", "aggregation", "alpha")

    @property
    def mask_name(self) -> str:
        return f"sgnet_mask(variant={self.mask})"

    def matrices(self) -> tuple[str, ...]:
        return (self.mask_name,) if self.use_syntax else ()

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)


PUBLISHED_MASK: Final = "sgnet_mask(variant=as_published)"


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
    def mask_name(self) -> str:
        return PUBLISHED_MASK

    def matrices(self) -> tuple[str, ...]:
        return (self.mask_name,) if self.use_syntax else ()

    def check_data(self, data: DataOptions) -> None:
        check_separate_trees(self.name, data)
