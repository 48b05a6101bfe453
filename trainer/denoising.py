"""Denoising: what of a text is covered, for a decoder to write the whole text again.

Lewis et al. 2020, "BART" (https://arxiv.org/abs/1910.13461), and Ahmad et al. 2021, "PLBART"
(https://arxiv.org/abs/2103.06333), section 2.1. Noise moves pieces, so that what the encoder reads
has no trees; ``K`` positions are left of a text. Nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.contrast.base import Samples
from syntax.mixing import splitmix, stream_seed
from syntax.variant import Variant

NOISED: Final = "noised_input_ids"
LENGTHS: Final = "noised_lengths"
WRITTEN: Final = "written_ids"
TARGETS: Final = "written_targets"
DENOISING_ARRAYS: Final = (WRITTEN, TARGETS)
"""Arrays that a batch carries for the loss."""

IGNORED: Final = -100
"""Id behind the end of a text that is written; torch's cross-entropy leaves it out."""

_MOST: Final = 200

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpanNoise:
    """Covers a share of each text, by seed, epoch and key alone; a `syntax.contrast.Sampler`.

    Attributes:
        end: Id that ends a text that is written.
        covered: Share of the pieces, or, as released, of the words.
        mean: Mean length of spans (Poisson).
        random: As released: share of masks that are a random piece instead.
    """

    mask_id: int
    pad_id: int
    end: int
    vocab_size: int
    noise: Variant = "as_published"
    covered: float = 0.35
    mean: float = 3.5
    random: float = 0.1

    def sample(
        self, batch: Mapping[str, NDArray[Any]], keys: Sequence[str], seed: int, epoch: int
    ) -> Samples:
        """Draw the noised texts to read, and the texts to write.

        Returns:
            * ``noised_input_ids``: int64 (B, K), padded
            * ``noised_lengths``: int32 (B,), real positions of each
            * ``written_ids``: int64 (B, T), each whole text and its end, `IGNORED` behind it
            * ``written_targets``: int64 (M,), these ids in one row
        """
        read, written = [], []
        text_BL = batch["attention_mask"].astype(bool) & ~batch["special_tokens_mask"].astype(bool)
        for row, key in enumerate(keys):
            ids = batch["input_ids"][row, : int(batch["lengths"][row])].astype(np.int64)
            places = np.flatnonzero(text_BL[row])
            first, after = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
            text, words = ids[first:after], batch["word_ids"][row, first:after]
            draws = Draws(stream_seed(seed, epoch, "denoising", key))
            read.append(np.concatenate([ids[:first], self.noised(text, words, draws), ids[after:]]))
            written.append(np.append(text, self.end))
        lengths_B = np.array([len(ids) for ids in read], np.int32)
        return {
            NOISED: _padded(read, self.pad_id),
            LENGTHS: lengths_B,
            WRITTEN: _padded(written, IGNORED),
            TARGETS: np.concatenate([np.empty(0, np.int64), *written]),
        }

    def noised(self, text: Ids, words: NDArray[np.integer], draws: Draws) -> Ids:
        if not len(text):
            return text
        if self.noise == "as_published":
            return self._published(text, draws)
        starts = np.flatnonzero(np.append(True, words[1:] != words[:-1]))
        return self._released(text, starts, draws)

    def _published(self, text: Ids, draws: Draws) -> Ids:
        """Put a third of the covered pieces in masked spans, mask a third alone, delete a third.

        The paper does not give these shares. Spans do not overlap: they and the pieces between them
        are put into a random order, and the text is read along it.
        """
        count = int(self.covered * len(text) + draws.uniform("count", 1)[0])
        alone = count // 3
        spans = self.span_lengths(count - 2 * alone, draws) if count else []
        lengths = [*spans, *[1] * (2 * alone)]
        deleted = len(lengths) - alone  # the last ones
        found: list[int] = []
        at = 0
        for item in draws.order("places", len(lengths) + len(text) - count):
            if item >= len(lengths):
                found.append(int(text[at]))
                at += 1
            else:
                found += [self.mask_id] * bool(item < deleted)
                at += lengths[item]
        return np.array(found, np.int64)

    def _released(self, text: Ids, starts: NDArray[np.intp], draws: Draws) -> Ids:
        """Fairseq's infilling (``DenoisingDataset.add_whole_word_mask``); spans may overlap."""
        lengths = np.array(self.span_lengths(math.ceil(self.covered * len(starts)), draws))
        spans = lengths[lengths > 0]
        chosen = draws.order("places", len(starts))[: len(spans)]
        masks = np.full(len(spans), self.mask_id)
        is_random = draws.uniform("random", len(spans)) < self.random
        masks[is_random] = self._random_ids("ids", len(spans), draws)[is_random]
        found, is_kept = text.copy(), np.ones(len(text), bool)
        found[starts[chosen]] = masks
        bounds = np.append(starts, len(text))
        for word, length in zip(chosen, spans, strict=True):
            is_kept[bounds[word] + 1 : bounds[min(word + length, len(starts))]] = False
        return self._with_insertions(found[is_kept], len(lengths) - len(spans), draws)

    def _with_insertions(self, text: Ids, count: int, draws: Draws) -> Ids:
        """Put in masks for spans of length 0; some, and at least one, are random pieces."""
        places = draws.order("insertions", len(text) + count)[:count]
        found, is_new = np.empty(len(text) + count, np.int64), np.zeros(len(text) + count, bool)
        is_new[places] = True
        found[~is_new] = text
        found[places] = self.mask_id
        others = places[: math.ceil(count * self.random)]
        found[others] = self._random_ids("inserted ids", len(others), draws)
        return found

    def span_lengths(self, total: int, draws: Draws) -> list[int]:
        """Poisson lengths with the sum ``total``, the last one cut."""
        lengths: list[int] = []
        left, number = total, 0
        while left:
            numbers = draws.uniform(f"lengths {number}", total)
            for length in np.searchsorted(_poisson(self.mean), numbers, side="right").tolist():
                lengths.append(min(length, left))
                left -= lengths[-1]
                if not left:
                    break
            number += 1
        return lengths

    def _random_ids(self, purpose: str, count: int, draws: Draws) -> Ids:
        """Any ids but 0, as fairseq draws them."""
        found: Ids = 1 + (draws.uniform(purpose, count) * (self.vocab_size - 1)).astype(np.int64)
        return found


