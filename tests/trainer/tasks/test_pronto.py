"""PrOnto's tasks: what the model reads, from the files to scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertConfig

from clients.benchmarks import BENCHMARKS
from featurestore import FeatureStore, open_store
from service.parsers import Parser
from service.tokenizers import LoadedTokenizer
from syntax.errors import SpecError
from syntax.examples import Example
from tests.trainer.rows import read_row, write_rows
from tests.trainer.runs import batches_of, finished
from trainer.api import evaluate, predict
from trainer.data import open_source
from trainer.evaluation.export import export_encoder
from trainer.loop import train
from trainer.models.build import build_model
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.progress import Evaluation, Progress
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import read_result
from trainer.streams import open_streams, pinned, profile_streams

FILES = Path(__file__).parents[2] / "fixtures/benchmarks/pronto"
NAMES = [name for name in RECIPES if name.startswith("pronto-")]
SENSES = ("give.01", "go.02", "see.01")
"""Of the training pairs; those of dev and test have others, too."""


def append_pronto(
    store: FeatureStore, files: Path, parser: Parser, tokenizer: LoadedTokenizer, name: str
) -> None:
    """All splits of a task, read from the files and parsed."""
    reader = BENCHMARKS[name]
    for split in ("train", "dev", "test"):
        items = [one for one in reader.read(files, split, "en") if isinstance(one, Example)]
        rows = [read_row(parser, tokenizer, *one) for one in enumerate(items)]
        write_rows(store, parser, tokenizer, reader.spec(split, "en"), rows)


@pytest.fixture(scope="module")
def verses(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    with open_store(tmp_path_factory.mktemp("verses")) as store:
        for name in {RECIPES[recipe]().data.dataset for recipe in NAMES}:
            append_pronto(store, FILES, english, tokenizer, name)
        yield store


def recipe_of(name: str, *settings: str) -> Recipe:
    small = ("encoder=parsebank-tiny", "weights=random", "max_length=64", "batch_size=4")
    return with_settings(RECIPES[name](), [*small, "training.epochs=2", *settings])


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", NAMES)
def test_every_task_trains_and_is_scored_beside_the_majority_class(verses, tmp_path, name) -> None:
    run = finished(recipe_of(name), verses, tmp_path)
    result = read_result(tmp_path)
    assert len(run.progress.evaluations) == 2
    assert 0 <= result["accuracy"] <= 1
    assert result["baseline"]["name"] == "majority class"
    scored = evaluate(tmp_path, verses, "test")
    assert scored.scores["en"].examples == 2
    assert scored.baselines["en"].name == "majority class"


def fitted(store: FeatureStore, *settings: str) -> Recipe:
    made = recipe_of("pronto-same-sense", *settings)
    return pinned(made, open_streams(store, made))


@pytest.mark.parametrize("length", [64, 9])
def test_the_sense_is_one_token_behind_the_last_separator(verses, tokenizer, length) -> None:
    """Truncation takes it from neither the sense nor the separators."""
    made, special = fitted(verses, f"max_length={length}"), tokenizer.special_tokens
    assert made.task.items == SENSES
    (batch,) = batches_of(verses, with_settings(made, ["evaluation_batch_size=8"]), "train")
    assert batch.input_ids_BL.shape[1] <= length
    for row, sense in enumerate(batch.arrays["sense"]):
        end = int(batch.lengths_B[row])
        ids = batch.input_ids_BL[row, :end].tolist()
        assert ids[-2:] == [*special.suffix, special.vocab_size + 1 + SENSES.index(sense)]
        assert max(ids[:-1]) < special.vocab_size
        assert ids.count(special.separator[0]) == 2
        assert batch.attention_mask_BL[row, end - 1]
        assert batch.special_tokens_mask_BL[row, end - 1]
        assert int(batch.token_type_ids_BL[row, end - 1]) == 1
        assert int(batch.parents_BL[row, end - 1]) == -1


def test_a_sense_that_no_training_pair_has_is_the_common_one(verses, tokenizer) -> None:
    (batch,) = batches_of(verses, fitted(verses), "test")
    vocabulary, found = tokenizer.special_tokens.vocab_size, {}
    for row, sense in enumerate(batch.arrays["sense"]):
        found[sense] = int(batch.input_ids_BL[row, int(batch.lengths_B[row]) - 1])
    assert found == {"take.01": vocabulary, "go.02": vocabulary + 1 + SENSES.index("go.02")}


def test_a_task_without_a_sense_reads_what_it_read_before(verses, tokenizer) -> None:
    (batch,) = batches_of(verses, fitted(verses, "task.item=null"), "test")
    last = batch.input_ids_BL[torch.arange(2), batch.lengths_B - 1]
    assert last.tolist() == [tokenizer.special_tokens.suffix[0]] * 2


def test_a_pretrained_encoder_gets_rows_for_senses_and_keeps_its_own(
    verses, tmp_path, tokenizer
) -> None:
    size = tokenizer.special_tokens.vocab_size
    config = BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        vocab_size=size,
    )
    encoder = AutoModel.from_config(config)
    encoder.save_pretrained(tmp_path)
    made = recipe_of("pronto-same-sense", f"encoder={tmp_path}", "weights=pretrained")
    made = with_settings(made, ["model.any_tokenizer=true"])
    sources = open_streams(verses, made)
    made = pinned(made, sources)
    model = build_model(made, profile_streams(sources, made))
    rows = model.get_input_embeddings().weight
    assert rows.shape[0] == size + 1 + len(SENSES)
    assert torch.equal(rows[:size], encoder.get_input_embeddings().weight)
    (batch,) = batches_of(verses, with_settings(made, ["evaluation_batch_size=8"]), "train")
    model(batch).loss.backward()
    learned = model.get_input_embeddings().weight.grad[size:].abs().sum(1) > 0
    assert learned.tolist() == [False, True, True, True]


@pytest.mark.slow
def test_predictions_of_pairs_need_their_sense(verses, tmp_path, client) -> None:
    finished(recipe_of("pronto-same-sense"), verses, tmp_path)
    pair = {"verse1": "She gave water .", "verse2": "He gave bread ."}
    item = {**pair, "sense": "give.01"}
    (found,) = predict(tmp_path, [item], client=client)
    assert found.predicted in ("same", "different")
    with pytest.raises(SpecError, match="it has no 'sense'"):
        predict(tmp_path, [pair], client=client)


def test_models_that_read_stored_words_have_no_place_for_a_sense(verses) -> None:
    made = recipe_of("pronto-same-sense", "model.name=gate.v1")
    with pytest.raises(SpecError, match="adds tokens to the pieces"):
        open_source(verses, made, "train", "en")


def test_the_weights_with_the_lowest_loss_are_kept(verses, tmp_path) -> None:
    losses = (0.7, float("nan"), 0.5, 0.5, 0.6)
    evaluations = [
        Evaluation(step, "accuracy", step / 9, {"loss": loss}) for step, loss in enumerate(losses)
    ]
    progress = Progress(evaluations=evaluations)
    kept = [progress.kept(which) for which in ("lowest_loss", "best", "last")]
    assert [one.step for one in kept] == [2, 4, 4]
    run = train(recipe_of("pronto-sentence-mood", "training.epochs=3"), verses, tmp_path)
    scores = [one.scores["loss"] for one in run.progress.evaluations]
    best = run.progress.evaluations[int(np.argmin(scores))]
    assert result_of(run)["best_step"] == best.step


def test_local_attention_lets_every_piece_see_the_sense(verses) -> None:
    """As [CLS] and [SEP], which are in no tree either."""
    tiny = ("encoder=parsebank-tiny", "weights=random")
    made = fitted(verses, "model.name=sla.v1", "use_syntax=true", *tiny)
    (batch,) = batches_of(verses, made, "test")
    (name,) = [name for name in batch.extras if name.startswith("sla_mask")]
    mask_BLL = batch.extra(name)
    for row, length in enumerate(batch.lengths_B.tolist()):
        assert mask_BLL[row, :length, length - 1].all()
        assert not mask_BLL[row, :length, :length].all()


def test_an_exported_microbert_keeps_its_local_attention_and_reads_the_trees_of_verses(
    verses, tmp_path
) -> None:
    sizes = [f"model.{one}=2" for one in ("layers", "heads")]
    settings = (*sizes, "hidden_size=16", "feed_forward=16", "max_steps=1", "evaluate_every=null")
    first = recipe_of("pronto-same-sense-sla", *settings, "learning_rate=0.1")
    run = finished(first, verses, tmp_path / "run")
    export_encoder(tmp_path / "run", tmp_path / "encoder")
    own = run.accelerator.unwrap_model(run.model).encoder.eval()
    pretrained = (f"encoder={tmp_path / 'encoder'}", "weights=pretrained", "learning_rate=0")
    recipe = recipe_of("pronto-sentence-mood-sla", "max_steps=1", *pretrained)
    tuned = train(recipe, verses, tmp_path / "tuned")
    encoder = tuned.accelerator.unwrap_model(tuned.model).encoder.eval()
    batch = batches_of(verses, recipe)[0]
    open_to_all = torch.ones_like(batch.extra(encoder.mask))
    with torch.no_grad():
        found, expected = (one(batch).last_hidden_state for one in (encoder, own))
        flat = encoder(replace(batch, extras={encoder.mask: open_to_all})).last_hidden_state
    assert torch.equal(found, expected)
    assert not torch.allclose(found, flat, atol=1e-3)
