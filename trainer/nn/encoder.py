"""An encoder, a torch module from a batch to states; and the one that nothing is added to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn
from transformers import PreTrainedModel

from trainer.batch import SyntaxBatch
from trainer.models.outputs import SyntaxEncoding
from trainer.nn.stock import new_encoder, run_encoder

if TYPE_CHECKING:
    from trainer.models.config import SyntaxConfig
    from trainer.nn.transformer import GeneratingDecoder
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class Encoder(nn.Module):
    """The base of every system's encoder.

    A subclass sets ``width`` and defines ``forward``. With ``use_syntax=False`` it computes what
    its syntax-free twin computes: for most, the stock encoder's own states.

    Attributes:
        options: Of the model; a subclass annotates them with their own class.
        width: Of the last states.
        syntax_width: Of the syntax states; None where the encoder has none.
    """

    gives: ClassVar[frozenset[str]] = frozenset()
    """Outputs on request: ``hidden_states``, ``attentions``, ``last_memory``."""

    options: Any
    width: int
    syntax_width: int | None = None

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:  # noqa: ARG002
        super().__init__()
        self.options = config.model_options()

    @property
    def stock(self) -> PreTrainedModel | None:
        """The stock encoder that training runs; None where it runs none."""
        return None

    @property
    def own_decoder(self) -> GeneratingDecoder | None:
        """The decoder of a model that has one; otherwise tasks that write texts bring theirs."""
        return None

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        """Encode a batch; the options are the stock encoder's, such as ``output_hidden_states``."""
        raise NotImplementedError

    def at_step(self, step: int) -> None:
        """Become what the encoder is at a step of the run (0-based), such as with less dropout."""

    def check_attention(self) -> None:
        """Refuse a stock encoder whose attention does not obey syntax (`trainer.nn.selfcheck`)."""

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:  # noqa: ARG002
        """Finish a new model, which is not loaded from a folder: called once, before training."""
        self.check_attention()


class StockEncoder(Encoder):
    """The states of a stock encoder as it is; objectives may teach it trees."""

    gives: ClassVar[frozenset[str]] = frozenset({"hidden_states", "attentions"})

    def __init__(self, config: SyntaxConfig, pretrained: PreTrainedModel | None = None) -> None:
        super().__init__(config, pretrained)
        self.encoder = pretrained if pretrained is not None else new_encoder(config)
        self.width = int(self.encoder.config.hidden_size)

    @property
    def stock(self) -> PreTrainedModel:
        return self.encoder

    def forward(self, batch: SyntaxBatch, **options: Any) -> SyntaxEncoding:
        output = run_encoder(self.encoder, batch, **options)
        return SyntaxEncoding(
            last_hidden_state=output.last_hidden_state,
            hidden_states=output.get("hidden_states"),
            attentions=output.get("attentions"),
        )
