"""Masked language modelling: which pieces are masked, what the loss is, and whole runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import SpecError
from tests.trainer.conftest import as_stream_batch, random_forest
from tests.trainer.everything import recipe_for
from trainer.batch import SyntaxBatch
from trainer.loop import start, train
from trainer.masking import (
    MASKED_ARRAYS,
    MASKED_INPUT,
    POSITIONS,
    TARGETS,
    PieceMasking,
    piece_masking,
    with_masks,
)
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.models.outputs import SyntaxOutput
from trainer.progress import Evaluation, Progress
from trainer.report import result_of
from trainer.tasks.mlm import MlmScorer

MASK, VOCABULARY = 4, 60
MASKING = PieceMasking(MASK, VOCABULARY)


def arrays_of(sizes: tuple[int, ...]) -> dict[str, object]:
    """All that a stream gives."""
    rng = np.random.default_rng(0)
    arrays = as_stream_batch([random_forest(rng, size) for size in sizes], rng)
    arrays["word_ids"] = np.where(arrays["attention_mask"], 0, -1)
    return arrays


def pieces_of(sizes: tuple[int, ...], pad: int = 0) -> dict[str, np.ndarray]:
    """The arrays that masking reads alone."""
    rng, shape = np.random.default_rng(0), (len(sizes), max(sizes) + pad)
    real = np.arange(shape[1]) < np.array(sizes)[:, None]
    special = np.zeros(shape, bool)
    special[:, 0] = True
    special[np.arange(len(sizes)), np.array(sizes) - 1] = True
    ids = np.where(real, rng.integers(5, VOCABULARY, shape), 0)
    words = np.where(real & ~special, 0, -1)
    return {
        "input_ids": ids,
        "attention_mask": real,
        "special_tokens_mask": special,
        "word_ids": words,
    }


def masked_at(drawn, width: int) -> set[tuple[int, int]]:
    return {divmod(int(place), width) for place in drawn[POSITIONS]}


def draw(masking, arrays, keys=None, seed=0, epoch=0):
    keys = keys or [f"key {row}" for row in range(len(arrays["input_ids"]))]
    return masking.sample(arrays, keys, seed, epoch)


def test_shares_are_those_of_the_paper() -> None:
    arrays = pieces_of((300,) * 40)
    drawn, ids = draw(MASKING, arrays), arrays["input_ids"].reshape(-1)
    read = drawn[MASKED_INPUT].reshape(-1)
    maskable = arrays["attention_mask"] & ~arrays["special_tokens_mask"]
    at = drawn[POSITIONS]
    assert len(at) / maskable.sum() == pytest.approx(0.15, abs=0.01)
    # A random piece is the mask, or the piece itself, once in 60 times each.
    assert (read[at] == MASK).mean() == pytest.approx(0.8 + 0.1 / 60, abs=0.03)
    assert (read[at] == ids[at]).mean() == pytest.approx(0.1 + 0.1 / 60, abs=0.03)
    assert (drawn[TARGETS] == ids[at]).all()
    rest = np.ones(len(ids), bool)
    rest[at] = False
    assert (read[rest] == ids[rest]).all()


@given(st.lists(st.integers(3, 30), min_size=1, max_size=5), st.integers(0, 9), st.integers(0, 3))
def test_masks_are_of_pieces_alone_and_never_of_padding(sizes, pad, epoch) -> None:
    arrays = pieces_of(tuple(sizes), pad)
    width = arrays["input_ids"].shape[1]
    places = masked_at(draw(MASKING, arrays, epoch=epoch), width)
    assert places
    assert all(1 <= place < sizes[row] - 1 for row, place in places)


def test_a_draw_depends_on_seed_epoch_and_example_alone() -> None:
    together = pieces_of((40, 20, 30))
    width, keys = 40, ["a", "b", "c"]
    first = masked_at(draw(MASKING, together, keys, 1, 2), width)
    wider = {name: np.pad(array[::-1], ((0, 0), (0, 7))) for name, array in together.items()}
    reversed_ = masked_at(draw(MASKING, wider, keys[::-1], 1, 2), width + 7)
    assert {(2 - row, place) for row, place in reversed_} == first
    alone = {name: value[1:2] for name, value in together.items()}
    own = {(1, place) for _, place in masked_at(draw(MASKING, alone, ["b"], 1, 2), width)}
    assert own == {(row, place) for row, place in first if row == 1}
    for seed, epoch in ((1, 3), (2, 2)):
        assert masked_at(draw(MASKING, together, keys, seed, epoch), width) != first


def test_a_batch_without_a_masked_piece_is_drawn_again() -> None:
    arrays = pieces_of((3,))
    for epoch in range(40):
        drawn = draw(MASKING, arrays, epoch=epoch)
        again = draw(MASKING, arrays, epoch=epoch)
        assert len(drawn[POSITIONS]) == 1
        assert (drawn[MASKED_INPUT] == again[MASKED_INPUT]).all()


def test_whole_words_are_masked_together() -> None:
    arrays = pieces_of((200, 120))
    rng = np.random.default_rng(1)
    words = np.full(arrays["input_ids"].shape, -1)
    for row, size in enumerate((200, 120)):
        words[row, 1 : size - 1] = np.cumsum(rng.random(size - 2) < 0.5)
    arrays["word_ids"] = words
    drawn = draw(replace(MASKING, whole_words=True), arrays)
    places = masked_at(drawn, 200)
    hit = {(row, words[row, place]) for row, place in places}
    real = arrays["attention_mask"] & ~arrays["special_tokens_mask"]
    everything = {
        (row, place) for row, place in np.argwhere(real) if (row, words[row, place]) in hit
    }
    assert places == {(int(row), int(place)) for row, place in everything}
    assert len({(row, words[row, place]) for row, place in np.argwhere(real)}) > len(hit)


def test_a_word_does_not_go_on_behind_a_special_token() -> None:
    arrays = pieces_of((9,))
    arrays["special_tokens_mask"][0, 4] = True
    arrays["word_ids"] = np.array([[-1, 0, 0, 0, 0, 0, 0, 0, -1]])
    whole = replace(MASKING, whole_words=True)
    seen = {frozenset(masked_at(draw(whole, arrays, epoch=epoch), 9)) for epoch in range(60)}
    left, right = ({(0, place) for place in places} for places in ((1, 2, 3), (5, 6, 7)))
    assert frozenset(left) in seen
    assert frozenset(right) in seen


def test_losses_that_are_not_finite_are_counted_and_kept_with_the_progress() -> None:
    progress = Progress()
    progress.count({"batch_without_masked_piece": 1})
    progress.take([1.0, float("nan"), 2.0, float("inf")])
    assert progress.outcomes == {"batch_without_masked_piece": 1, "loss_not_finite": 2}
    assert Progress.from_state(progress.to_state()) == progress


def test_a_tokenizer_without_a_mask_token_is_refused(tokenizer) -> None:
    with pytest.raises(SpecError, match="has no mask token"):
        piece_masking(replace(tokenizer.special_tokens, mask_id=None), 0.15)


def model_of(task: str, **options: object) -> SyntaxModel:
    from transformers import BertConfig

    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = SyntaxConfig(
        encoder=BertConfig(vocab_size=VOCABULARY, intermediate_size=16, **size).to_dict(),
        model={"name": "sla.v1", "use_syntax": False},
        task={"name": task, **options},
    )
    return SyntaxModel(config).eval()


def batch_of(arrays, drawn) -> SyntaxBatch:
    given = with_masks({**arrays, **drawn})
    return SyntaxBatch.from_numpy(given, {}, MASKED_ARRAYS)


@pytest.mark.parametrize("output_bias", [True, False])
def test_the_loss_is_that_of_a_slow_twin(output_bias) -> None:
    arrays = arrays_of((12, 7, 9))
    drawn, model = draw(MASKING, arrays), model_of("mlm.v1", output_bias=output_bias)
    if output_bias:
        torch.nn.init.normal_(model.head.decoder.bias)
    assert (model.head.decoder.bias is not None) == output_bias
    torch.nn.init.normal_(model.head.decoder.norm.bias)
    batch = batch_of(arrays, drawn)
    states = model.encoder(batch).last_hidden_state.double()
    decoder, words = model.head.decoder, model.encoder.stock.get_input_embeddings().weight
    losses, right = [], 0
    for place, target in zip(drawn[POSITIONS], drawn[TARGETS], strict=True):
        row, column = divmod(int(place), 12)
        x = decoder.dense.weight.double() @ states[row, column] + decoder.dense.bias.double()
        x = 0.5 * x * (1 + torch.erf(x / 2**0.5))
        x = (x - x.mean()) / (x.var(unbiased=False) + decoder.norm.eps).sqrt()
        x = x * decoder.norm.weight.double() + decoder.norm.bias.double()
        logits = torch.stack([word.double() @ x for word in words])
        if output_bias:
            logits = logits + decoder.bias.double()
        losses.append(-(logits - logits.exp().sum().log())[int(target)])
        right += int(logits.argmax()) == target
    output = model(batch)
    mean = float(torch.stack(losses).mean().detach())
    assert float(output.loss.detach()) == pytest.approx(mean, rel=1e-5)
    scorer = MlmScorer()
    scorer.add(output, batch)
    scores = scorer.scores()
    assert scores.perplexity == pytest.approx(np.exp(mean), rel=1e-5)
    assert scores.accuracy == scores.headline == right / len(losses)
    assert (scores.examples, scores.pieces) == (3, len(losses))


def test_the_decoder_is_the_word_embeddings_and_is_saved_once(tmp_path) -> None:
    model = model_of("mlm.v1")
    arrays = arrays_of((12, 7))
    batch = batch_of(arrays, draw(MASKING, arrays))
    assert not [name for name in model.state_dict() if "embeddings" in name and "head" in name]
    model.save_pretrained(tmp_path)
    loaded = SyntaxModel.from_pretrained(tmp_path).eval()
    assert torch.equal(loaded(batch).loss, model(batch).loss)
    with torch.no_grad():
        loaded.encoder.stock.get_input_embeddings().weight[7] += 1
    assert not torch.equal(loaded(batch).logits["pieces"], model(batch).logits["pieces"])


def test_text_without_masks_has_logits_at_every_position() -> None:
    model = model_of("mlm.v1")
    output = model(input_ids=torch.tensor([[2, 7, 9, 3]]))
    assert isinstance(output, SyntaxOutput)
    assert output.loss is None
    assert output.logits.shape == (1, 4, VOCABULARY)


def test_a_model_of_words_has_no_pieces_to_predict(bert_config) -> None:
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": "gate.v1", "use_tags": False},
        task={"name": "mlm.v1"},
    )
    with pytest.raises(SpecError, match="reads stored states of words"):
        SyntaxModel(config)


MLM = ("task.name=mlm.v1", "model.name=sla.v1", "joint_root=false", "separator_edge=none")


def test_a_run_goes_on_after_batches_of_special_tokens_and_counts_them(
    store, small_recipe, tmp_path
) -> None:
    # [CLS] [SEP] [SEP] leave no room for a piece.
    run = train(small_recipe(*MLM, "max_length=3", "max_steps=2"), store, tmp_path)
    assert run.progress.losses == [0.0, 0.0]
    assert result_of(run)["outcomes"] == {"batch_without_masked_piece": 2}
    assert run.progress.evaluations[-1].scores["pieces"] == 0


def test_masks_of_an_epoch_are_new_and_those_of_dev_are_not(store, small_recipe, tmp_path) -> None:
    run = start(small_recipe(*MLM), store, tmp_path)
    source, recipe = run.data, run.recipe

    def read(stream) -> dict[str, tuple[int, ...]]:
        found = {}
        for arrays in stream:
            width = arrays["input_ids"].shape[1]
            for row, name in enumerate(arrays["example_id"]):
                at = arrays[POSITIONS][arrays[POSITIONS] // width == row]
                found[name] = tuple((at % width).tolist())
        return found

    device = torch.device("cpu")
    epochs = [
        read(source.training_stream(recipe, device, epoch=epoch, rank=0, world_size=1))
        for epoch in (0, 0, 1)
    ]
    assert epochs[0] == epochs[1] != epochs[2]
    halves: dict[str, tuple[int, ...]] = {}
    for rank in range(2):
        halves |= read(source.training_stream(recipe, device, epoch=0, rank=rank, world_size=2))
    assert halves == epochs[0]
    assert read(run.dev.evaluation_stream(recipe)) == read(run.dev.evaluation_stream(recipe))


def test_as_an_objective_it_masks_what_the_task_trains_on(everything, tmp_path) -> None:
    recipe = recipe_for(
        "token_classification.v1",
        'objectives=[{"name": "mlm.v1", "output_bias": false}]',
        "max_steps=3",
        "evaluate_every=3",
        "model.dropout=0",
    )
    events = []
    run = train(recipe, everything, tmp_path, observers=[events.append])
    losses = next(event.losses for event in events if not isinstance(event, Evaluation))
    assert losses["mlm.v1"] > 1
    assert losses["loss"] == pytest.approx(losses["task"] + losses["mlm.v1"], rel=1e-5)
    (arrays, *_) = run.data.training_stream(
        run.recipe, torch.device("cpu"), epoch=0, rank=0, world_size=1
    )
    read = with_masks(arrays)["input_ids"]
    assert (read != arrays["input_ids"]).any()
    for arrays in run.dev.evaluation_stream(run.recipe):
        assert len(arrays[POSITIONS]) == 0
        assert (with_masks(arrays)["input_ids"] == arrays["input_ids"]).all()
