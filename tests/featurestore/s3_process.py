"""An object store on loopback: moto's S3, one request at a time; prints its port, then serves.

``GET /-/sent`` answers with the bytes of every file that were sent so far, as JSON by path.

S3 decides about a conditional put in one step. Moto looks first and writes afterwards, so two
threads of its server might both win; the lock closes the gap.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import make_server

Environment = dict[str, Any]


class InTurn:
    """A WSGI application whose requests are served one after the other."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._sent: Counter[str] = Counter()

    def __call__(self, environ: Environment, start_response: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        if path == "/-/sent":
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(self._sent).encode()]
        with self._lock:
            body = list(self._app(environ, start_response))
            if environ["REQUEST_METHOD"] == "GET" and path.endswith(".parquet"):
                self._sent[path] += sum(map(len, body))
            return body


def main() -> None:
    app = InTurn(create_backend_app("s3"))  # a dispatcher of services costs a third of the time
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.port, flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
