"""``denoising.v1``: a whole text from what noise has left of it, by the decoder of the model.

Lewis et al. 2020 (BART), Ahmad et al. 2021 (PLBART). The encoder reads the noised text, its end and
the token of its language; the decoder begins with that token and writes the text and its end. Dev
is noised too, in the same way at every evaluation.

Letters in shapes: ``B`` sequences, ``T`` pieces of the longest text, ``M`` pieces of all texts,
``V`` ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch.nn import functional as F

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.denoising import (
    DENOISING_ARRAYS,
    IGNORED,
    TARGETS,
    WRITTEN,
)
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.transformer import GeneratingDecoder
from trainer.tasks.base import Head, Task
from trainer.tasks.mlm import PIECES, MlmScorer

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig


class Denoising(Task):
    """Texts to be written again; the stream gives them."""

    metric = "accuracy"
    extras: ClassVar[tuple[str, ...]] = DENOISING_ARRAYS

    def scorer(self, data: FeatureDataset) -> MlmScorer:  # noqa: ARG002
        return MlmScorer(TARGETS)


class DenoisingHead(Head):
    """The decoder of the model, and its cross-entropy."""

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        self._models: tuple[GeneratingDecoder, ...] = ()

    def connect(self, encoder: Encoder) -> None:
        if encoder.own_decoder is None:
            raise SpecError(
                "denoising.v1 trains a decoder together with its encoder, and this model has none; "
                "set model.name=plbart.v1"
            )
        self._models = (encoder.own_decoder,)  # in a tuple: the encoder saves it

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits of the pieces of the texts, *shape* (M, V), and the mean cross-entropy.

        The decoder begins with the last token that the encoder reads, that of the language.
        """
        written_BT, targets_M = batch.extra(WRITTEN), batch.extra(TARGETS)
        start_B1 = batch.input_ids_BL.gather(1, batch.lengths_B[:, None].long() - 1)
        before_BT = torch.cat([start_B1, written_BT[:, :-1]], 1)
        (decoder,) = self._models
        output = decoder(
            before_BT.masked_fill(before_BT == IGNORED, decoder.config.pad_token_id),
            encoding.last_hidden_state,
            batch.attention_mask_BL,
        )
        logits_MV = output.logits[written_BT != IGNORED].float()
        total = F.cross_entropy(logits_MV, targets_M, reduction="sum")
        return HeadOutput({PIECES: logits_MV}, total / max(1, len(targets_M)))
