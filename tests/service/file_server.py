"""A web server on loopback that breaks off, ignores ranges, errs and lies, as it is told to."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class FileServer:
    """A web server over files in memory.

    Attributes:
        files: Content by path.
        faults: For a path, what goes wrong at its next requests, in order: ``"break:N"`` (the
            connection ends after N bytes), ``"status:N"``, ``"hang"``, ``"page"``.
        ranges: Whether it can send parts.
        validators: Whether it sends an ETag.
        lies: Headers that replace the true ones.
        asked: Path and ``Range`` of every request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    ranges: bool = True
    validators: bool = True
    lies: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    """Answers from the `FileServer` that its class has been given."""

    server_files: FileServer

    def do_GET(self) -> None:
        files = self.server_files
        files.asked.append((self.path, self.headers.get("Range")))
        pending = files.faults.get(self.path)
        fault = pending.pop(0) if pending else ""
        if fault == "hang":
            time.sleep(1.0)
            self.close_connection = True
        elif fault.startswith("status:"):
            self.send_error(int(fault.removeprefix("status:")))
        elif fault == "page":
            self._send(200, b"<html>we have moved</html>", {"Content-Type": "text/html"})
        elif self.path not in files.files:
            self.send_error(404)
        else:
            self._send_file(files.files[self.path], fault)

    def _send_file(self, content: bytes, fault: str) -> None:
        etag = f'"{hashlib.md5(content).hexdigest()}"'
        headers = {"ETag": etag} if self.server_files.validators else {}
        headers["Content-Type"] = "application/octet-stream"
        status, first = 200, self._first_byte(etag)
        if first is not None:
            total = len(content)
            status = 206 if first < total else 416
            shown = f"{first}-{total - 1}" if status == 206 else "*"
            headers["Content-Range"] = f"bytes {shown}/{total}"
            content = content[first:]
        limit = int(fault.removeprefix("break:")) if fault.startswith("break:") else None
        self._send(status, content, headers | self.server_files.lies, limit)

    def _first_byte(self, etag: str) -> int | None:
        found = re.match(r"bytes=(\d+)-$", self.headers.get("Range", ""))
        is_same = self.headers.get("If-Range", etag) == etag
        return int(found[1]) if found and is_same and self.server_files.ranges else None

    def _send(
        self, status: int, content: bytes, headers: dict[str, str], limit: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content if limit is None else content[:limit])
        if limit is not None:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def file_server(folder: Path | None = None) -> Iterator[FileServer]:
    """A running server; of the files in a folder, under their paths in it."""
    files = FileServer()
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if path.is_file():
            files.files[f"/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    handler = type("BoundHandler", (Handler,), {"server_files": files})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        files.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield files
        finally:
            http.shutdown()
            thread.join()
