"""``denoising.v1``: a whole text from what noise has left of it, by the decoder of the model.

Lewis et al. 2020 (BART), Ahmad et al. 2021 (PLBART). The encoder reads the noised text, its end and
the token of its language; the decoder begins with that token and writes the text and its end. Dev
is noised too, in the same way at every evaluation.

Letters in shapes: ``B`` sequences, ``T`` pieces of the longest text, ``M`` pieces of all texts,
``V`` ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from syntax.batches import SpecialTokens
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from syntax.variant import Variant, check_variant
from trainer.batch import SyntaxBatch
from trainer.denoising import (
    DENOISING_ARRAYS,
    IGNORED,
    TARGETS,
    WRITTEN,
    SpanNoise,
    with_noise,
)
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.encoder import Encoder
from trainer.nn.target import target_tokenizer
from trainer.nn.transformer import GeneratingDecoder
from trainer.options.checks import check_range, check_share
from trainer.options.task import TaskOptions
from trainer.switches import Switch
from trainer.tasks.base import TASKS, Arrays, Head, TaskEntry
from trainer.tasks.mlm import PIECES, MlmScorer

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig

SWITCHES = (
    Switch(
        "task.noise",
        "35 % of the pieces are covered: a third in masked spans, a third masked one by one, a "
        "third deleted (the shares of the three are ours)",
        "spans of whole words are infilled, a tenth of their masks random pieces; no deletion",
    ),
)


@dataclass(frozen=True, slots=True)
class DenoisingOptions(TaskOptions):
    """A share of each text is covered, and the model writes the text; no label column is read.

    Attributes:
        language: Of the texts. The tokenizer has a token ``<LANGUAGE>`` for it.
        noise: A switch (`SWITCHES`).
        covered: Share of the pieces; as released 0.3, of the words.
        mean: Of the lengths of spans, which are Poisson's.
        random: As released: share of the masks that are a random piece instead.
        token: Id of the token of the language, which the training examples give.
    """

    name: str = "denoising.v1"
    language: str = "en"
    noise: Variant = "as_published"
    covered: float = 0.35
    mean: float = 3.5
    random: float = 0.1
    token: int | None = None

    def __post_init__(self) -> None:
        check_variant("task.noise", self.noise)
        check_share("task.covered", self.covered)
        check_range("task.mean", self.mean, 0.1, 20)
        check_range("task.random", self.random, 0, 1)

    def fitted(self, dataset: FeatureDataset) -> DenoisingOptions:
        """With the token of the language."""
        found = target_tokenizer(dataset.card.tokenizer).language(self.language)
        return replace(self, token=found)

    def settled(self, before: TaskOptions) -> TaskOptions:
        """With the token that an earlier run found."""
        return replace(self, token=getattr(before, "token", None))

    def special_tokens(self, special: SpecialTokens) -> SpecialTokens:
        """With the token of the language behind the last one."""
        assert self.token is not None
        return replace(special, suffix=(*special.suffix, self.token))

    def samplers(self, special: SpecialTokens) -> tuple[SpanNoise, ...]:
        """The noise.

        Raises:
            SpecError: The tokenizer has no mask token, or none that ends a text.
        """
        if special.mask_id is None or len(special.suffix) < 2:
            raise SpecError(
                "denoising needs a tokenizer with a mask token and one that ends a text; take one "
                "such as `parsebank tokenizers train --kind bpe` makes"
            )
        ids = (special.mask_id, special.pad_id, special.suffix[-2], special.vocab_size)
        return (SpanNoise(*ids, self.noise, self.covered, self.mean, self.random),)

    def arrays(self, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
        """With the noised texts in the place of the texts."""
        return with_noise(arrays)


class Denoising:
    """Texts to be written again; the stream gives them.

    Args:
        options: What is covered.
        labels: None.
    """

    metric = "accuracy"
    stream_options: ClassVar[Mapping[str, Any]] = {}
    extras: ClassVar[tuple[str, ...]] = DENOISING_ARRAYS

    def __init__(self, options: TaskOptions, labels: Mapping[str, LabelSpec]) -> None:
        del options, labels

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:  # noqa: ARG002
        """None: texts are as long as before the noise, so they are among the extras."""
        return {}

    def scorer(self, data: FeatureDataset) -> MlmScorer:  # noqa: ARG002
        """A new scorer, of every piece of the texts and their ends."""
        return MlmScorer(TARGETS)

    def baseline(self, train: FeatureDataset) -> None:
        """None."""


class DenoisingHead(Head):
    """The decoder of the model, and its cross-entropy.

    Args:
        config: Not read.
        width: Of the encoder's states.
    """

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        self._models: tuple[GeneratingDecoder, ...] = ()

    def connect(self, encoder: Encoder) -> None:
        """Take the decoder of the model.

        Raises:
            SpecError: It has none.
        """
        if encoder.own_decoder is None:
            raise SpecError(
                "denoising.v1 trains a decoder together with its encoder, and this model has none; "
                "set model.name=plbart.v1"
            )
        self._models = (encoder.own_decoder,)  # in a tuple: the encoder saves it

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """Logits of the pieces of the texts, *shape* (M, V), and the mean cross-entropy.

        The decoder begins with the last token that the encoder reads, that of the language.

        Raises:
            SpecError: The batch was streamed without noise.
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


TASKS.add("denoising.v1", TaskEntry(DenoisingOptions, Denoising, DenoisingHead, switches=SWITCHES))
