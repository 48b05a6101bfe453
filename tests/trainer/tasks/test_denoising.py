"""The noise of denoising: shares, spans, insertions, and what stays as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax.mixing import stream_seed
from trainer.denoising import IGNORED, LENGTHS, NOISED, TARGETS, WRITTEN, Draws, SpanNoise

PAD, CLS, END, MASK, LANGUAGE, FIRST, IDS = 0, 1, 2, 4, 5, 10, 1000
PUBLISHED = SpanNoise(MASK, PAD, END, IDS)
RELEASED = SpanNoise(MASK, PAD, END, IDS, "as_released", 0.3)


def text_of(size: int) -> np.ndarray:
    """Pieces that are all different, so that each can be found again."""
    return np.arange(FIRST, FIRST + size)


def batch_of(sizes: list[int]) -> dict[str, np.ndarray]:
    """[CLS] text [SEP] <language>; words have two pieces each."""
    lengths = np.array(sizes) + 3
    shape = (len(sizes), max(lengths))
    ids, words = np.full(shape, PAD), np.full(shape, -1)
    special = np.zeros(shape, bool)
    for row, size in enumerate(sizes):
        ids[row, : size + 3] = [CLS, *text_of(size), END, LANGUAGE]
        words[row, 1 : size + 1] = np.arange(size) // 2
        special[row, [0, size + 1, size + 2]] = True
    return {
        "input_ids": ids,
        "word_ids": words,
        "lengths": lengths,
        "attention_mask": np.arange(shape[1]) < lengths[:, None],
        "special_tokens_mask": special,
    }


def slow_release(text: list[int], words: list[int], noise: SpanNoise, draws: Draws) -> list[int]:
    """fairseq's ``add_whole_word_mask``, position by position.

    In the places of fairseq's own random numbers stand ours.
    """
    is_start = [at == 0 or words[at] != words[at - 1] for at in range(len(text))]
    total = math.ceil(sum(is_start) * noise.covered)
    lengths, number = [], 0
    while sum(lengths) < total:
        for point in draws.uniform(f"lengths {number}", total).tolist():
            length, below = 0, math.exp(-noise.mean)
            term = below
            while point >= below:
                length += 1
                term *= noise.mean / length
                below += term
            lengths.append(length)
        number += 1
    at = 0
    while sum(lengths[: at + 1]) < total:
        at += 1
    lengths = [*lengths[:at], total - sum(lengths[:at])]
    spans = [length for length in lengths if length]
    starts = [at for at, start in enumerate(is_start) if start]
    chosen = [starts[at] for at in draws.order("places", len(starts))[: len(spans)]]
    found: list[int | None] = list(text)
    gone = set()
    randoms = draws.uniform("random", len(spans)).tolist()
    others = [1 + int(x * (noise.vocab_size - 1)) for x in draws.uniform("ids", len(spans))]
    for start, length, random, other in zip(chosen, spans, randoms, others, strict=True):
        found[start] = other if random < noise.random else noise.mask_id
        left, here = length - 1, start + 1
        while here < len(text):
            left -= is_start[here]
            if left < 0:
                break
            gone.add(here)
            here += 1
    rest = [piece for at, piece in enumerate(found) if at not in gone]
    count = len(lengths) - len(spans)
    places = draws.order("insertions", len(rest) + count)[:count].tolist()
    randoms = places[: math.ceil(count * noise.random)]
    ids = draws.uniform("inserted ids", len(randoms))
    new = dict.fromkeys(places, noise.mask_id)
    new |= {at: 1 + int(x * (noise.vocab_size - 1)) for at, x in zip(randoms, ids, strict=True)}
    pieces = iter(rest)
    return [new[at] if at in new else next(pieces) for at in range(len(rest) + count)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=40), st.integers(0, 2**32))
def test_the_released_noise_is_fairseqs(sizes: list[int], seed: int) -> None:
    words = np.repeat(np.arange(len(sizes)), sizes)
    text, draws = text_of(len(words)), Draws(seed)
    expected = slow_release(text.tolist(), words.tolist(), RELEASED, draws)
    assert RELEASED.noised(text, words, draws).tolist() == expected


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_the_published_noise_keeps_the_order_of_what_is_left(size: int, seed: int) -> None:
    found = PUBLISHED.noised(text_of(size), np.arange(size), Draws(seed)).tolist()
    kept = [piece for piece in found if piece != MASK]
    assert kept == sorted(set(kept))
    assert set(kept) <= set(text_of(size).tolist())
    covered = size - len(kept)
    assert math.floor(0.35 * size) <= covered <= math.ceil(0.35 * size)


def test_the_published_share_is_covered_in_three_ways() -> None:
    """35 %: of each piece of 10,000 texts, what is gone; and masks by what they stand for."""
    sizes = np.random.default_rng(0).integers(5, 60, 10_000)
    gone = masks = 0
    for row, size in enumerate(sizes.tolist()):
        draws = Draws(stream_seed(0, row))
        found = PUBLISHED.noised(text_of(size), np.arange(size), draws)
        masks += int((found == MASK).sum())
        gone += size - int((found != MASK).sum())
    assert gone / sizes.sum() == pytest.approx(0.35, abs=0.01)
    # A third alone, none for a third, and one for each span of 3.5 pieces of the last third; the
    # last span of a text is shorter.
    third = gone / 3
    assert third * (1 + 1 / 3.5) < masks < 1.6 * third


@pytest.mark.slow
def test_the_released_spans_make_up_their_share_of_words() -> None:
    """30 % of the words are in spans of 10,000 texts; as these overlap, fewer are covered."""
    drawn = covered = words = zero = spans = 0
    for row in range(10_000):
        size, draws = 40 + row % 60, Draws(stream_seed(1, row))
        lengths = RELEASED.span_lengths(math.ceil(0.3 * size), draws)
        left = RELEASED.noised(text_of(size), np.arange(size), draws)
        drawn, words, spans = drawn + sum(lengths), words + size, spans + len(lengths)
        zero += lengths.count(0)
        covered += size - len(np.intersect1d(left[left >= FIRST], text_of(size)))
    assert drawn / words == pytest.approx(0.3, abs=0.01)
    assert 0.2 < covered / words < drawn / words
    assert zero / spans == pytest.approx(math.exp(-3.5), abs=0.01)


@pytest.mark.parametrize("noise", [PUBLISHED, RELEASED])
def test_tokens_around_a_text_stay(noise: SpanNoise) -> None:
    sizes = [1, 2, 30, 7]
    batch = batch_of(sizes)
    found = noise.sample(batch, list("abcd"), 0, 0)
    for row, length in enumerate(found[LENGTHS].tolist()):
        ids = found[NOISED][row]
        assert (ids[0], *ids[length - 2 : length]) == (CLS, END, LANGUAGE)
        assert (ids[length:] == PAD).all()
    written = [row[row != IGNORED].tolist() for row in found[WRITTEN]]
    assert written == [[*text_of(size), END] for size in sizes]
    assert found[TARGETS].tolist() == [piece for row in written for piece in row]


def test_the_noise_of_a_text_depends_on_seed_epoch_and_key_alone() -> None:
    together = RELEASED.sample(batch_of([30, 80, 90]), ["a", "b", "c"], 3, 1)
    alone = RELEASED.sample(batch_of([80]), ["b"], 3, 1)

    def row(samples, at):
        return samples[NOISED][at, : samples[LENGTHS][at]].tolist()

    assert row(together, 1) == row(alone, 0)
    for other in ((4, 1, "b"), (3, 2, "b"), (3, 1, "x")):
        changed = RELEASED.sample(batch_of([80]), [other[2]], *other[:2])
        assert row(changed, 0) != row(alone, 0)
