"""``translation.v1``: a text from the states of another, by a decoder (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.batch import SyntaxBatch
from trainer.denoising import IGNORED
from trainer.evaluation.predictions import Prediction
from trainer.metrics import share
from trainer.metrics.translation import (
    TranslationScores,
    bleu_counts,
    bleu_scorer,
    check_tokenize,
    require_codebleu,
    smoothed_bleu,
    translation_scores,
)
from trainer.models.outputs import HeadOutput, SyntaxEncoding
from trainer.nn.generation import Search, generate
from trainer.nn.target import TargetTokenizer
from trainer.nn.transformer import GeneratingDecoder, decoder_config
from trainer.tasks.base import Arrays, Head, Task
from trainer.tasks.options import TEXT_IDS, TranslationOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset
    from trainer.models.config import SyntaxConfig
    from trainer.nn.encoder import Encoder
    from trainer.options import Recipe
    from trainer.requirements import DataProfile


class Translation(Task):
    """Texts, and how translations of them are scored."""

    def __init__(self, options: TranslationOptions, labels: Mapping[str, LabelSpec]) -> None:
        label = labels[options.label]
        if label.kind != "string":
            raise SpecError(
                f"the label {label.name!r} is of kind {label.kind!r}; translation needs 'string'"
            )
        check_tokenize(options.bleu)
        if options.code is not None:
            require_codebleu()
        self.metric: str = options.metric
        self._options, self._target = options, options.target()

    def targets(self, arrays: Arrays) -> dict[str, NDArray[np.generic]]:
        """The ids of the texts (`TranslationOptions.arrays`); none where no example has a text."""
        return {self._options.label: arrays[TEXT_IDS]} if TEXT_IDS in arrays else {}

    def scorer(self, data: FeatureDataset) -> TranslationScorer:  # noqa: ARG002
        return TranslationScorer(self._options, self._target)


class TranslationHead(Head):
    """A decoder, its smoothed cross-entropy, and its search."""

    options: TranslationOptions

    def __init__(self, config: SyntaxConfig, width: int) -> None:
        super().__init__(config, width)
        options = self.options
        self.decoder: GeneratingDecoder | None = None
        self._models: tuple[GeneratingDecoder, ...] = ()
        if config.model_options().has_decoder:
            return
        encoder = config.encoder_config()
        if width != int(encoder.hidden_size):
            raise SpecError(
                f"{config.model['name']} gives states of {width} numbers, and a decoder reads "
                "those of an encoder of pieces; take a model such as transformer.v1"
            )
        sizes = decoder_config(
            encoder,
            options.decoder_layers,
            options.vocabulary,
            options.pad,
            options.start,
            options.end,
        )
        self.decoder = GeneratingDecoder(sizes, options.output_mlp)

    def connect(self, encoder: Encoder) -> None:
        """Take the decoder of the model; or, where they are to be one, the source's embeddings."""
        if encoder.own_decoder is not None:
            self._models = (encoder.own_decoder,)  # in a tuple: the encoder saves it
        elif self.options.tie == "all":
            stock = encoder.stock
            assert stock is not None
            self.writer.tie(cast(nn.Embedding, stock.get_input_embeddings()))

    @property
    def writer(self) -> GeneratingDecoder:
        """The decoder: of the model, or of this head."""
        return self._models[0] if self._models else cast(GeneratingDecoder, self.decoder)

    def prepare(self, recipe: Recipe, profile: DataProfile) -> None:
        """Check the options against the decoder of the model and the tokenizer of the source."""
        source, options = profile.requirements.tokenizer, self.options
        others = (options.decoder_layers, options.output_mlp, options.tie) != (None, False, "all")
        if self.decoder is None and others:
            raise SpecError(
                f"{recipe.model.name} brings a decoder as deep as its encoder, of the same "
                "embeddings; set task.tie=all, task.decoder_layers=null and task.output_mlp=false"
            )
        if options.tie == "all" and source != options.fingerprint:
            raise SpecError(
                f"task.tie=all makes embeddings of source and target one, and the source has the "
                f"tokenizer {source[:12]}, the target {options.fingerprint[:12]}; set "
                "task.tie=target"
            )

    def forward(self, encoding: SyntaxEncoding, batch: SyntaxBatch) -> HeadOutput:
        """The mean cross-entropy of the pieces; in evaluation also the translations.

        These are ids under the name of the column, *shape* (B, T), and their loss is not smoothed.
        """
        states_BLD = encoding.last_hidden_state
        assert states_BLD is not None
        gold_BT = batch.labels.get(self.options.label)
        loss = None if gold_BT is None else self._loss(states_BLD, gold_BT, batch)
        if self.training:
            return HeadOutput({}, loss)
        options, positions = self.options, int(self.writer.config.max_position_embeddings)
        ids = (options.start, options.end, options.pad)
        search = Search(*ids, options.beam, options.length_penalty, longest=positions)
        found_BT = generate(self.writer, states_BLD, batch.attention_mask_BL, search)
        return HeadOutput({self.options.label: found_BT}, loss)

    def _loss(self, states_BLD: Tensor, gold_BT: Tensor, batch: SyntaxBatch) -> Tensor:
        start_B1 = torch.full_like(gold_BT[:, :1], self.options.start)
        before_BT = torch.cat([start_B1, gold_BT[:, :-1]], 1)
        output = self.writer(
            before_BT.masked_fill(before_BT == IGNORED, self.options.pad),
            encoder_hidden_states=states_BLD,
            encoder_attention_mask=batch.attention_mask_BL,
        )
        return F.cross_entropy(
            output.logits.float().flatten(0, 1),
            gold_BT.flatten(),
            ignore_index=IGNORED,
            label_smoothing=self.options.smoothing if self.training else 0.0,
        )


class TranslationScorer:
    """Collects translations, batch by batch."""

    def __init__(self, options: TranslationOptions, target: TargetTokenizer) -> None:
        self._options, self._target = options, target
        self._counter = bleu_scorer(options.bleu)
        self._rows: list[tuple[str, str | None, str]] = []
        self._loss, self._pieces = 0.0, 0

    def add(self, output: Any, batch: SyntaxBatch) -> None:
        name = self._options.label
        texts = self._target.decode(output.logits[name].cpu().numpy())
        self._rows += zip(batch.example_ids, batch.arrays[name], texts, strict=True)
        if name in batch.labels:
            pieces = int((batch.labels[name] != IGNORED).sum())
            self._loss += float(output.task_loss) * pieces
            self._pieces += pieces

    def scores(self) -> TranslationScores:
        known = [(text, gold) for _, gold, text in self._rows if gold is not None]
        hypotheses = [text for text, _ in known]
        references = [gold for _, gold in known]
        loss, options = share(self._loss, self._pieces), self._options
        return translation_scores(
            hypotheses, references, loss, options.bleu, options.metric, options.code
        )

    def predictions(self) -> list[Prediction]:
        found = []
        for example_id, gold, text in self._rows:
            if gold is None:
                found.append(Prediction(example_id, None, text))
            else:
                shares = {
                    "bleu": bleu_counts(text, gold, self._counter),
                    "exact_match": (float(text == gold), 1.0),
                    "smoothed_bleu": (smoothed_bleu(text, gold), 1.0),
                }
                found.append(Prediction(example_id, gold, text, text == gold, shares))
        return found
