"""The front page and the guides keep up with the project."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import typer

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_both_commands_of_the_readme_are_targets() -> None:
    commands = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert commands == ["demo", "test"]
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


def test_every_command_that_the_pages_show_exists() -> None:
    app = typer.Typer()
    for entry in entry_points(group="parsebank.commands"):
        entry.load()(app)
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = set(re.findall(r"(?:^|[`&;] ?)parsebank ([a-z][a-z-]*)\b", text, re.MULTILINE))
    assert shown - known == set()


def test_torch_is_pinned_for_the_extra_that_asks_for_it() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.search(r"^torch==\d", constraints, re.MULTILINE)
    assert not any(requirement.startswith("torch") for requirement in project["dependencies"])
