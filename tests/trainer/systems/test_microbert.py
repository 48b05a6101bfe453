"""MicroBERT: the encoder, its recipes, gold among silver, and a trained encoder exported."""

from __future__ import annotations

import json
import logging
import pickle
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel
from typer.testing import CliRunner

from clients.benchmarks import SAMPLE
from clients.cli import build_app
from featurestore import FeatureStore, TreebankTooLargeError, open_store, with_repeated
from service.tokenizers import bundled_tokenizers
from syntax.contrast import read_sampler
from syntax.errors import ModelLoadError, SpecError
from tests.trainer.runs import batches_of, finished, resumed
from trainer.api import evaluate
from trainer.evaluation.export import export_encoder
from trainer.evaluation.trained import load_model
from trainer.loop import Run, train
from trainer.models.parts import PARTS
from trainer.nn.attention import EAGER, SDPA
from trainer.nn.encoder import Encoder
from trainer.nn.relative import RelativeBertModel
from trainer.nn.stock import new_stock
from trainer.options import MicroBertOptions, Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.results import RESULT, FinishedRun

SMALL = (
    *("model.hidden_size=16", "model.heads=2", "model.layers=2", "model.feed_forward=16"),
    *("model.max_positions=64", "max_length=64", "training.batch_size=4", "accumulation=2"),
    *("max_steps=3", "warmup_steps=1", "log_every=1", "evaluate_every=2", "checkpoint_every=2"),
    "data.lang=en",
)


@pytest.fixture(scope="module")
def silver(tmp_path_factory, sample_rows, append_rows) -> Iterator[FeatureStore]:
    """Twenty parsed examples, and two of a treebank."""
    with open_store(str(tmp_path_factory.mktemp("silver") / "store")) as store:
        append_rows(store, sample_rows["train"][:20], "train", "en", "silver")
        append_rows(store, sample_rows["dev"][:8], "dev", "en", "silver")
        append_rows(store, sample_rows["train"][20:22], "train", "en", "gold")
        append_rows(store, sample_rows["train"][20:30], "train", "en", "large")
        yield store


def small(*settings: str) -> Recipe:
    return with_settings(RECIPES["microbert-mlm"](), [*SMALL, *settings])


def test_the_encoder_has_the_published_size() -> None:
    content = MicroBertOptions().new_encoder()
    assert content is not None
    config = AutoConfig.for_model(**content, vocab_size=8589, pad_token_id=0)
    model = new_stock(config, SDPA)
    assert isinstance(model, RelativeBertModel)
    assert model.pooler is None
    sizes = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert sizes["embeddings.word_embeddings.weight"] == (8589, 128)
    assert sizes["embeddings.token_type_embeddings.weight"] == (2, 128)
    tables = [name for name in sizes if "distance_embedding" in name]
    assert [sizes[name] for name in tables] == [(1023, 16)] * 3
    assert sizes["encoder.layer.2.intermediate.dense.weight"] == (512, 128)
    assert not [name for name in sizes if "position_embeddings" in name]
    assert (config.hidden_act, config.layer_norm_eps) == ("gelu", 1e-12)
    absolute = replace(MicroBertOptions(), positions="absolute").new_encoder()
    assert absolute is not None
    assert absolute["model_type"] == "bert"


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(SpecError, match="5 heads cannot divide"):
        MicroBertOptions(heads=5).new_encoder()


def test_the_released_runs_are_those_of_the_released_configuration() -> None:
    """configs/sgcl.jsonnet of lr-sib, with what its classes do where it says nothing."""
    published, released = (
        RECIPES[f"microbert-mlm-xpos-phrase-tree-sla{end}"]() for end in ("", "-as-released")
    )
    assert (released.training, released.optimizers) == (published.training, published.optimizers)
    assert replace(released.model, window="as_published") == published.model
    assert replace(released.data, samplers=()) == replace(published.data, samplers=())
    assert [one.negatives for one in map(read_sampler, released.data.samplers)] == [10, 10]
    phrases, trees = map(read_sampler, published.data.samplers)
    assert (phrases.max_height, trees.negatives, trees.exchanges) == (2, 3, 1)
    xpos, parser, phrase, tree = released.objectives
    assert (xpos.tags, tree.tree_topk) == ("as_released", "released")
    assert (parser.rows, parser.average, parser.detached) == ("as_released", "as_released", True)
    assert (phrase.phrase_loss, phrase.attention) == ("lr_sib", "after_dropout")
    alone = RECIPES["microbert-mlm-xpos-as-released"]()
    assert alone.objectives == (xpos, parser)
    assert alone.data.samplers == ()


