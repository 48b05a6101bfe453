"""A linear map under which states spell distances or depths (Hewitt and Manning 2019).

Letters in shapes: ``B`` examples, ``L`` positions: words, or pieces.
"""

from __future__ import annotations

from torch import nn

from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.probes import DepthProbe, DistanceProbe
from trainer.options import StructuralProbeOptions


class StructuralProbeHead(nn.Module):
    """The probe, and its L1 loss to the tree (equation 2; section 2.3 for depths).

    Squared norms are compared with distances themselves, as in the paper.

    Args:
        config: Which probe, and its rank.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__()
        options = config.task_options()
        assert isinstance(options, StructuralProbeOptions)
        self.target = options.target
        self.probe: DistanceProbe | DepthProbe
        if options.target == "distance":
            self.probe = DistanceProbe(width, options.rank, target="as_released")
        else:
            self.probe = DepthProbe(width, options.rank)

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Predicted ``distance``, *shape* (B, L, L), or ``depth``, (B, L), and the loss."""
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        return HeadOutput(
            {self.target: self.probe.predict(states_BLD)}, self.probe(states_BLD, batch)
        )
