"""The notebooks run, and the outputs that are kept in them are small and of no one machine."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.blocks import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 200_000
"""Bytes of a notebook with its outputs."""


def runner() -> Any:
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shape(notebook: dict[str, Any]) -> list[list[tuple[str, list[str]]]]:
    """Kind and formats of each output, cell by cell."""
    return [
        [(out["output_type"], sorted(out.get("data", ()))) for out in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Jupyter's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_showed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    found = runner().executed(path, tmp_path)
    assert shape(found) == shape(json.loads(path.read_text("utf-8")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_outputs_are_whole_small_and_portable(path: Path) -> None:
    text = path.read_text("utf-8")
    notebook = json.loads(text)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    kinds = {out["output_type"] for cell in code for out in cell["outputs"]}
    assert "error" not in kinds
    streams = {out.get("name") for cell in code for out in cell["outputs"]}
    assert "stderr" not in streams
    assert len(text) < LARGEST
    assert re.findall(r"(?:/work|/root|/home|/tmp|/Users|site-packages)\b[^\s\"]*", text) == []


def test_every_subject_has_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "benchmark-to-features",
        "parse-and-align",
        "sql-over-a-treebank",
        "train-and-look-inside",
    ]
