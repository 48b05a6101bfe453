"""What an encoder is: from a batch to states, in a module of its own."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from transformers import PreTrainedModel

from syntax.registry import Registry
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding


class Encoder(Protocol):
    """A torch module that is built from a configuration.

    With ``use_syntax=False`` it must compute what its syntax-free twin computes: for most, the
    stock encoder's own states.

    Args:
        config: What to build; ``config.model_options()`` are of the encoder's own class.
        pretrained: A stock encoder to take instead of a new one.
    """

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None: ...

    @property
    def width(self) -> int:
        """Width of its states."""
        ...

    def __call__(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        """Encode a batch; ``options`` go to the stock encoder."""
        ...


@runtime_checkable
class ReachesIntoAttention(Protocol):
    """An encoder that is only right if the stock encoder's attention does what it is told."""

    def check_attention(self) -> None:
        """Try the stock encoder on a few pieces (`trainer.nn.selfcheck`).

        Raises:
            SpecError: Its attention does otherwise.
        """
        ...


ENCODERS: Registry[type[Encoder]] = Registry("model")
"""Every encoder by the name of its model."""