@dataclass(frozen=True, slots=True)
class Draws:
    """Random numbers of one text, by what they are for."""

    seed: int

    def uniform(self, purpose: str, count: int) -> NDArray[np.float64]:
        """Numbers from 0 up to 1."""
        bits = splitmix(count, stream_seed(self.seed, purpose))
        return np.ldexp((bits >> np.uint64(11)).astype(np.float64), -53)

    def order(self, purpose: str, count: int) -> NDArray[np.intp]:
        return np.argsort(self.uniform(purpose, count), kind="stable")


def with_noise(arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays of a batch as the encoder reads them: noised, and without trees."""
    if NOISED not in arrays:
        return arrays
    ids_BK, lengths_B = arrays[NOISED], arrays[LENGTHS]
    none_BK = np.zeros(ids_BK.shape, np.uint8)
    return {
        **arrays,
        "input_ids": ids_BK,
        "lengths": lengths_B,
        "attention_mask": np.arange(ids_BK.shape[1]) < lengths_B[:, None],
        "token_type_ids": none_BK.astype(np.int64),
        "special_tokens_mask": none_BK.astype(bool),
        "upos": none_BK,
        "deprel": none_BK,
        "parents": np.full(ids_BK.shape, -1, np.int32),
    }


@cache
def _poisson(mean: float) -> NDArray[np.float64]:
    terms = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(_MOST)]
    return np.cumsum(terms)


def _padded(rows: Sequence[Ids], value: int) -> Ids:
    found = np.full((len(rows), max(map(len, rows), default=0)), value, np.int64)
    for row, ids in zip(found, rows, strict=True):
        row[: len(ids)] = ids
    return found
