"""The service while what it stands on fails: a full disk, a read-only disk, a locked database.

Every accepted text is answered or refused by name, never with 500, and the service works again
when the fault is gone. (Dying workers and damaged models: test_worker_faults.py; a taken port:
test_server.py; the lock itself: test_jobs_database.py.)
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from featurestore import open_store

from .serving import Served, command, served, upload

pytestmark = pytest.mark.slow

TOKENIZER = "parsebank-wordpiece-en"
DISK_MB = 48


def parse(client: httpx.Client, *texts: str, **fields: Any) -> httpx.Response:
    return client.post("/parse", json={"texts": texts, **fields})


def backfill(client: httpx.Client, name: str, texts: list[str]) -> httpx.Response:
    return client.post(f"/datasets/{name}/backfill", content=upload(*texts))


def ended(client: httpx.Client, job: str) -> dict[str, Any]:
    """The job, as soon as it is over."""
    for _ in range(1_200):
        answer = client.get(f"/jobs/{job}")
        if answer.status_code == 200 and answer.json()["state"] in ("done", "failed", "cancelled"):
            found: dict[str, Any] = answer.json()
            return found
        time.sleep(0.05)
    pytest.fail(f"job {job} did not end: {answer.text}")


def check_named(response: httpx.Response) -> None:
    """Answered, or refused with a name; a bug is neither."""
    assert response.status_code < 500 or response.json()["error_type"] != "internal", response.text
    assert response.status_code != 500


# A disk of its own


class Disk:
    """A small file system that only the service has; seen from outside through ``/proc``."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.seen = Path(f"/proc/{process.pid}/root{folder}")

    def fill(self) -> None:
        with contextlib.suppress(OSError), (self.seen / "filler").open("wb", buffering=0) as file:
            while file.write(b"\0" * 65_536):
                pass

    def clear(self) -> None:
        (self.seen / "filler").unlink()


def with_disk(folder: Path, option: str = "rw") -> list[str]:
    """A command that mounts a small file system for the command that follows it."""
    mount = f'mount -t tmpfs -o size={DISK_MB}m tmpfs "$0"'
    script = f'{mount} && mount -o remount,{option} "$0" && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(folder)]


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where nobody but the administrator may mount."""
    try:
        trial = [*with_disk(tmp_path_factory.mktemp("trial")), "true"]
        subprocess.run(trial, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs mounts in a user namespace: {error}")


@pytest.fixture
def on_small_disk(mounts: None, tmp_path: Path) -> Iterator[tuple[Served, Disk]]:
    """A service whose store and state are on a disk of their own."""
    folder = tmp_path / "store"
    folder.mkdir()
    with served(tmp_path, within=with_disk(folder)) as service:
        yield service, Disk(folder, service.process)


def everything(client: httpx.Client, numbers: Iterator[int]) -> list[httpx.Response]:
    """A request to each route that reads or writes, each with a text of its own."""
    text = f"This is text number {next(numbers)}."
    return [
        parse(client, text),
        parse(client, text, tokenizer=TOKENIZER),
        client.post(
            "/features", json={"examples": [{"segments": [{"text": text}]}], "tokenizer": TOKENIZER}
        ),
        client.post("/api/process", data={"data": text, "tokenizer": "", "parser": ""}),
        backfill(client, "sample", [text]),
        *(client.get(path) for path in ("/jobs", "/datasets", "/info", "/models", "/metrics")),
    ]


def all_succeed(answers: list[httpx.Response]) -> None:
    failed = {str(answer.url): answer.text for answer in answers if not answer.is_success}
    assert failed == {}


def test_full_disk_loses_no_text(on_small_disk: tuple[Served, Disk], tmp_path: Path) -> None:
    service, disk = on_small_disk
    numbers = count()
    with service.client() as client:
        all_succeed(everything(client, numbers))
        backfill(client, "running", [f"This is example {number}." for number in range(100)])
        disk.fill()
        meanwhile = [answer for _ in range(3) for answer in everything(client, numbers)]
        for answer in meanwhile:
            check_named(answer)
        check_not_ready(client)
        disk.clear()
        all_succeed(everything(client, numbers))
        for job in client.get("/jobs").json():
            check_done(client, job["id"])
    answered = [answer.json() for answer in meanwhile if answer.url.path == "/parse"]
    check_stored(disk, tmp_path, [item["key"] for answer in answered for item in answer["items"]])


def check_not_ready(client: httpx.Client) -> None:
    """Alive, and says what is wrong."""
    assert client.get("/health/live").status_code == 200
    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert "disk" in ready.json()["detail"]["checks"]


def check_done(client: httpx.Client, job: str) -> None:
    """A job is done, or failed by name and done when it is tried again."""
    found = ended(client, job)
    if found["state"] == "failed":
        assert found["error"], found
        assert client.post(f"/jobs/{job}/retry").status_code == 200
        found = ended(client, job)
    assert found["state"] == "done", found


def check_stored(disk: Disk, folder: Path, keys: list[str]) -> None:
    """What was answered is in the store, as soon as the next commit has gone through."""
    for attempt in range(100):
        copy = folder / f"copy-{attempt}"
        with contextlib.suppress(shutil.Error):  # a file that has gone meanwhile
            # deltalake would resolve the path through /proc to the folder that the disk covers.
            shutil.copytree(disk.seen, copy, ignore=shutil.ignore_patterns("state"))
        with open_store(str(copy)) as store:
            if all(store.parses.contains(keys)):
                return
        time.sleep(0.1)
    pytest.fail("parses that were answered are not stored")


def test_a_store_that_cannot_be_written_is_named_at_the_start(mounts: None, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    start = [*with_disk(folder, "ro"), *command(folder)]
    finished = subprocess.run(start, capture_output=True, text=True, timeout=240, check=False)
    assert finished.returncode == 1
    assert "Traceback" not in finished.stderr
    assert "ead-only file system" in finished.stderr


# A locked job database


@contextlib.contextmanager
def locked(service: Served, folder: Path) -> Iterator[None]:
    """Hold the job tables as another program might."""
    (path,) = (folder / "store" / "state").glob("*.sqlite")
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def test_a_locked_job_database_is_named_and_jobs_go_on_afterwards(tmp_path: Path) -> None:
    (tmp_path / "store" / "state").mkdir(parents=True)
    database = f"sqlite:///{tmp_path}/store/state/jobs.sqlite?timeout=1"
    with served(tmp_path, jobs_url=database) as service, service.client() as client:
        assert parse(client, "Load the model.").status_code == 200
        running = backfill(client, "running", [f"This is text {n}." for n in range(20)])
        assert running.status_code == 202
        with locked(service, tmp_path):
            for answer in (client.get("/jobs"), backfill(client, "refused", ["A text."])):
                assert answer.status_code == 503
                assert answer.json()["error_type"] == "job_database"
                assert "locked" in answer.json()["message"]
            assert parse(client, "Parsing needs no job tables.").status_code == 200
            assert client.get("/health/live").status_code == 200
        accepted = backfill(client, "accepted", ["A text."])
        assert accepted.status_code == 202, accepted.text
        for job in (running, accepted):
            assert ended(client, job.json()["id"])["state"] == "done"
        assert "refused" not in {job["dataset"] for job in client.get("/jobs").json()}
