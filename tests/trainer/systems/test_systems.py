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
    recipes = [make for make in RECIPES.values() if make.__module__ == system.recipes]
    assert recipes
    assert all(make().model.name == name for make in recipes)
    assert (DOCS / f"{folder_of(system).replace('_', '-')}.md").exists()


def test_every_folder_registers_a_system_or_is_shared() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == {folder_of(system) for system in SYSTEMS.values()} | {"frozen"}


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_switches_of_a_system_are_options_of_its_recipes(name) -> None:
    system = SYSTEMS[name]
    recipe = next(make() for make in RECIPES.values() if make.__module__ == system.recipes)
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


def test_data_of_pieces_are_refused_by_systems_of_words() -> None:
    words = [system for system in SYSTEMS.values() if system.options().reads_words]
    assert {system.options().name for system in words} == {"frozen.v1", "gate.v1", "orderfree.v1"}
    for system in words:
        with pytest.raises(SpecError, match="joint_root"):
            system.options().check_data(DataOptions(dataset="any"))
