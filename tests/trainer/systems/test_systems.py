"""What every folder of `trainer.systems` must have; the registry finds new systems."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import BertConfig

import trainer.systems
from syntax.errors import SpecError
from syntax.matrices import MATRICES
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.nn.encoder import Encoder
from trainer.options import DataOptions, ModelOptions
from trainer.options.settings import described
from trainer.recipes import RECIPES
from trainer.systems import SYSTEMS, System

FOLDER = Path(trainer.systems.__file__).parent
DOCS = Path(__file__).parents[3] / "docs" / "systems"
SIZE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 60}
OFF = {"use_upos": False, "use_deprel": False, "use_tags": False}


def folder_of(system: System) -> str:
    return system.recipes.split(".")[2]


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_a_system_is_whole_in_its_folder(name) -> None:
    system = SYSTEMS[name]
    folder = f"trainer.systems.{folder_of(system)}"
    assert system.options().name == name
    assert issubclass(system.options, ModelOptions)
    assert issubclass(system.load_encoder(), Encoder)
    assert importlib.import_module(folder).__doc__
    own = (system.recipes, *([system.relations] if system.relations else []))
    assert all(module.startswith(folder) for module in own)
    models = {make().model.name for make in RECIPES.values() if make.__module__ == system.recipes}
    assert models == {other for other, one in SYSTEMS.items() if one.recipes == system.recipes}
    assert (DOCS / f"{folder_of(system).replace('_', '-')}.md").exists()


def test_every_folder_registers_a_system_or_is_shared() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == {folder_of(system) for system in SYSTEMS.values()} | {"frozen"}


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_switches_of_a_system_are_options_of_its_recipes(name) -> None:
    system = SYSTEMS[name]
    recipes = (make() for make in RECIPES.values() if make.__module__ == system.recipes)
    recipe = next(recipe for recipe in recipes if recipe.model.name == name)
    known = {key for key, _, _ in described(recipe)}
    assert {switch.option for switch in system.switches} <= known


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_matrices_of_a_system_on_the_device_are_those_of_the_host(name) -> None:
    assert set(SYSTEMS[name].load_relations()) <= set(MATRICES)


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_every_encoder_says_what_it_gives(name, batch) -> None:
    options = SYSTEMS[name].options
    own = {key: value for key, value in OFF.items() if key in options.__dataclass_fields__}
    config = SyntaxConfig(
        encoder=BertConfig(**SIZE, intermediate_size=16).to_dict(),
        attention="parsebank_eager",
        model={"name": name, "use_syntax": name == "syntax_gat.v1", "attention": "eager", **own},
        classes={"label": ["a", "b", "c"]},
        task={"name": "sequence_classification.v1", "label": "label"},
    )
    model = SyntaxModel(config).eval()
    states = torch.randn(*batch.input_ids_BL.shape, 16)
    batch = replace(batch, extras={"word_states": states})
    wanted = {f"output_{gift}": True for gift in model.encoder.gives}
    encoding = model.encoder(batch, **wanted)
    assert encoding.last_hidden_state.shape[-1] == model.encoder.width
    assert all(encoding[gift] is not None for gift in model.encoder.gives)
    assert (encoding.syntax_states is not None) == (model.encoder.syntax_width is not None)


LABELS = ("_", "APP", "det", "nsubj", "root")
MODELS = [
    *(("lisa.v1", {"inject": inject, "arc": 8, "relation": 4}) for inject in (False, True)),
    ("blocking.v1", {"max_distance": 1}),
    ("microbert.v1", {"sla": True}),
    ("pascal.v1", {}),
    *(("sgnet.v1", {"mask": mask}) for mask in ("as_published", "as_released", "convert_span")),
    *(("sgnet.v1", {"aggregation": mix}) for mix in ("concatenation", "bi_attention")),
    ("sgnet.v1", dict.fromkeys(("masking", "layer", "aggregation", "specials"), "as_released")),
    *(("sla.v1", {"threshold": 1, "window": one}) for one in ("as_published", "as_released")),
    ("sla.v1", {"threshold": 1, "gate": "as_released"}),
    ("stock.v1", {}),
    ("syntax_bert.v1", {}),
    ("syntax_bert.v1", {"gat": "as_released", "attention_bias": "as_released", "use_deprel": True}),
    *(
        ("syntax_masks.v1", {"distances": 2, "pairs": True, "aggregation": one})
        for one in ("as_released", "as_published")
    ),
    ("udprlm.v1", {"labels": LABELS, "arc": 8, "relation": 4, "usi_width": 4}),
]


def classifier(name: str, stock, attention: str = SDPA, **options: object) -> SyntaxModel:
    torch.manual_seed(3)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=attention,
        model={"name": name, **options},
        classes={"label": ["no", "yes", "maybe"]},
    )
    model = SyntaxModel(config).eval()
    for weight in model.parameters():
        if not weight.any():  # what starts at 0 would change nothing
            torch.nn.init.normal_(weight, std=0.5)
    return model


@pytest.mark.parametrize("attention", [SDPA, EAGER])
@pytest.mark.parametrize(("name", "options"), MODELS)
@torch.no_grad()
def test_padding_and_company_never_change_an_examples_logits(
    encoder_config, batch_for, take_row, name, options, attention
) -> None:
    """Fails on the release of SG-Net, where rows of special tokens attend to padding."""
    batch = batch_for(SYSTEMS[name].options(**options), roots=0.2, pad=3)
    model = classifier(name, encoder_config, attention, **options)
    together = model(batch).logits["label"]
    for row in range(len(batch)):
        alone = model(take_row(batch, row)).logits["label"][0]
        assert (alone - together[row]).abs().max() < 1e-5


@pytest.mark.parametrize(("name", "options"), MODELS)
@torch.no_grad()
def test_a_saved_model_comes_back_the_same(tmp_path, bert_config, batch_for, name, options) -> None:
    model = classifier(name, bert_config, **options)
    batch = batch_for(SYSTEMS[name].options(**options))
    model.save_pretrained(tmp_path)
    loaded = SyntaxModel.from_pretrained(tmp_path).eval()
    assert isinstance(loaded.encoder, SYSTEMS[name].load_encoder())
    assert torch.equal(loaded(batch).logits["label"], model(batch).logits["label"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"), {name: own for name, own in MODELS if name != "udprlm.v1"}.items()
)
def test_a_model_learns_sixteen_examples_by_heart(bert_config, batch_for, name, options) -> None:
    batch = batch_for(SYSTEMS[name].options(**options), sizes=(8,) * 16)
    bert_config.hidden_dropout_prob = bert_config.attention_probs_dropout_prob = 0.0
    model = classifier(name, bert_config, **options).train()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0)
    for _ in range(60):
        optimizer.zero_grad()
        model(batch).loss.backward()
        optimizer.step()
    predicted = model.eval()(batch).logits["label"].argmax(1)
    assert torch.equal(predicted, batch.labels["label"])


def test_an_objective_that_an_encoder_cannot_serve_is_refused(bert_config) -> None:
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": "sgnet.v1"},
        classes={"label": ["a", "b"]},
        task={"name": "sequence_classification.v1", "label": "label"},
        objectives=[{"name": "tree_depth.v1", "states": "syntax"}],
    )
    with pytest.raises(SpecError, match="has no syntax states"):
        SyntaxModel(config)


def test_a_common_root_is_refused_by_systems_of_words_and_of_separate_trees() -> None:
    words = {name for name, system in SYSTEMS.items() if system.options().reads_words}
    assert words == {"frozen.v1", "gate.v1", "orderfree.v1"}
    for name in words | {"sgnet.v1", "sgnet_transformer.v1", "sla.v1"}:
        with pytest.raises(SpecError, match=r"data\.joint_root=false"):
            SYSTEMS[name].options().check_data(DataOptions(dataset="any"))
    SYSTEMS["sla.v1"].options().check_data(DataOptions(dataset="any", joint_root=False))
