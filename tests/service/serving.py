"""``parsebank serve`` as users run it: in a process of its own, on a free port."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from service.processes import python_environment


@dataclass
class Served:
    """A running service.

    Attributes:
        url: Where it listens.
        process: The service itself.
        log: What it wrote.
        key: A key for it, where it asks for one.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    key: str = ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=240)

    def family(self) -> list[psutil.Process]:
        """The processes that it has started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, sent: signal.Signals) -> int:
        """Its exit status upon a signal."""
        self.process.send_signal(sent)
        return self.process.wait(30)


def upload(*texts: str, **spec: Any) -> bytes:
    """A backfill of single texts, as ``POST /datasets/{name}/backfill`` takes it."""
    examples = [
        {"example": {"example_id": str(number), "segments": [{"text": text}]}}
        for number, text in enumerate(texts)
    ]
    fields = {"split": "dev", "lang": "en", "fields": ["text"], **spec}
    return "\n".join(map(json.dumps, ({"spec": fields}, *examples))).encode()


def all_gone(processes: Sequence[psutil.Process]) -> bool:
    """True once none of them is left."""
    _, alive = psutil.wait_procs(processes, timeout=60)
    return not alive


def command(store: Path, *options: str) -> list[str]:
    """The command line, on a free port."""
    start = [sys.executable, "-c", "from clients.cli import main; main()", "serve"]
    return [*start, "--port", "0", "--store", str(store), "--workers", "1", *options]


@contextmanager
def served(
    folder: Path, *options: str, within: Sequence[str] = (), **settings: str
) -> Iterator[Served]:
    """Run a service whose store is ``folder / "store"``; end it with the block.

    Args:
        folder: Takes the store and the log.
        *options: Of the command line.
        within: A command that runs the service and replaces itself by it.
        **settings: Further settings, by name.
    """
    log = folder / "log"
    given = {f"PARSEBANK_{name.upper()}": value for name, value in settings.items()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*within, *command(folder / "store", *options)],
            stdout=output,
            stderr=output,
            env={**python_environment(), **given},
        )
    try:
        yield Served(_announced(process, log), process, log)
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()


def _announced(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(2_400):
        if found := re.search(r"listening url=(\S+)|\"url\": \"(http\S+)\"", log.read_text()):
            return found[1] or found[2]
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    pytest.fail(log.read_text())
