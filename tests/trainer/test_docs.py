"""The guide names everything that can be chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.models.build import BUNDLED, MODELS
from trainer.objectives import OBJECTIVES
from trainer.recipes import RECIPES
from trainer.recipes.base import DataOptions, ModelOptions, TrainingOptions
from trainer.switches import SYNTAX_MBERT
from trainer.tasks import TASKS

GUIDE = (Path(__file__).parents[2] / "docs" / "trainer.md").read_text("utf-8")


@pytest.mark.parametrize("registry", [RECIPES, MODELS, OBJECTIVES, TASKS, BUNDLED])
def test_every_registered_name_is_in_the_guide(registry) -> None:
    assert [name for name in registry if f"`{name}`" not in GUIDE] == []


@pytest.mark.parametrize("options", [DataOptions, ModelOptions, TrainingOptions])
def test_every_option_is_in_the_guide(options) -> None:
    assert [name for name in options.__dataclass_fields__ if f"`{name}`" not in GUIDE] == []


def test_every_switch_is_in_the_guide() -> None:
    assert [one.option for one in SYNTAX_MBERT if f"| `{one.option}` |" not in GUIDE] == []
