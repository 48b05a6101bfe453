"""The pages on extending run as they stand, one by one, and as one installed package."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from clients.benchmarks import BENCHMARKS
from service.parsers import BACKENDS
from syntax.matrices import MATRICES
from syntax.subwords import POLICIES
from tests import forked
from trainer.metrics.classification import CLASS_METRICS
from trainer.objectives import OBJECTIVES
from trainer.probing.words import WORD_PROBES
from trainer.recipes import RECIPES
from trainer.systems import SYSTEMS
from trainer.tasks import TASKS

PAGES = Path(__file__).parents[3] / "docs" / "extend"
REGISTRIES = (
    BACKENDS,
    MATRICES,
    BENCHMARKS,
    POLICIES,
    SYSTEMS,
    OBJECTIVES,
    TASKS,
    RECIPES,
    WORD_PROBES,
    CLASS_METRICS,
)
RUN = (
    *("benchmark", "matrix", "parser", "subword-policy"),
    *("metric", "objective", "probe", "system", "task"),
)


class Block(NamedTuple):
    """A block of code in a page; a module has its file name in a comment at the top."""

    kind: str
    code: str

    @property
    def file(self) -> str | None:
        found = re.match(r"# (\w+\.py)\n", self.code)
        return found[1] if found else None


def blocks(page: str) -> Iterator[Block]:
    for kind, code in re.findall(r"```(\w+)\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.S):
        yield Block(kind, code)


def write_modules(page: str, folder: Path) -> None:
    for block in blocks(page):
        if block.file:
            (folder / block.file).write_text(block.code, "utf-8")


@pytest.fixture
def place(tmp_path, store_uri) -> Path:
    """A folder with the store of the sample, and the modules of all pages."""
    shutil.copytree(store_uri, tmp_path / "parsebank-data")
    for page in RUN:
        write_modules(page, tmp_path)
    return tmp_path


def run(code: str, folder: Path, kind: str = "bash", **settings: str) -> str:
    """Run a block as a reader would, with the `parsebank` of this environment."""
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": programs, **settings}
    command = ["bash", "-euo", "pipefail", "-c"] if kind == "bash" else [sys.executable, "-c"]
    found = subprocess.run(
        [*command, code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, f"{code}\n{found.stdout}\n{found.stderr}"
    return found.stdout


def run_page(page: str, folder: Path) -> None:
    count = 0
    path = os.pathsep.join([str(forked.installed() / "bin"), os.environ["PATH"]])
    for block in blocks(page):
        if block.kind in ("python", "bash") and not block.file:
            run(block.code, folder, block.kind, PATH=path)
            count += 1
    assert count


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_a_page_runs(page, place) -> None:
    run_page(page, place)


def test_modules_are_tried_before_they_are_a_package(place) -> None:
    first, install = (block.code for block in blocks("plugins") if block.kind == "bash")
    assert "riddle, answer" in run(first, place)
    assert "pip install ." in install  # as the fixture `installed` does, without a network


def test_every_page_with_code_is_run() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert {page for page in pages if any(blocks(page))} == {*RUN, "plugins"}


def test_the_groups_of_the_page_are_those_of_the_registries() -> None:
    page = (PAGES / "plugins.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(parsebank\.\w+)` \| `[\w.]+\.(\w+)` \|", page, re.M))
    assert set(listed) == {registry.group for registry in REGISTRIES}
    (project,) = (block.code for block in blocks("plugins") if block.kind == "toml")
    assert set(re.findall(r'entry-points\."([^"]+)"', project)) == set(listed)


@pytest.fixture
def installed(place, tmp_path_factory) -> Path:
    """Where pip has installed the package of the page."""
    source, target = tmp_path_factory.mktemp("package"), tmp_path_factory.mktemp("site")
    for page in RUN:
        write_modules(page, source)
    (project,) = (block.code for block in blocks("plugins") if block.kind == "toml")
    (source / "pyproject.toml").write_text(project, "utf-8")
    options = "--quiet --no-deps --no-build-isolation --no-index --disable-pip-version-check"
    run(f"{sys.executable} -m pip install {options} --target {target} .", source)
    for module in place.glob("*.py"):
        module.unlink()
    return target


@pytest.mark.slow
def test_an_installed_package_adds_a_parser_a_matrix_a_policy_and_a_reader(
    installed, place
) -> None:
    here = {"PYTHONPATH": str(installed)}
    assert "riddles" in run("parsebank benchmarks list", place, **here)
    files = place / "files"
    files.mkdir()
    riddle = {"riddle": "What flies?", "answer": "Time does.", "right": "yes"}
    (files / "dev.en.jsonl").write_text(json.dumps(riddle) + "\n", "utf-8")
    (place / "models").mkdir()
    (place / "models" / "en.chain").write_text("baseline\n", "utf-8")
    here["PARSEBANK_MODELS_DIR"] = "models"
    backfill = "parsebank backfill riddles --path files --split dev --lang en --store riddles-store"
    run(f"{backfill} --parser chain/en", place, **here)
    code = """
from featurestore import open_store
with open_store("riddles-store") as store:
    data = store.dataset("riddles", split="dev", lang="en")
    (parser,) = data.parsers.values()
    assert (parser["backend"], parser["version"]) == ("chain.v1", "1"), parser
    batch = next(data.stream(matrices=["siblings", "depth"], policy="show_head"))
    assert batch["siblings"].any() and batch["depth"].max() == 2, batch["depth"]
"""
    run(code, place, "python", **here)


@pytest.mark.slow
def test_an_installed_package_adds_a_system_an_objective_and_a_task(installed, place) -> None:
    here = {"PYTHONPATH": str(installed)}
    assert "depth-sample" in run("parsebank train --list", place, **here)
    settings = """--set task.name=brier.v1 --set 'objectives=[{"name": "leaf.v1"}]'"""
    run(f"parsebank train depth-sample {settings} --max-steps 2 --output run", place, **here)
    result = json.loads((place / "run" / "result.json").read_text("utf-8"))
    assert result["environment"]["plugins"] == {"parsebank-examples": "0.1"}
    assert [one["name"] for one in result["recipe"]["objectives"]] == ["leaf.v1"]
    run("parsebank evaluate run --split dev --lang en", place, **here)
