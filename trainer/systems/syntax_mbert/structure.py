"""The auxiliary losses over the graph encoder's states."""

from __future__ import annotations

from torch import Tensor, nn

from trainer.batch import SyntaxBatch
from trainer.objectives import OBJECTIVES
from trainer.options import SyntaxBertOptions


class StructureLosses(nn.Module):
    """The objectives that the options name, if they weigh anything.

    Args:
        options: Names, weight and sizes.
    """

    def __init__(self, options: SyntaxBertOptions) -> None:
        super().__init__()
        self.weight = options.structure_weight
        weighted = options.use_syntax and options.structure_weight > 0
        self.names = options.objectives if weighted else ()
        self.objectives = nn.ModuleList(OBJECTIVES[name](options) for name in self.names)

    def forward(self, states_BLG: Tensor | None, batch: SyntaxBatch) -> dict[str, Tensor]:
        """Each loss by name, unweighted."""
        return {
            name: objective(states_BLG, batch)
            for name, objective in zip(self.names, self.objectives, strict=True)
        }
