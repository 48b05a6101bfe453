"""A structural probe of depths as an auxiliary loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.probes import DepthProbe
from trainer.objectives.base import chosen, needed_for, width_of
from trainer.objectives.options import TreeDepthOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class TreeDepth(DepthProbe):
    """`trainer.nn.probes.DepthProbe` over the states that the options name."""

    def __init__(
        self,
        options: TreeDepthOptions,
        config: SyntaxConfig,  # noqa: ARG002
        encoder: Encoder,
    ) -> None:
        super().__init__(width_of(encoder, options.states), options.rank)
        self.options, self.needs = options, needed_for(options.states)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:  # type: ignore[override]
        return super().forward(chosen(encoding, self.options.states), batch)