@pytest.mark.slow_cases
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_run_trains_resumes_and_keeps_the_last_weights(silver, tmp_path, attention) -> None:
    recipe = small(f"model.attention={attention}", "model.sla=true")
    whole = train(recipe, silver, tmp_path / "whole")
    model = whole.accelerator.unwrap_model(whole.model)
    stock = model.encoder.stock
    assert isinstance(stock, RelativeBertModel)
    assert stock.config._attn_implementation == {"sdpa": SDPA, "eager": EAGER}[attention]
    assert len(model.encoder.gates) == 2
    for group in whole.optimizers[0].optimizer.param_groups:
        assert group["weight_decay"] == 0.01 or not group["params"]
    assert whole.recipe.data.gold_version == silver.dataset("gold", split="train").version
    kept = type(model).from_pretrained(tmp_path / "whole" / "model").state_dict()
    assert all(torch.equal(kept[name], weight) for name, weight in model.state_dict().items())
    again = resumed(recipe, silver, tmp_path / "half", 3)
    assert again.progress.losses == whole.progress.losses


def test_the_treebank_is_one_in_nine_and_drawn_anew(silver, tmp_path) -> None:
    run = Run(small("gold_every=4", "epochs=1", "max_steps=null"), silver, tmp_path, ())
    data = run.data.dataset
    assert len(data) == 20 + 5
    stream = run.data.training_stream(
        run.recipe, torch.device("cpu"), epoch=0, rank=0, world_size=1
    )
    names, masks = Counter(), {}
    for batch in stream:
        width = batch["input_ids"].shape[1]
        for row, name in enumerate(batch["example_id"]):
            names[name] += 1
            at = batch["masked_positions"]
            masks[name] = tuple(at[at // width == row] % width)
    assert set(names.values()) == {1}
    gold = silver.dataset("gold", split="train").columns(["example_id"])["example_id"].to_pylist()
    first, second = gold
    assert {f"{first}{end}" for end in ("", " (repeated 1)", " (repeated 2)")} <= set(names)
    assert {second, f"{second} (repeated 1)"} <= set(names)
    assert masks[first] != masks[f"{first} (repeated 1)"]
    assert run.dev.dataset.rows.repeat is None


def test_a_repeated_dataset_reads_as_its_parts_do(silver) -> None:
    data, gold = (silver.dataset(name, split="train") for name in ("silver", "gold"))
    mixed = with_repeated(data, gold, 8)
    assert mixed.rows.repeat.tolist() == [0] * 22
    read = pickle.loads(pickle.dumps(mixed.open_reader(False)))
    ours = mixed.open_reader(False).read(torch.arange(22).numpy())
    own = data.columns(["example_id"])["example_id"].to_pylist()
    others = gold.columns(["example_id"])["example_id"].to_pylist()
    assert ours.example_ids == [*own[:8], others[0], *own[8:16], others[1], *own[16:]]
    assert read.read(torch.arange(22).numpy()).example_ids == ours.example_ids
    assert mixed.langs == {"en": 22}
    assert len(mixed.where(labels={"label": list(SAMPLE.labels[0].names)})) == 22
    assert mixed.columns(["example_id"])["example_id"].to_pylist() == ours.example_ids
    batches = {
        name: batch["input_ids"][row].tolist()
        for batch in mixed.stream(batch_size=1, matrices=())
        for row, name in enumerate(batch["example_id"])
    }
    plain = {
        name: batch["input_ids"][row].tolist()
        for part in (data, gold)
        for batch in part.stream(batch_size=1, matrices=())
        for row, name in enumerate(batch["example_id"])
    }
    assert batches == plain


def test_a_treebank_that_is_too_large_is_refused_by_name(silver, tmp_path) -> None:
    message = "leave room for 2; set data.gold_every=2, or add text"
    with pytest.raises(TreebankTooLargeError, match=message) as caught:
        train(small("gold=large"), silver, tmp_path)
    assert caught.value.error_type == "treebank_too_large"
    assert caught.value.detail == {"examples": 10, "places": 2}
    data, gold = (silver.dataset(name, split="train") for name in ("silver", "large"))
    assert len(with_repeated(data, gold, 2)) == 30
    with pytest.raises(TreebankTooLargeError, match="add text: there must be as much of it"):
        with_repeated(gold, data, 1)


def test_a_treebank_of_another_kind_is_refused(silver) -> None:
    data = silver.dataset("silver", split="train")
    other = silver.dataset("gold", split="train")
    other.card = replace(other.card, fields=("a", "b"))
    with pytest.raises(SpecError, match="has the fields"):
        with_repeated(data, other, 8)


@pytest.fixture
def pretrained(silver, tmp_path) -> Path:
    finished(small(), silver, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.slow
def test_an_exported_encoder_starts_other_recipes(
    pretrained, silver, store, small_recipe, tmp_path
) -> None:
    folder = tmp_path / "encoder"
    (pretrained / RESULT).unlink()  # as of a run that was killed after an evaluation
    answer = CliRunner().invoke(build_app(), ["export", str(pretrained), str(folder)])
    assert answer.exit_code == 0, answer.output
    loaded = AutoModel.from_pretrained(folder)
    assert isinstance(loaded, RelativeBertModel)
    for name in ("sla.v1", "syntax_bert.v1"):
        joint = [] if name == "syntax_bert.v1" else ["joint_root=false", "separator_edge=none"]
        settings = (f"model.name={name}", f"encoder={folder}", "weights=pretrained", *joint)
        recipe = small_recipe(*settings, "max_length=64", "max_steps=1", "learning_rate=0")
        run = train(recipe, store, tmp_path / name)
        stock = run.accelerator.unwrap_model(run.model).encoder.stock
        ours = loaded.state_dict()
        assert all(torch.equal(ours[key], one) for key, one in stock.state_dict().items())
    again = train(
        small("weights=pretrained", f"encoder={folder}", "max_steps=1"), silver, tmp_path / "again"
    )
    assert again.progress.step == 1
    answer = CliRunner().invoke(build_app(), ["export", str(pretrained), str(folder)])
    assert answer.exit_code
    with pytest.raises(SpecError, match="is not empty"):
        export_encoder(pretrained, folder)


@pytest.fixture(scope="module")
def with_gates(silver, tmp_path_factory) -> Path:
    """An encoder that learned to attend locally, exported."""
    place = tmp_path_factory.mktemp("gates")
    run, folder = place / "run", place / "encoder"
    finished(small("model.sla=true", "learning_rate=0.1"), silver, run)
    export_encoder(run, folder)
    return folder


def states(encoder: Encoder, silver, recipe: Recipe) -> torch.Tensor:
    """Of the first examples of dev."""
    with torch.no_grad():
        return encoder.eval()(batches_of(silver, recipe)[0]).last_hidden_state


def test_gates_are_exported_and_taken_by_the_next_run(with_gates, silver, tmp_path) -> None:
    own = load_model(with_gates.parent / "run").encoder
    learned = own.gates["0"].linear.bias
    assert learned.abs() > 0.01
    assert isinstance(AutoModel.from_pretrained(with_gates), RelativeBertModel)
    settings = ("weights=pretrained", f"encoder={with_gates}", "model.sla=true", "max_steps=1")
    recipe = small(*settings, "learning_rate=0", "task.masked=0.5")
    run = Run(recipe, silver, tmp_path / "next", ())
    ours = run.accelerator.unwrap_model(run.model).encoder
    assert {name: weight.tolist() for name, weight in ours.named_parameters()} == {
        name: weight.tolist() for name, weight in own.named_parameters()
    }
    before, after = states(own, silver, recipe), states(ours, silver, recipe)
    assert torch.equal(before, after)
    with torch.no_grad():
        ours.gates["0"].linear.bias.add_(3.0)
    assert not torch.allclose(before, states(ours, silver, recipe), atol=1e-3)


@pytest.mark.slow
def test_parts_of_another_system_or_of_other_options_are_told(
    with_gates, silver, tmp_path, caplog
) -> None:
    pretrained = ("weights=pretrained", f"encoder={with_gates}", "max_steps=1")
    for settings in (("model.name=sla.v1",), ("model.sla=true", "use_syntax=false")):
        caplog.clear()
        Run(small(*settings, *pretrained), silver, tmp_path / settings[0], ())
        assert "has parts that microbert.v1 learned, and they are left behind" in caplog.text
    for setting, theirs, ours in (("threshold=3", "4", "3"), ("sla=false", "true", "false")):
        name = setting.partition("=")[0]
        message = f"were trained with model.{name}={theirs}, and the recipe says {ours}"
        with pytest.raises(SpecError, match=message):
            Run(small("model.sla=true", f"model.{setting}", *pretrained), silver, tmp_path, ())
    caplog.clear()
    Run(small("model.sla=true", "policy=broadcast", *pretrained), silver, tmp_path / "trees", ())
    assert "learned on trees with data.policy 'attach', and the recipe has 'broadcast'" in (
        caplog.text
    )
    cut = tmp_path / "cut"
    shutil.copytree(with_gates, cut)
    (cut / PARTS).write_bytes((cut / PARTS).read_bytes()[:40])
    with pytest.raises(ModelLoadError, match="export the run again"):
        Run(small("model.sla=true", *pretrained, f"encoder={cut}"), silver, tmp_path, ())


def test_a_run_is_scored_on_the_same_masks_again(pretrained, silver) -> None:
    scored = evaluate(pretrained, silver, split="dev").scores["en"]
    last = FinishedRun.read(pretrained).result["evaluations"][-1]["scores"]
    assert scored.to_json() == pytest.approx(last)
    assert last["pieces"] > 8


def test_an_export_has_the_tokenizer_where_it_is_at_hand(
    pretrained, tmp_path, caplog, monkeypatch
) -> None:
    with caplog.at_level(logging.WARNING):
        export_encoder(pretrained, tmp_path / "bare")
    assert "are not on this machine under that name" in caplog.text
    (bundled,) = bundled_tokenizers().values()
    config = pretrained / "model" / "config.json"
    content = json.loads(config.read_text("utf-8"))
    content["requires"]["tokenizer_name"] = str(bundled)
    config.write_text(json.dumps(content), "utf-8")
    export_encoder(pretrained, tmp_path / "whole")
    assert (tmp_path / "whole" / "tokenizer.json").exists()
