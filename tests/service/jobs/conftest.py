"""A service with job workers of its own, and uploads to give it."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from featurestore import FeatureStore, open_store
from service.app import create_app
from service.jobs.database import metadata, open_database, sqlite_url
from service.jobs.ledger import JobLedger
from service.jobs.manager import JobManager
from service.jobs.queue import JobQueue
from service.settings import Settings

from .board import Board, Clock
from .postgres import PostgresServer, postgres_server

SUBJECTS = ("the cat", "a tired nurse", "my neighbour", "every pupil", "the old bridge")
VERBS = ("watched", "painted", "did not find", "will remember", "has sold")
OBJECTS = ("the garden", "two red boats", "a letter from Rome", "nothing at all", "the key")
PLACES = ("yesterday", "near the river", "before the storm came", "in winter")

SPEC: dict[str, Any] = {
    "split": "dev",
    "lang": "en",
    "fields": ["premise", "hypothesis"],
    "labels": [{"name": "label", "kind": "class", "names": ["yes", "no"]}],
}


def sentence(n: int, who: str) -> str:
    """One of 500 short sentences for each who."""
    n, place = divmod(n, len(PLACES))
    n, object_ = divmod(n, len(OBJECTS))
    n, verb = divmod(n, len(VERBS))
    subject = SUBJECTS[n % len(SUBJECTS)]
    return f"{who} says {subject} {VERBS[verb]} {OBJECTS[object_]} {PLACES[place]}."


def pair(
    n: int, who: str = "Anna", first: str | None = None, second: str | None = None
) -> dict[str, Any]:
    """Example ``n``; two neighbours share their premise."""
    texts = (
        sentence(n // 2, who) if first is None else first,
        f"{sentence(n, who)} Really {n}?" if second is None else second,
    )
    return {
        "example": {
            "example_id": f"pair-{n}",
            "segments": [{"text": text} for text in texts],
            "labels": {"label": "yes" if n % 3 else "no"},
        }
    }


def pairs(count: int, who: str = "Anna") -> list[dict[str, Any]]:
    """Examples whose texts nobody else's are."""
    return [pair(n, who) for n in range(count)]


def ndjson(items: Iterable[dict[str, Any]], **spec: Any) -> bytes:
    lines = [{"spec": SPEC | spec}, *items]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@dataclass
class Service:
    """A running service, its client, and a second store that sees what it committed."""

    client: httpx.AsyncClient
    jobs: JobManager
    settings: Settings
    store: FeatureStore
    stopping: asyncio.Event

    async def submit(self, body: bytes, name: str = "pairs") -> dict[str, Any]:
        answer = await self.client.post(f"/datasets/{name}/backfill", content=body)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    async def job(self, job: dict[str, Any]) -> dict[str, Any]:
        return dict((await self.client.get(f"/jobs/{job['id']}")).json())

    async def listed(self, **wanted: Any) -> list[str]:
        """Ids of the jobs that a list has."""
        return [job["id"] for job in (await self.client.get("/jobs", params=wanted)).json()]

    async def ended(self, job: dict[str, Any], seconds: float = 300) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while job["state"] in ("queued", "running"):
            assert time.monotonic() < deadline, job
            await asyncio.sleep(0.05)
            job = await self.job(job)
        return job

    async def until_parsing(self) -> None:
        """Wait until the newest try of a shard has texts in hand."""
        staging = self.settings.state_dir / "staging"
        deadline = time.monotonic() + 300
        while True:
            tries = sorted(staging.glob("*/in-flight-*"), key=lambda path: path.stat().st_mtime_ns)
            if self.jobs.worker_pids and tries and tries[-1].stat().st_size:
                return
            assert time.monotonic() < deadline, "no worker took a text in hand"
            await asyncio.sleep(0.05)

    async def backfill(self, body: bytes, name: str = "pairs") -> dict[str, Any]:
        return await self.ended(await self.submit(body, name))

    def rows(self, name: str = "pairs") -> list[tuple[int, str]]:
        """Position and id of every stored example, in order."""
        query = "select seq, example_id from examples where dataset = ? order by 1, 2"
        return self.store.sql(query, [name]).fetchall()


Running = Callable[..., AbstractAsyncContextManager[Service]]


@asynccontextmanager
async def run_service(settings: Settings) -> AsyncIterator[Service]:
    app = create_app(settings)
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test", timeout=240) as client,
    ):
        with open_store(settings.store) as store:
            services = app.state.services
            yield Service(client, services.jobs, settings, store, services.stopping)


def settings_in(folder: Path, **changes: Any) -> Settings:
    values: dict[str, Any] = {
        "store": str(folder / "store"),
        "state_dir": folder / "state",
        "workers": 1,
        "job_workers": 2,
        "job_shard_segments": 40,
        "tokenizers_dir": "/",
    }
    return Settings(**values | changes)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for all tests; each takes a database of its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def new_database(postgres: PostgresServer) -> str:
    """URL of an empty PostgreSQL database."""
    return postgres.create(f"test_{secrets.token_hex(4)}")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty database: a SQLite file, and PostgreSQL."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "state" / "jobs.sqlite")
    return emptied(request.getfixturevalue("common_database"))


@pytest.fixture(scope="session")
def common_database(postgres: PostgresServer) -> str:
    return postgres.create("common")


def emptied(url: str) -> str:
    """A database after its tables were dropped, which is quicker than making a new one."""
    engine = open_database(url)
    metadata.drop_all(engine)
    engine.dispose()
    return url


@pytest.fixture
def board(database: str) -> Iterator[Board]:
    engine = open_database(database)
    clock = Clock()
    yield Board(
        JobLedger(engine, retry_seconds=100, clock=clock),
        JobQueue(engine, lease_seconds=60, max_tries=3, clock=clock),
        clock,
        engine,
    )
    engine.dispose()


@pytest.fixture
def make_settings(tmp_path: Path) -> Callable[..., Settings]:
    return lambda **changes: settings_in(tmp_path, **changes)


@pytest.fixture
def running(make_settings: Callable[..., Settings]) -> Running:
    """``async with running(job_workers=1) as service: ...``."""
    return lambda **changes: run_service(make_settings(**changes))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """One service with two workers for all tests of a module; each takes a dataset of its own."""
    async with run_service(settings_in(tmp_path_factory.mktemp("shared"))) as service:
        yield service
