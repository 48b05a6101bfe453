"""States of words from an encoder that does not learn, computed once for a dataset.

Each text is read in windows of up to 254 pieces, one every 128; of a piece in several windows the
one counts in which it has most context (the rule of BERT's code for SQuAD). A word's state is the
mean of its pieces'.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from accelerate import PartialState
from torch import Tensor
from transformers import PreTrainedModel

from featurestore import MemoryDataset, StatedDataset, WordStates
from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from syntax.fingerprint import fingerprint
from trainer.nn.stock import (
    load_encoder,
    load_encoder_config,
    new_stock,
    positions_of,
    run_pieces,
)
from trainer.nn.tokenizer import check_tokenizer

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore
    from trainer.systems.frozen.options import FrozenOptions

WINDOW: Final = 254
"""Pieces of a window, without special tokens."""

STRIDE: Final = 128
"""Pieces from one window to the next."""

_SPECIAL: Final = 2

BATCH: Final = 16

_SEED: Final = 0
"""Seed of random weights, which must be the same whenever somebody needs them again."""

_LOG: Final = logging.getLogger(__name__)


def with_states(
    store: FeatureStore | None, data: FeatureDataset, options: FrozenOptions
) -> FeatureDataset:
    """The dataset with the states of its words; those that the store does not hold are computed."""
    # One process computes; the others then find everything there.
    with PartialState().main_process_first():
        frozen = FrozenStockEncoder(options, data)
        if isinstance(data, MemoryDataset):
            facts = {"states": fingerprint({**frozen.content, "width": frozen.width})}
            return data.carrying(facts, word_states=list(frozen.states(data)))
        assert store is not None, "examples that are not in memory come from a store"
        stated = StatedDataset(store, data, frozen.content, frozen.width)
        missing = stated.without_states()
        if len(missing):
            _LOG.info("computing states of %d examples of %s", len(missing), data.name)
            stated.write(missing, frozen.states(missing))
    return stated


class FrozenStockEncoder:
    """Computes states by a stock encoder in evaluation mode, on the first GPU if there is one."""

    def __init__(self, options: FrozenOptions, data: FeatureDataset) -> None:
        self.model, self.layer = stock_encoder(options, data), options.layer
        config = self.model.config
        if not -config.num_hidden_layers - 1 <= options.layer <= config.num_hidden_layers:
            raise SpecError(
                f"model.layer is {options.layer}; {options.encoder} has states 0 to "
                f"{config.num_hidden_layers}, or -1 for the last"
            )
        layer = options.layer % (config.num_hidden_layers + 1)
        self.width = int(config.hidden_size)
        self.content: dict[str, Any] = {
            "encoder": weights_fingerprint(self.model),
            "layer": layer,
            "window": window_of(self.model),
            "stride": STRIDE,
            "words": "mean",
        }
        self.model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]

    def states(self, data: FeatureDataset) -> Iterator[WordStates]:
        fields = data.card.fields
        stream = data.stream(
            batch_size=BATCH,
            shuffle=False,
            assembly=AssemblySpec(
                template=fields,
                max_length=window_of(self.model) + data.special_tokens.count(1),
                stride=STRIDE,
                matrices=(),
                joint_root=False,
                separator_edge="none",
            ),
        )
        for arrays in stream:
            yield from pooled(self._encode(arrays), arrays, len(fields))

    @torch.no_grad()
    def _encode(self, arrays: dict[str, Any]) -> Tensor:
        names = ("input_ids", "attention_mask", "token_type_ids")
        ids, mask, types = (torch.as_tensor(arrays[name]) for name in names)
        device = self.model.device
        pieces = (ids.to(device), mask.to(device), types.to(device))
        output = run_pieces(self.model, *pieces, output_hidden_states=True)
        hidden: Tensor = output.hidden_states[self.layer]
        return hidden.float()


def pooled(states_BLD: Tensor, arrays: dict[str, Any], fields: int) -> list[WordStates]:
    """Means of the pieces of each word in a batch of windows, by example; 0 without pieces."""
    text_B = arrays["example_index"].astype(np.int64) * fields + arrays["choice_index"]
    words = np.zeros((int(arrays["example_index"].max()) + 1) * fields, np.int64)
    np.maximum.at(words, text_B, arrays["word_ids"].max(1) + 1)
    starts = np.concatenate([[0], np.cumsum(words)])
    row, column = np.nonzero(arrays["is_max_context"] & (arrays["word_ids"] >= 0))
    target = torch.as_tensor(starts[text_B[row]] + arrays["word_ids"][row, column])
    means = piece_means(states_BLD.cpu()[row, column], target, int(starts[-1])).numpy()
    counts, bounds = words.reshape(-1, fields).astype(np.int32), starts[::fields]
    parts = np.split(means, bounds[1:-1])
    return [WordStates(own, part) for own, part in zip(counts, parts, strict=True)]


def piece_means(states_PD: Tensor, target_P: Tensor, size: int) -> Tensor:
    """Mean of the pieces of each word, float16; 0 without pieces. *Shape:* (size, D)."""
    sums = torch.zeros(size, states_PD.shape[1]).index_add_(0, target_P, states_PD)
    counts = torch.bincount(target_P, minlength=size).clamp(min=1)
    most = torch.finfo(torch.float16).max
    return (sums / counts[:, None]).clamp(-most, most).half()


def weights_fingerprint(model: PreTrainedModel) -> str:
    found = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return fingerprint([found.hexdigest(), str(model.config.model_type)])


def stock_encoder(options: FrozenOptions, data: FeatureDataset) -> PreTrainedModel:
    special = data.special_tokens
    config = load_encoder_config(options, special)
    if special.vocab_size > config.vocab_size:
        raise SpecError(
            f"the tokenizer has {special.vocab_size} pieces and {options.encoder} embeds "
            f"{config.vocab_size}; backfill with the encoder's own tokenizer"
        )
    if options.weights == "pretrained":
        if not options.any_tokenizer:
            check_tokenizer(options.encoder, data.card.tokenizer_fingerprint, data.card.tokenizer)
        # As the files have them: the states that are stored already are of these.
        model = load_encoder(options.encoder, config, dtype="auto")
    else:
        with torch.random.fork_rng():
            torch.manual_seed(_SEED)
            model = new_stock(config)
    model.eval()
    return model


def window_of(model: PreTrainedModel) -> int:
    positions = positions_of(model)
    return WINDOW if positions is None else min(WINDOW, positions - _SPECIAL)
