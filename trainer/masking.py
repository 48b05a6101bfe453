"""Masked language modelling: which pieces are predicted, and what the encoder reads instead.

Devlin et al. 2019, "BERT", section 3.1: 15 % of the pieces are predicted; of these 80 % are read as
[MASK], 10 % as a random piece, and 10 % as they are. The stream draws the masks, so that all that
reads a batch reads the same ones. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.batches import SpecialTokens
from syntax.contrast.base import Samples
from syntax.errors import SpecError
from syntax.mixing import splitmix, stream_seed

MASKED_INPUT: Final = "masked_input_ids"
POSITIONS: Final = "masked_positions"
TARGETS: Final = "masked_targets"
MASKED_ARRAYS: Final = (POSITIONS, TARGETS)
"""Arrays that a batch carries for the loss."""

_DRAWS: Final = 3
"""Random numbers of a position: for drawing it, for what is read there, for a random piece."""


@dataclass(frozen=True, slots=True)
class PieceMasking:
    """Draws the pieces to predict; a `syntax.contrast.Sampler`.

    The draw of a sequence depends on seed, epoch, and its key alone. Only a batch in which no piece
    is drawn is drawn again, as a whole, until there is one.

    Attributes:
        vocab_size: Number of ids; a random piece is any of them, as in BERT's own code.
        probability: Of a piece, or a word, to be predicted; 0 leaves the text as it is.
    """

    mask_id: int
    vocab_size: int
    probability: float = 0.15
    whole_words: bool = False

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """Draw what the encoder reads, and the M pieces that are predicted.

        Returns:
            * ``masked_input_ids``: (B, L), what the encoder reads
            * ``masked_positions``: int64 (M,), b * L + l of each predicted piece
            * ``masked_targets``: int64 (M,), its id
        """
        ids_BL: NDArray[Any] = batch["input_ids"]
        maskable_BL = batch["attention_mask"].astype(bool) & ~batch["special_tokens_mask"].astype(
            bool
        )
        unit_BL = self._units(batch, maskable_BL)
        can_draw, attempt = self.probability > 0 and bool(maskable_BL.any()), 0
        while True:
            draws_BL3 = self._draws(maskable_BL, keys, seed, epoch, attempt)
            drawn_BL = np.take_along_axis(draws_BL3[..., 0], unit_BL, 1) < self.probability
            chosen_BL = drawn_BL & maskable_BL
            if chosen_BL.any() or not can_draw:
                break
            attempt += 1
        hidden_BL = chosen_BL & (draws_BL3[..., 1] < 0.8)
        random_BL = chosen_BL & (draws_BL3[..., 1] >= 0.9)
        random_ids_BL = (draws_BL3[..., 2] * self.vocab_size).astype(ids_BL.dtype)
        read_BL = np.where(random_BL, random_ids_BL, ids_BL)
        read_BL[hidden_BL] = self.mask_id
        positions_M = np.flatnonzero(chosen_BL)
        targets_M = ids_BL.reshape(-1)[positions_M].astype(np.int64)
        return {MASKED_INPUT: read_BL, POSITIONS: positions_M, TARGETS: targets_M}

    def _units(
        self, batch: Mapping[str, NDArray[Any]], maskable_BL: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Position whose draw decides: one's own, or that of the word's first piece."""
        own_BL = np.broadcast_to(np.arange(maskable_BL.shape[1]), maskable_BL.shape)
        if not self.whole_words:
            return own_BL
        words_BL = batch["word_ids"]
        goes_on_BL = np.zeros_like(maskable_BL)
        goes_on_BL[:, 1:] = (words_BL[:, 1:] == words_BL[:, :-1]) & (words_BL[:, 1:] >= 0)
        goes_on_BL[:, 1:] &= maskable_BL[:, :-1]
        first_BL: NDArray[np.intp] = np.maximum.accumulate(np.where(goes_on_BL, 0, own_BL), axis=1)
        return first_BL

    def _draws(
        self,
        maskable_BL: NDArray[np.bool_],
        keys: Sequence[str],
        seed: int,
        epoch: int,
        attempt: int,
    ) -> NDArray[np.float64]:
        """Numbers from 0 up to 1. *Shape:* (B, L, 3); they do not depend on L."""
        L = maskable_BL.shape[1]
        bits = [
            splitmix(L * _DRAWS, stream_seed(seed, epoch, "masked pieces", key, attempt))
            for key in keys
        ]
        numbers = (np.array(bits, np.uint64) >> np.uint64(11)).astype(np.float64)
        return np.ldexp(numbers, -53).reshape(len(keys), L, _DRAWS)


def piece_masking(
    special: SpecialTokens, probability: float, whole_words: bool = False
) -> PieceMasking:
    if special.mask_id is None:
        raise SpecError(
            "the tokenizer of the data has no mask token, which masked language modelling needs; "
            "backfill with one that has, such as BERT's"
        )
    return PieceMasking(special.mask_id, special.vocab_size, probability, whole_words)


def with_masks(arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays of a batch with masked pieces to read, if any were drawn."""
    if MASKED_INPUT not in arrays:
        return arrays
    return {**arrays, "input_ids": arrays[MASKED_INPUT]}
