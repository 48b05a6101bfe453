"""A small UDPipe 2 service on loopback: LINDAT's protocol, and the bundled UDPipe 1 model."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from .lindat_reference import read, tokenized

MODEL = "english-ewt-ud-2.15-241121"


@dataclass
class UdpipeServer:
    """A service, and what came.

    Attributes:
        model: Name of its only model.
        faults: What goes wrong at the next requests, in order: ``status:N``, ``hang``, ``page``,
            ``drop`` (the last word of the first sentence is left out), ``lose`` (a sentence is).
        asked: The parameters of each request.
    """

    model: str = MODEL
    faults: list[str] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def result(self, given: dict[str, str]) -> str:
        stages = {"tag": "tagger" in given, "parse": "parser" in given}
        if "tokenizer" in given:
            return tokenized(given["data"], given["tokenizer"], "conllu", **stages)
        return read(given["data"], given["input"], "conllu", **stages)


class Handler(BaseHTTPRequestHandler):
    """Answers for the `UdpipeServer` that its class has been given."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: else the second waits 40 ms
    server_state: UdpipeServer

    def do_GET(self) -> None:
        stages = ["tokenizer", "tagger", "parser"]
        models = {self.server_state.model: stages, "english-tags-ud-2.15-241121": stages[:2]}
        self._send({"models": models, "default_model": self.server_state.model})

    def do_POST(self) -> None:
        state = self.server_state
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        given = {key: one for key, (one,) in parse_qs(body, True, True).items()}
        state.asked.append(given)
        fault = state.faults.pop(0) if state.faults else ""
        if fault.startswith("status:"):
            self.send_error(int(fault.removeprefix("status:")), explain="An error occurred")
            return
        if fault == "hang":
            time.sleep(1.0)
        result = state.result(given)
        if fault == "drop":
            first, rest = result.split("\n\n", 1)
            result = "\n".join([*first.split("\n")[:-1], "", rest])
        if fault == "lose":
            result = result.split("\n\n", 1)[1]
        answer = {"model": state.model, "acknowledgements": ["UDPipe"], "result": result}
        self._send({"moved": True} if fault == "page" else answer)

    def _send(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def udpipe_server() -> Iterator[UdpipeServer]:
    state = UdpipeServer()
    handler = type("Bound", (Handler,), {"server_state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}/services/udpipe/api"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
