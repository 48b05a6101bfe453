"""Odd files in a models folder: each is named, and costs nothing but itself."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from service.app import create_app
from service.models.upkeep import verify
from service.parsers import list_models
from service.settings import Settings

from .conftest import connected, running

ENGLISH = "udpipe/english-ewt"

ODD = {
    "dangling": "points to nothing",
    "loop": "cannot be read",
    "folder": "a folder",
    "zero": "a device",
    "pipe": "a pipe",
    "socket": "a socket",
    "card-of-zero": "a device",
    "card-of-pipe": "a pipe",
    "card-of-nothing": "points to nothing",
    "card-too-deep": "is not JSON",
}


@pytest.fixture
def models_dir(tmp_path: Path, bundled: Path) -> Iterator[Path]:
    """A folder with one good model, and everything that a file should not be."""
    folder = tmp_path / "models"
    (folder / "folder.udpipe").mkdir(parents=True)
    shutil.copy(bundled, folder / "good.udpipe")
    (folder / "dangling.udpipe").symlink_to("nothing")
    (folder / "loop.udpipe").symlink_to("loop.udpipe")
    (folder / "zero.udpipe").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.udpipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket.udpipe"))
        for name in ("zero", "pipe", "nothing"):
            shutil.copy(bundled, folder / f"card-of-{name}.udpipe")
        shutil.copy(bundled, folder / "card-too-deep.udpipe")
        (folder / "card-of-zero.json").symlink_to("/dev/zero")
        os.mkfifo(folder / "card-of-pipe.json")
        (folder / "card-of-nothing.json").symlink_to("nothing")
        (folder / "card-too-deep.json").write_text("[" * 100_000)
        (folder / "registry.json").write_text('{"format": 1, "models": {}}')
        (folder / "around").symlink_to("around")
        yield folder


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(
        store=str(folder.parent / "store"), models_dir=folder, workers=1, job_workers=0
    )
    async with running(create_app(settings)) as app, connected(app) as client:
        yield client


@pytest.mark.slow
async def test_odd_files_are_listed_with_their_problem_beside_the_others(models_dir: Path) -> None:
    async with serving(models_dir) as client:
        models = {model["name"]: model for model in (await client.get("/models")).json()}
        added = {"udpipe/good", *(f"udpipe/{name}" for name in ODD)}
        assert set(models) == {"parsebank/english", ENGLISH, *added}
        for name, problem in ODD.items():
            assert problem in models[f"udpipe/{name}"]["problem"], name
            assert str(models_dir / name) in models[f"udpipe/{name}"]["problem"]
            body = {"text": "It rained.", "parser": f"udpipe/{name}"}
            refused = await client.post("/parse", json=body)
            assert (refused.status_code, refused.json()["error_type"]) == (503, "model_load"), name
        for name in ("udpipe/good", ENGLISH):
            assert models[name]["problem"] is None
            body = {"text": "It rained.", "parser": name}
            assert (await client.post("/parse", json=body)).status_code == 200
        assert (await client.get("/api/models")).status_code == 200


def test_the_commands_name_them_too(models_dir: Path) -> None:
    verdicts = verify(Settings(store="unused", models_dir=models_dir), [])
    problems = {verdict.name.removeprefix("udpipe/"): verdict.problem for verdict in verdicts}
    assert {name for name, problem in problems.items() if problem} == {*ODD}


@pytest.mark.slow
@pytest.mark.parametrize("what", ["/dev/zero", "nothing", "pipe.udpipe", "folder.udpipe"])
@pytest.mark.parametrize("name", ["registry.json", "stanza/resources.json"])
async def test_damaged_model_list_affects_only_its_folder(models_dir, name, what) -> None:
    path = models_dir / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(what if what.startswith("/") else models_dir / what)
    async with serving(models_dir) as client:
        models = {model["name"]: model for model in (await client.get("/models")).json()}
        assert models[ENGLISH]["problem"] is None
        problem = models["udpipe/good"]["problem"]
        assert (str(path) in problem) if name == "registry.json" else problem is None
        assert (await client.post("/parse", json={"text": "It rained."})).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"fr": {"packages": ["x"]}}',
        '{"fr": {"packages": {"x": {"tokenize": "x", "pos": "x", "depparse": "x"}}, "pos": []}}',
    ],
)
def test_a_damaged_list_of_packages_is_logged(models_dir, content, caplog) -> None:
    (models_dir / "resources.json").write_text(content)
    names = {model.name for model in list_models(Settings(store="unused", models_dir=models_dir))}
    assert "udpipe/good" in names
    assert str(models_dir / "resources.json") in caplog.text
