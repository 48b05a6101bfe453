"""Causal language modelling: what is predicted, the loss, the baseline, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import GPT2Config

from syntax.errors import SpecError
from tests.trainer.conftest import as_stream_batch, random_forest
from trainer.batch import SyntaxBatch
from trainer.loop import train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.tasks.clm import NEXT_ARRAYS, POSITIONS, TARGETS, Clm, NextPieces
from trainer.tasks.mlm import MlmScorer

SIZE = {"n_embd": 16, "n_layer": 2, "n_head": 4, "vocab_size": 60, "initializer_range": 0.5}


def model_of(stock) -> SyntaxModel:
    config = SyntaxConfig(
        encoder=stock.to_dict(), model={"name": "stock.v1"}, task={"name": "clm.v1"}
    )
    return SyntaxModel(config).eval()


@pytest.fixture
def model() -> SyntaxModel:
    return model_of(GPT2Config(**SIZE, n_positions=40, use_cache=False))


def arrays_of(sizes: tuple[int, ...], pad: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(0)
    return as_stream_batch([random_forest(rng, size) for size in sizes], rng, pad)


def batch_of(arrays) -> SyntaxBatch:
    given = {**arrays, **NextPieces().sample(arrays, (), 0, 0)}
    return SyntaxBatch.from_numpy(given, {}, NEXT_ARRAYS)


@pytest.mark.parametrize("pad", [0, 4])
@torch.no_grad()
def test_the_loss_is_that_of_a_slow_twin(model, pad) -> None:
    batch = batch_of(arrays_of((9, 4, 7), pad))
    words = model.encoder.stock.get_input_embeddings().weight.double()
    losses, right = [], 0
    for row, size in enumerate((9, 4, 7)):
        for end in range(1, size):
            # The model reads nothing but what comes before.
            states = model.encoder.stock(batch.input_ids_BL[row : row + 1, :end]).last_hidden_state
            logits = words @ states[0, -1].double()
            target = int(batch.input_ids_BL[row, end])
            losses.append(float(logits.logsumexp(0) - logits[target]))
            right += int(logits.argmax()) == target
    output = model(batch)
    assert float(output.loss) == pytest.approx(np.mean(losses), rel=1e-5)
    scorer = MlmScorer(TARGETS)
    scorer.add(output, batch)
    scores = scorer.scores()
    assert scores.perplexity == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)
    assert (scores.pieces, scores.accuracy) == (len(losses), right / len(losses))


def test_text_without_targets_has_logits_at_every_position(model, tmp_path) -> None:
    ids = torch.tensor([[2, 7, 9, 3]])
    assert model(input_ids=ids).logits.shape == (1, 4, 60)
    model.save_pretrained(tmp_path)
    assert torch.equal(
        SyntaxModel.from_pretrained(tmp_path).eval()(input_ids=ids).logits,
        model(input_ids=ids).logits,
    )


def test_an_empty_sequence_predicts_nothing(model) -> None:
    arrays = arrays_of((3,))
    arrays["attention_mask"][:, 1:] = False
    batch = batch_of(arrays)
    assert len(batch.extra(POSITIONS)) == 0
    assert model(batch).loss.item() == 0


def test_an_encoder_of_both_directions_is_refused(bert_config) -> None:
    with pytest.raises(SpecError, match="reads those after it too"):
        model_of(bert_config)


def test_the_baseline_is_the_most_frequent_piece(store) -> None:
    data = {split: store.dataset("sample", split=split, lang="en") for split in ("train", "dev")}
    counts, every = {}, {}
    for split, own in data.items():
        every[split] = [
            int(piece)
            for arrays in own.stream(batch_size=7, max_length=None)
            for ids, size in zip(arrays["input_ids"], arrays["lengths"], strict=True)
            for piece in ids[1:size]
        ]
        counts[split] = np.bincount(every[split])
    most = int(counts["train"].argmax())
    baseline = Clm(RECIPES["clm"]().task, {}).baseline(data["train"])
    assert baseline.score(data["dev"]) == np.mean([piece == most for piece in every["dev"]])


def test_a_run_says_its_perplexity(store, tmp_path) -> None:
    settings = (
        *("data.dataset=sample", "tokenizer=parsebank-wordpiece-en", "max_length=64", "threads=1"),
        *("batch_size=8", "warmup_steps=0", "max_steps=3", "evaluate_every=3", "log_every=1"),
    )
    recipe = replace(with_settings(RECIPES["clm"](), list(settings)), name="small")
    run = train(recipe, store, tmp_path)
    scores = run.progress.evaluations[-1].scores
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    assert 1 < scores["perplexity"] < 20_000
