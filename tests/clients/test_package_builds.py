"""The distribution as a stranger gets it: built, installed elsewhere, and run."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import parsebank
from tests.clients.hostile import hostile_folder

ROOT = Path(__file__).parents[2]
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("PYTHON", "PARSEBANK", "VIRTUAL_ENV"))
}


def run(command: Sequence[str | Path], folder: Path, **env: str) -> str:
    """Standard output of a command that succeeds."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**CLEAN, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment; its ``bin`` folder."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def built(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the sdist, and with the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    install(environment, folder, "hatchling")
    run([environment / "hatchling", "build", "-t", "sdist", "-d", folder], ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    run([environment / "hatchling", "build", "-t", "wheel", "-d", folder], source)
    return folder


@pytest.fixture(scope="module")
def installed(environment: Path, built: Path) -> Path:
    """The environment with the wheel in it; its ``bin`` folder.

    Other packages are those of the tests' environment: which ones the wheel asks for,
    `tests.test_architecture` compares with the imports.
    """
    (wheel,) = built.glob("*.whl")
    install(environment, built, str(wheel), "--no-deps")
    (own,) = environment.parent.glob("lib/python*/site-packages")
    # A path from a .pth file: the .pth files there, with the checkout's, are not read.
    (own / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return environment


def install(environment: Path, folder: Path, *what: str) -> None:
    constraints = ROOT / "constraints.txt"
    pip = [environment / "python", "-m", "pip", "install", "--quiet"]
    run([*pip, "-c", constraints, *what], folder)


@pytest.mark.slow
def test_the_wheel_has_the_packages_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packages = {"parsebank", *parsebank.PACKAGES}
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == packages
    assert {f"{name}/py.typed" for name in packages} <= set(names)
    in_tree = {
        str(path.relative_to(ROOT)) for name in packages for path in (ROOT / name).rglob("*.py")
    }
    assert in_tree <= set(names)
    assert wheel.stat().st_size < 40_000_000


@pytest.mark.slow
def test_the_wheel_works_beside_modules_of_the_same_names(installed: Path, tmp_path: Path) -> None:
    """Each way that the documents show: the command, and the starters of several processes."""
    folder, store = hostile_folder(tmp_path / "mine"), str(tmp_path / "store")
    command = installed / "parsebank"
    tree = run([command, "parse", "Birds sing.", "--lang", "en", "--store", store], folder)
    assert "nsubj" in tree
    splits = ("--split", "train,dev", "--lang", "en", "--limit", "40")
    run([command, "backfill", "sample", *splits, "--store", store], folder)

    def module(name: str, *options: str) -> list[str | Path]:
        return [installed / "python", *options, "-m", name]

    training = ("train", "sample", "--store", store, "--max-steps", "2")
    two = ("--nproc-per-node", "2")
    starters = {
        "command": [command],
        "module": module("parsebank"),
        "torchrun": [*module("torch.distributed.run", "-P"), *two, "-m", "parsebank"],
        "accelerate": [*module("accelerate.commands.launch", "-P"), "--cpu", "-m", "parsebank"],
    }
    for name, starter in starters.items():
        output = tmp_path / name
        run([*starter, *training, "--output", output], folder)
        assert (output / "result.json").is_file(), name


@pytest.mark.slow
def test_the_installed_names_have_types(installed: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from parsebank import DependencyTree, open_store\n"
        "reveal_type(open_store)\n"
        "reveal_type(DependencyTree([0], ['root']))\n",
        "utf-8",
    )
    others = ",".join(f"{name}.*" for name in ("duckdb", "numpy", "pandas", "pyarrow", "torch"))
    settings = f"[mypy]\nfollow_imports = silent\n[mypy-{others}]\nfollow_imports = skip\n"
    (tmp_path / "mypy.ini").write_text(settings, "utf-8")
    mypy = [sys.executable, "-m", "mypy", "--python-executable", installed / "python"]
    told = run([*mypy, program], tmp_path)
    assert "featurestore.store.FeatureStore" in told
    assert "syntax.trees.tree.DependencyTree" in told
