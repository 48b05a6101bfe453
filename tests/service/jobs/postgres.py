"""A real PostgreSQL for the tests: the server that the package `pgserver` brings."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_SETTINGS = "-c fsync=off -c full_page_writes=off -c max_connections=60 -c shared_buffers=16MB"


class PostgresServer:
    """One server on a free port of this machine; everybody may do everything.

    PostgreSQL refuses to run as root, so there it runs as nobody.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bin = _binaries()
        self._as = _unprivileged()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        if self._as:
            shutil.chown(folder, self._as["user"])
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=utf8", "--no-sync")

    @property
    def address(self) -> str:
        """The server, as it stands in a URL."""
        return f"postgres@127.0.0.1:{self.port}"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k '' {_SETTINGS}"
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """End it: ``fast`` ends the connections first, ``immediate`` is a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def create(self, database: str) -> str:
        """Make an empty database; its URL."""
        sql = f"create database {database}"
        self._call("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-qc", sql)
        return f"postgresql://{self.address}/{database}"

    def _run(self, program: str, *arguments: str) -> None:
        self._call(program, "-D", str(self._folder / "data"), *arguments)

    def _call(self, program: str, *arguments: str) -> None:
        # Not through pipes: the server would keep their ends.
        with (self._folder / "calls").open("w+b") as output:
            done = subprocess.run(
                [str(self._bin / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                check=False,
                **self._as,
            )
            output.seek(0)
            assert done.returncode == 0, output.read().decode()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, and none afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="parsebank-postgres-"))
    try:
        server = PostgresServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    # Found, not imported: its import looks for a runtime folder, and warns where there is none.
    spec = find_spec("pgserver")
    assert spec is not None
    assert spec.origin is not None, "pgserver is not installed"
    return Path(spec.origin).parent / "pginstall" / "bin"


def _unprivileged() -> Mapping[str, Any]:
    """How to start a process that is not root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
