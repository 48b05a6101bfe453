"""A real service in this process: real model, real store, real parser processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI

from service import readiness
from service.app import create_app
from service.models.add import add_remote
from service.parsers import Parser, find_parser, load_parser
from service.settings import Settings
from tests.once import made_once
from tests.spacy_parser import NAME as SPACY
from tests.spacy_parser import write_pipeline
from tests.word_parser import load_added, run_command

from .browser import Browser, open_browser
from .udpipe2_server import MODEL, UdpipeServer, udpipe_server

MakeSettings = Callable[..., Settings]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test whose own loop would start parsers that the module's loop cannot stop."""
    for item in items:
        marker = item.get_closest_marker("asyncio")
        is_alone = marker is not None and marker.kwargs.get("loop_scope") != "module"
        if is_alone and "app" in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(
                f"{item.nodeid} uses a service of its module in a loop of its own; mark it with "
                '`pytest.mark.asyncio(loop_scope="module")`'
            )


@pytest.fixture(autouse=True)
def _patient_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine busy with tests may take longer over a check than that of a service may."""
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 60.0)


@pytest.fixture
def make_settings(tmp_path: Path) -> MakeSettings:
    """Settings with a store of their own; any field may be given."""

    def make(**fields: Any) -> Settings:
        return Settings(**{"store": str(tmp_path / "store"), "workers": 2, **fields})

    return make


@pytest.fixture(scope="session")
def bundled() -> Path:
    """The file of the bundled UDPipe model."""
    return find_parser(Settings(store="unused"), "udpipe/english-ewt").path


@pytest.fixture(scope="session")
def english() -> Parser:
    """The bundled UDPipe model, loaded into this process."""
    return load_parser(find_parser(Settings(store="unused"), "udpipe/english-ewt"))


@pytest.fixture(scope="session")
def text_english() -> Parser:
    """The bundled parser of running text, loaded into this process."""
    return load_parser(find_parser(Settings(store="unused"), "parsebank/english"))


@pytest.fixture(scope="session")
def udpipe_service() -> Iterator[UdpipeServer]:
    """A UDPipe 2 service on loopback, behind the bundled UDPipe model."""
    with udpipe_server() as server:
        yield server


@pytest.fixture(scope="session")
def remote_models(udpipe_service: UdpipeServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with the model of that service."""
    folder = tmp_path_factory.mktemp("remote") / "models"
    add_remote(udpipe_service.model, udpipe_service.url, folder)
    return folder


@pytest.fixture(scope="session")
def remote_english(remote_models: Path) -> Parser:
    """The model of that service as a parser."""
    settings = Settings(store="unused", models_dir=remote_models)
    return load_parser(find_parser(settings, f"udpipe2/{MODEL}"))


@pytest.fixture(scope="session")
def udpipe_french(data_dir: Path) -> Parser:
    """UDPipe's own French parser, loaded into this process."""
    settings = Settings(store="unused", models_dir=data_dir / "models" / "udpipe")
    return load_parser(find_parser(settings, "udpipe/french-partut"))


@pytest.fixture(scope="session")
def stanza_french(data_dir: Path) -> Parser:
    """A small French Stanza package, loaded into this process."""
    folder = data_dir / "models" / "stanza"
    if not folder.is_dir():
        pytest.skip(f"needs a Stanza package in {folder}")
    settings = Settings(store="unused", models_dir=folder)
    return load_parser(find_parser(settings, "stanza/fr"), "cpu")


@pytest.fixture(scope="session")
def spacy_models(common: Path) -> Path:
    """A models folder with a tiny spaCy pipeline."""
    folder = common / "with-spacy" / "models"
    return made_once(folder, lambda: write_pipeline(folder))


@pytest.fixture(scope="session")
def spacy_italian(spacy_models: Path) -> Parser:
    """A tiny spaCy pipeline, loaded into this process."""
    return load_added(spacy_models, SPACY)


@pytest.fixture(scope="session")
def own_english(own_models: Path) -> Parser:
    """A tiny parser of Parsebank's own, loaded into this process."""
    return load_added(own_models)


@pytest.fixture(scope="session")
def own_french(
    exported_parser: Path, data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Parser:
    """The same parser behind the words of UDPipe's French model."""
    folder = tmp_path_factory.mktemp("own") / "models"
    folder.mkdir()
    (folder / "udpipe").symlink_to(data_dir / "models" / "udpipe")
    run_command(
        *("models", "add", "french", "--from", exported_parser, "--models-dir", folder),
        *("--lang", "fr", "--words-from", "udpipe/french-partut"),
    )
    return load_added(folder, "parsebank/french")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser, one per test module."""
    with open_browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[FastAPI]:
    """A running service with default limits but much time, one per test module.

    A module may choose the parsers of languages: ``PARSERS``.
    """
    store = str(tmp_path_factory.mktemp("store"))
    parsers = getattr(request.module, "PARSERS", {})
    settings = Settings(store=store, workers=2, request_deadline_seconds=300, parsers=parsers)
    async with running(create_app(settings)) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of that service."""
    async with connected(app) as connection:
        yield connection


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[FastAPI]:
    """Start and stop an app as a server would."""
    async with app.router.lifespan_context(app):
        yield app


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an app in this process."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://parsebank", timeout=240
    ) as connection:
        yield connection


@pytest.fixture
def serve(make_settings: MakeSettings) -> Callable[..., Any]:
    """Start a service with settings of the test's own: ``async with serve(max_items=2) as c``."""

    @asynccontextmanager
    async def start(**fields: Any) -> AsyncIterator[httpx.AsyncClient]:
        async with (
            running(create_app(make_settings(**fields))) as started,
            connected(started) as connection,
        ):
            connection.app = started
            yield connection

    return start
