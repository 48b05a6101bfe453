"""A structural probe of distances as an auxiliary loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.probes import DistanceProbe
from trainer.objectives.base import chosen, needed_for, width_of
from trainer.objectives.options import TreeDistanceOptions

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig


class TreeDistance(DistanceProbe):
    """`trainer.nn.probes.DistanceProbe` over the states that the options name."""

    def __init__(
        self,
        options: TreeDistanceOptions,
        config: SyntaxConfig,  # noqa: ARG002
        encoder: Encoder,
    ) -> None:
        super().__init__(width_of(encoder, options.states), options.rank, options.target)
        self.options, self.needs = options, needed_for(options.states)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> Tensor:  # type: ignore[override]
        return super().forward(chosen(encoding, self.options.states), batch)
