"""A store like the one of the quickstart, and a service beside it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from service.processes import python_environment
from tests.featurestore.s3 import S3
from tests.forked import installed
from tests.service.jobs.postgres import postgres_server
from tests.service.serving import served

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "PARSEBANK_WORKERS": "1", "PARSEBANK_JOB_WORKERS": "1"}


def environment() -> dict[str, str]:
    """Variables of a page; its ``parsebank`` has imported everything when it begins."""
    programs = map(str, (installed() / "bin", Path(sys.executable).parent, os.environ["PATH"]))
    return {**ENVIRONMENT, "PATH": os.pathsep.join(programs)}


def run_bash(code: str, folder: Path, store: Path | None = None) -> str:
    """Standard output of commands, the first of which that fails ends them."""
    within = {"PARSEBANK_STORE": str(store)} if store else {}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env={**python_environment(), **environment(), **within},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def sample_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as the quickstart makes it, of fewer examples."""
    folder = tmp_path_factory.mktemp("sample")
    backfill = "parsebank backfill sample --split train,dev --lang en --limit 60"
    run_bash(f"{backfill} --store ./parsebank-data", folder)
    return folder / "parsebank-data"


@pytest.fixture
def folder(tmp_path: Path, sample_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a page is tried: with the store of the quickstart."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    shutil.copytree(sample_store, tmp_path / "parsebank-data")
    return tmp_path


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[[], str]]:
    """Starts a service on the page's store, and gives its address (host:port)."""
    with ExitStack() as stack:

        def start() -> str:
            within = ("env", *(f"{name}={value}" for name, value in ENVIRONMENT.items()))
            store = str(folder / "parsebank-data")
            running = stack.enter_context(served(folder, "--store", store, within=within))
            return running.url.partition("://")[2].rstrip("/")

        yield start


@pytest.fixture
def elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A PostgreSQL, an object store and a free port, by what a page calls them.

    A service whose id the page writes to ``parsebank.pid`` is ended.
    """
    program = Path(__file__).parents[1] / "featurestore" / "s3_process.py"
    monkeypatch.setenv("PARSEBANK_CACHE_DIR", str(folder / "copies"))
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (
        postgres_server() as server,
        subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        bucket = S3(int(process.stdout.readline()))
        try:
            yield {
                "postgresql://parsebank:secret@db.example.org/parsebank": server.create("jobs"),
                "https://s3.example.org": bucket.options["AWS_ENDPOINT_URL"],
                "s3://parsebank/store": bucket.location(),
                "8010": str(port),
            }
        finally:
            _end(folder / "parsebank.pid")
            process.terminate()


def _end(pid: Path) -> None:
    if pid.exists():
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGTERM)
