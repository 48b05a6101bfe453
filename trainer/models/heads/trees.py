"""No prediction: the auxiliary losses of the model are all that is learned."""

from __future__ import annotations

import torch
from torch import nn

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding


class TreesHead(nn.Module):
    """The sum of the model's auxiliary losses, as the loss of the task.

    Args:
        config: Of a model that has some.
        width: Of the encoder's states; not used.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:  # noqa: ARG002
        super().__init__()
        self.model = config.model["name"]

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:  # noqa: ARG002
        """No logits, and the loss.

        Raises:
            SpecError: The model has no auxiliary losses.
        """
        if not encoding.objectives:
            raise SpecError(
                f"{self.model} has no auxiliary losses, and trees.v1 learns nothing else; "
                "train syntax_gat.v1"
            )
        return HeadOutput({}, torch.stack(list(encoding.objectives.values())).sum())
