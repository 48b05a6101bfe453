"""Modules of other distributions register themselves; faults are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from syntax.errors import SpecError
from syntax.plugins import DuplicateNameError, PluginError
from syntax.registry import Registry

GOOD = "from syntax.matrices import MATRICES\nMATRICES.add('{name}', lambda parents: parents)\n"


def install(folder: Path, distribution: str, module: str, code: str, group: str = "matrix") -> None:
    """What pip leaves of a distribution with one module and one plugin."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(code, "utf-8")
    facts = folder / f"{distribution}-1.5.dist-info"
    facts.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n"
    (facts / "METADATA").write_text(metadata, "utf-8")
    (facts / "entry_points.txt").write_text(f"[parsebank.{group}]\n{module} = {module}\n", "utf-8")


def run(folder: Path, code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run code where the distributions of a folder are installed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **settings}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_registry_loads_its_own_group_when_it_is_read(tmp_path) -> None:
    install(tmp_path, "first", "first_matrix", GOOD.format(name="mine.v1"))
    install(tmp_path, "second", "second_task", "raise SystemError('never')", "task")
    code = (
        "import sys, syntax.matrices as m;"
        "assert 'first_matrix' not in sys.modules;"
        "assert m.MATRICES.resolve('mine') == 'mine.v1';"
        "assert list(m.MATRICES)[-1] == 'mine.v1';"
        "assert 'second_task' not in sys.modules;"
        "from syntax.plugins import versions; assert versions() == {'first': '1.5'}"
    )
    found = run(tmp_path, code)
    assert (found.returncode, found.stderr) == (0, "")


def test_a_plugin_may_read_the_registry_that_it_extends(tmp_path) -> None:
    code = "from syntax.matrices import MATRICES\nMATRICES.add('mine.v1', MATRICES['depth'])\n"
    install(tmp_path, "first", "first_matrix", code)
    code = "from syntax.matrices import MATRICES as m; assert m['mine'] is m['depth']"
    assert run(tmp_path, code).returncode == 0


def test_broken_plugin_is_named_and_does_not_affect_others(tmp_path) -> None:
    install(tmp_path, "bad", "bad_matrix", "import no_such_module")
    install(tmp_path, "good", "good_matrix", GOOD.format(name="mine.v1"))
    code = (
        "from syntax.matrices import MATRICES\n"
        "assert 'mine' in MATRICES\n"
        "try:\n    MATRICES['wanted']\n"
        "except LookupError as error:\n    print(error)\n"
    )
    found = run(tmp_path, code)
    fault = "the plugin 'bad_matrix' of bad 1.5 cannot be imported: ModuleNotFoundError: No module"
    assert found.stderr.count(fault) == 1
    assert "unknown matrix 'wanted'" in found.stdout
    assert fault in found.stdout
    code = "from clients.cli import main; main()"
    shown = run(tmp_path, f"import sys; sys.argv = ['parsebank', '--help']; {code}")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_a_name_that_two_plugins_register_names_both(tmp_path) -> None:
    install(tmp_path, "one", "one_matrix", GOOD.format(name="mine.v1"))
    install(tmp_path, "two", "two_matrix", GOOD.format(name="mine.v1"))
    code = (
        "from syntax.matrices import MATRICES\n"
        "for _ in range(2):\n"
        "    try:\n        MATRICES['depth']\n"
        "    except ValueError as error:\n        print(type(error).__name__, error)\n"
    )
    lines = run(tmp_path, code).stdout.splitlines()
    expected = (
        "DuplicateNameError the matrix 'mine.v1' is registered twice: by the plugin 'one_matrix' "
        "of one 1.5, and by the plugin 'two_matrix' of two 1.5; give one of them another name"
    )
    assert lines == [expected, expected]


def test_modules_of_the_option_are_imported_and_inherited(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.format(name="mine.v1"), "utf-8")
    child = "from syntax.matrices import MATRICES; assert 'mine' in MATRICES"
    code = (
        "import subprocess, sys; from typer.testing import CliRunner;"
        "from clients.cli import build_app; from service.processes import python_environment;"
        "CliRunner().invoke(build_app(), ['--import', 'mine', 'benchmarks', 'list']);"
        f"sys.exit(subprocess.run([sys.executable, '-P', '-c', {child!r}],"
        " env=python_environment()).returncode)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_a_module_of_the_option_that_is_missing_ends_the_command(monkeypatch) -> None:
    monkeypatch.setenv("PARSEBANK_IMPORT", "no_such_module_here")
    letters: Registry[str] = Registry("letter")
    for _ in range(2):
        with pytest.raises(PluginError, match="the module 'no_such_module_here' of --import"):
            list(letters)
    monkeypatch.delenv("PARSEBANK_IMPORT")
    assert list(letters) == []


def test_a_name_is_refused_with_both_modules() -> None:
    letters: Registry[str] = Registry("letter")
    letters.add("a", "α")
    with pytest.raises(
        DuplicateNameError, match=f"by {__name__}, and by {__name__}; give"
    ) as twice:
        letters.add("a", "β")
    assert isinstance(twice.value, SpecError)
    assert twice.value.detail["by"] == [__name__, __name__]
