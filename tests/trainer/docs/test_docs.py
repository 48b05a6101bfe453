"""The guides name everything that can be chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainer.nn.stock import BUNDLED
from trainer.objectives import OBJECTIVES
from trainer.options import DataOptions, TrainingOptions
from trainer.recipes import RECIPES, switches
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS

DOCS = Path(__file__).parents[3] / "docs"
PAGES_OF_SYSTEMS = {path.name: path.read_text("utf-8") for path in (DOCS / "systems").glob("*.md")}
PAGES = (DOCS / "train.md", DOCS / "reference" / "recipes.md")
GUIDE = "".join(page.read_text("utf-8") for page in PAGES) + "".join(PAGES_OF_SYSTEMS.values())
OPTIONS = [
    DataOptions,
    TrainingOptions,
    *(system.options for system in SYSTEMS.values()),
    *(entry.options for entry in OBJECTIVES.values()),
    *(task.options for task in TASKS.values()),
]


@pytest.mark.parametrize("registry", [RECIPES, SYSTEMS, OBJECTIVES, TASKS, BUNDLED])
def test_every_registered_name_is_in_a_guide(registry) -> None:
    assert [name for name in registry if f"`{name}`" not in GUIDE] == []


@pytest.mark.parametrize("options", OPTIONS)
def test_every_option_is_in_a_guide(options) -> None:
    assert [name for name in options.__dataclass_fields__ if f"`{name}`" not in GUIDE] == []


@pytest.mark.parametrize("model", list(switches()))
def test_every_switch_is_in_the_guide_of_its_system(model) -> None:
    assert [one.option for one in switches()[model] if f"| `{one.option}` |" not in GUIDE] == []


def test_every_guide_of_a_system_is_linked() -> None:
    guide = (DOCS / "train.md").read_text("utf-8")
    assert [name for name in PAGES_OF_SYSTEMS if f"(systems/{name})" not in guide] == []
