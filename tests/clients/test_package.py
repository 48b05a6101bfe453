"""The package `parsebank`: public names, and a command that no module of the user's can break."""

from __future__ import annotations

import ast
import doctest
import os
import signal
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
import yaml

import parsebank
from clients.processes import free_port
from tests.clients.hostile import NAMES, hostile_folder

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DESIGNED = {
    *("DependencyTree", "Sentence", "read_conllu", "write_conllu"),
    *("tree_distance", "tree_depth", "ancestor_mask", "open_store", "Client", "AsyncClient"),
}
"""Names that others rely on."""

HEAVY = ("torch", "transformers", "numpy", "numba", "pyarrow", "duckdb", "fastapi", "httpx", "rich")


def python(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_public_name_is_that_of_its_package() -> None:
    assert set(parsebank.__all__) >= DESIGNED
    for name in parsebank.__all__:
        homes = [import_module(home) for home in parsebank.PACKAGES]
        found = [getattr(home, name) for home in homes if name in getattr(home, "__all__", ())]
        assert [getattr(parsebank, name)] == found, name
    assert set(parsebank.__all__) <= set(dir(parsebank))
    assert parsebank.__version__ == PROJECT["version"]
    with pytest.raises(AttributeError, match="has no attribute 'Tree'"):
        parsebank.Tree  # noqa: B018


def test_checkers_of_types_see_the_same_names() -> None:
    module = ast.parse(Path(parsebank.__file__).read_text("utf-8"))
    (typed,) = (node for node in module.body if isinstance(node, ast.If))
    imported = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name for node in imported for alias in node.names} == set(parsebank.__all__)


def test_its_docstring_holds() -> None:
    assert doctest.testmod(parsebank).failed == 0


def test_its_import_takes_no_library(tmp_path: Path) -> None:
    code = (
        f"import sys, parsebank; print([name for name in {HEAVY} if name in sys.modules]);"
        "[getattr(parsebank, name) for name in parsebank.__all__]; print('torch' in sys.modules)"
    )
    assert python("-c", code, cwd=tmp_path).stdout == "[]\nFalse\n"


@pytest.mark.parametrize("name", parsebank.PACKAGES)
def test_a_module_that_hides_a_package_is_named_and_not_run(tmp_path: Path, name: str) -> None:
    module = tmp_path / f"{name}.py"
    module.write_text("print('run')", "utf-8")
    done = python("-c", "from parsebank import Client", cwd=tmp_path)
    message = f"ImportError: {module} hides Parsebank's package '{name}'; rename it"
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("path", [None, os.pathsep, "."])
def test_modules_in_the_current_folder_do_not_break_the_command(
    tmp_path: Path, path: str | None
) -> None:
    """An empty entry of PYTHONPATH, as ``$PYTHONPATH:more`` makes it, is the current folder."""
    env = {} if path is None else {"PYTHONPATH": path}
    done = python("-m", "parsebank", "benchmarks", "list", cwd=hostile_folder(tmp_path), **env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "xnli" in done.stdout


def test_the_hostile_folder_is_hostile(tmp_path: Path) -> None:
    done = python("-m", "clients.cli", cwd=hostile_folder(tmp_path))
    assert done.returncode == 86
    assert done.stderr == "imported clients"


def test_processes_of_the_command_keep_the_folder_off_their_path(tmp_path: Path) -> None:
    child = "import sys; print(sys.flags.safe_path)"
    code = (
        "import subprocess, sys; from parsebank.__main__ import leave_current_folder;"
        "leave_current_folder(); import numpy;"
        f"subprocess.run([sys.executable, '-c', {child!r}])"
    )
    assert python("-c", code, cwd=hostile_folder(tmp_path)).stdout == "True\n"


def test_a_plugin_in_the_current_folder_is_still_found(tmp_path: Path) -> None:
    (hostile_folder(tmp_path) / "my_plugin.py").write_text("print('plugin')", "utf-8")
    done = python(*("-m", "parsebank", "--import", "my_plugin", "benchmarks", "list"), cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "plugin")


def test_all_packages_have_types_and_are_built() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    packages = build["targets"]["wheel"]["packages"]
    assert set(packages) == {"parsebank", *parsebank.PACKAGES}
    assert [name for name in packages if not (ROOT / name / "py.typed").is_file()] == []
    assert set(parsebank.PACKAGES) < {*NAMES}


def test_the_command_has_the_name_of_the_distribution() -> None:
    assert PROJECT["scripts"] == {PROJECT["name"]: "parsebank.__main__:main"}


def test_the_citation_follows_its_schema_and_the_project() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    path = ROOT / "CITATION.cff"
    command = [checker, "--builtin-schema", "vendor.citation-file-format", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    citation = yaml.safe_load(path.read_text("utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["keywords"] == PROJECT["keywords"]


@pytest.mark.slow
def test_a_dask_worker_in_that_folder_imports_our_packages(tmp_path: Path) -> None:
    from distributed import Client

    dask = str(Path(sys.executable).with_name("dask"))
    folder, address = hostile_folder(tmp_path), f"tcp://127.0.0.1:{free_port()}"
    scheduler = [
        dask,
        "scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        address.rpartition(":")[2],
        "--no-dashboard",
    ]
    worker = [dask, "worker", address, "--nthreads", "1", "--no-dashboard"]
    started = [
        subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL, start_new_session=True)
        for command in (scheduler, worker)
    ]
    try:
        with Client(address, timeout=120) as client:
            named = client.submit(resolve_name, "service.jobs:__name__").result(timeout=120)
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    assert named == "service.jobs"
