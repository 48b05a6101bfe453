"""Services in processes of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import psutil

from service.settings import Settings

SERVE = """
import sys, uvicorn
from service.app import create_app
from service.settings import Settings
settings = Settings.model_validate_json(sys.argv[1])
uvicorn.run(create_app(settings), port=int(sys.argv[2]), log_level="warning")
"""


@contextmanager
def serving(settings: Settings) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVE, settings.model_dump_json(), str(port)]
    server = subprocess.Popen(command)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=240) as client:
            wait_for(lambda: answers(client))
            yield server, client
    finally:
        server.terminate()
        server.wait(30)


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx.TransportError:
        return False


def is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], bool], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
