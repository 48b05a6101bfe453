"""Mistakes on the command line: each is answered before an app or torch is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.mistakes import MISTAKES, places

HEAVY = ("accelerate", "fastapi", "numba", "service.app", "stanza", "torch", "transformers")

PROGRAM = f"""
import json, sys
from typer.testing import CliRunner
from clients.cli import build_app

app, runner, answers = build_app(), CliRunner(), []
for words in json.loads(sys.argv[1]):
    found = runner.invoke(app, words)
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    answers.append([found.exit_code, found.output, loaded])
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(
    tmp_path_factory: pytest.TempPathFactory, store_uri: str, trained: Path
) -> dict[str, tuple[int, str, list[str], str]]:
    """Exit code, output, heavy modules loaded by then, and what to find; all in one process."""
    folder = tmp_path_factory.mktemp("mistakes")
    found = {**places(folder), "store": Path(store_uri), "run": trained}
    commands = [one.words(found) for one in MISTAKES]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    told = zip(MISTAKES, json.loads(done.stdout), strict=True)
    return {one.command: (*answer, one.says.format(**found)) for one, answer in told}


@pytest.mark.parametrize("command", [one.command for one in MISTAKES])
def test_a_mistake_is_named_before_anything_heavy_is_loaded(command, answers) -> None:
    exit_code, output, loaded, expected = answers[command]
    assert exit_code in (1, 2)
    assert "Error" in output
    assert expected in output
    assert loaded == []
