"""No prediction: the objectives of the model are all that is learned."""

from __future__ import annotations

from torch import nn

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import HeadOutput, SyntaxEncoding


class TreesHead(nn.Module):
    """Neither logits nor a loss: the weighted objectives are the loss.

    Args:
        config: Of a model that has objectives.
        width: Of the encoder's states; not used.

    Raises:
        SpecError: The model has no objectives with a weight.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:  # noqa: ARG002
        super().__init__()
        trees = config.model_options().use_syntax
        if not trees or not any(one.weight for one in config.objective_options()):
            raise SpecError(
                f"{config.model['name']} has no objectives with a weight, and trees.v1 learns "
                "nothing else; train syntax_gat.v1 with tree_distance.v1"
            )

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:  # noqa: ARG002
        """Nothing."""
        return HeadOutput({}, None)
