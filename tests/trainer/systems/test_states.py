"""States of a frozen encoder, against the same text read by the encoder alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from featurestore import open_store
from syntax.errors import SpecError, StoreError
from trainer.options import FrozenOptions
from trainer.systems.frozen import states as states_module
from trainer.systems.frozen.states import FrozenStockEncoder, weights_fingerprint, with_states

OPTIONS = FrozenOptions(encoder="parsebank-tiny", weights="random", layer=1)


@pytest.fixture
def own_store(tmp_path, sample_rows, append_rows):
    with open_store(tmp_path / "store") as store:
        append_rows(store, sample_rows["dev"][:12], "dev", "en")
        yield store


@pytest.fixture
def data(own_store):
    return own_store.dataset("sample", split="dev", lang="en")


def texts_of(data):
    """Ids and words of each segment of each example, whole."""
    for batch in data.stream(batch_size=1, shuffle=False, max_length=None, matrices=()):
        segments = batch["segment_ids"][0]
        yield [
            (batch["input_ids"][0][segments == one], batch["word_ids"][0][segments == one])
            for one in range(len(data.card.fields))
        ]


def slow_windows(ids, window: int, stride: int):
    """For each piece the window in which it has most context, by BERT's rule, and its place."""
    starts = [0]
    while starts[-1] + window < len(ids):
        starts.append(starts[-1] + min(stride, window))
    windows = [(start, min(window, len(ids) - start)) for start in starts]
    for piece in range(len(ids)):
        scored = [
            (min(piece - start, start + size - 1 - piece) + 0.01 * size, -number)
            for number, (start, size) in enumerate(windows)
            if start <= piece < start + size
        ]
        start, size = windows[-max(scored)[1]]
        yield start, size, piece - start


@torch.no_grad()
def slow_states(frozen, special, segments):
    found = []
    for ids, words in segments:
        pieces = []
        for start, size, place in slow_windows(
            ids, states_module.window_of(frozen.model), states_module.STRIDE
        ):
            text = [*special.prefix, *ids[start : start + size].tolist(), *special.suffix]
            output = frozen.model(torch.tensor([text]), output_hidden_states=True)
            pieces.append(output.hidden_states[frozen.layer][0, 1 + place])
        for word in range(int(words.max(initial=-1)) + 1):
            own = [state for state, owner in zip(pieces, words, strict=True) if owner == word]
            found.append(torch.stack(own).mean(0))
    return torch.stack(found)


@pytest.mark.parametrize("window", [254, 9])
def test_states_are_means_of_pieces_in_their_best_window(data, monkeypatch, window) -> None:
    """Nine pieces make windows of every text; so they do of real texts of thousands."""
    monkeypatch.setattr(states_module, "WINDOW", window)
    monkeypatch.setattr(states_module, "STRIDE", min(128, window // 2))
    monkeypatch.setattr(states_module, "BATCH", 5)
    frozen = FrozenStockEncoder(OPTIONS, data)
    found = list(frozen.states(data))
    for segments, own in zip(texts_of(data), found, strict=True):
        expected = slow_states(frozen, data.special_tokens, segments)
        assert own.words.tolist() == [int(words.max()) + 1 for _, words in segments]
        assert own.states.dtype == np.float16
        assert np.allclose(own.states, expected.numpy(), atol=2e-3)


def test_states_of_examples_are_computed_once(
    own_store, data, sample_rows, append_rows, monkeypatch
) -> None:
    seen, original = [], FrozenStockEncoder.states

    def counted(self, missing):
        seen.append(len(missing))
        return original(self, missing)

    monkeypatch.setattr(FrozenStockEncoder, "states", counted)
    first = with_states(own_store, data, OPTIONS)
    version = first.states.table.snapshot().version
    again = with_states(own_store, data, OPTIONS)
    assert again.states.table.snapshot().version == version
    assert again.fingerprints == first.fingerprints
    assert seen == [12]
    append_rows(own_store, sample_rows["dev"][12:20], "dev", "en")
    with_states(own_store, own_store.dataset("sample", split="dev", lang="en"), OPTIONS)
    assert seen == [12, 8]


def test_a_run_that_was_killed_goes_on(own_store, data, monkeypatch, crash) -> None:
    monkeypatch.setattr("featurestore.dataset.states.COMMIT_BYTES", 5000)
    original = states_module.pooled

    def killed(states, arrays, fields):
        if killed.calls == 2:
            raise crash
        killed.calls += 1
        return original(states, arrays, fields)

    killed.calls = 0
    monkeypatch.setattr(states_module, "BATCH", 3)
    monkeypatch.setattr(states_module, "pooled", killed)
    with pytest.raises(crash):
        with_states(own_store, data, OPTIONS)
    monkeypatch.setattr(states_module, "pooled", original)
    there = with_states(own_store, data, OPTIONS)
    whole = list(FrozenStockEncoder(OPTIONS, data).states(data))
    kept = there.states.read(data.rows.keys)
    assert all(np.array_equal(a.states, b.states) for a, b in zip(kept, whole, strict=True))


def test_layers_and_weights_have_states_of_their_own(own_store, data) -> None:
    last = with_states(own_store, data, replace(OPTIONS, layer=-1))
    first = with_states(own_store, data, replace(OPTIONS, layer=0))
    same = with_states(own_store, data, replace(OPTIONS, layer=2))
    assert last.states.identity == same.states.identity != first.states.identity
    model = FrozenStockEncoder(OPTIONS, data).model
    before = weights_fingerprint(model)
    next(model.parameters()).data[0, 0] += 1
    assert weights_fingerprint(model) != before


def test_random_weights_are_the_same_whatever_was_drawn_before(data) -> None:
    torch.manual_seed(1)
    one = FrozenStockEncoder(OPTIONS, data).content
    torch.rand(7)
    assert FrozenStockEncoder(OPTIONS, data).content == one


def test_a_layer_that_is_not_there_is_refused(data) -> None:
    with pytest.raises(SpecError, match="layer is 9; parsebank-tiny has states 0 to 2"):
        FrozenStockEncoder(replace(OPTIONS, layer=9), data)


def test_a_store_that_cannot_be_written_is_said(own_store, data, tmp_path) -> None:
    (tmp_path / "store" / "states").write_text("in the way")
    with pytest.raises(StoreError):
        with_states(own_store, data, OPTIONS)
