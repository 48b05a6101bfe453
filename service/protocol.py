"""HTTP/1.1 on a connection: uvicorn's protocol with a limit on the parts around a body.

uvicorn keeps every byte of a URL, of headers and of trailers until they are complete: a caller
without a key could fill the memory with them.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from service.logs import get_logger

MAX_HEAD_BYTES: Final = 65_536
"""Limit of a request's line and headers, or of its trailers; 431 beyond."""

PART_BYTES: Final = 8_192

LINGER_SECONDS: Final = 1.0
"""Time in which a refused caller may go on sending: a connection that is closed while data arrives
is reset, and the caller would not see why.
"""

_STATUS: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
_BODY: Final = json.dumps(
    {
        "error_type": _STATUS.phrase.lower().replace(" ", "_"),
        "message": f"URL and headers of the request, or its trailers, have more than "
        f"{MAX_HEAD_BYTES} bytes; send texts in the body of a POST",
        "detail": {"limit": MAX_HEAD_BYTES},
    }
).encode("ascii")
_ANSWER: Final = STATUS_LINE[
    _STATUS
] + b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)

_log = get_logger("parsebank.server")


class BoundedProtocol(HttpToolsProtocol):
    """A connection whose requests have a bounded head, and bounded trailers, which are dropped."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._unparsed = 0
        self._has_headers = False
        self._is_refused = False

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), PART_BYTES):
            if self._is_refused or self.transport.is_closing():
                return
            part = data[start : start + PART_BYTES]
            self._unparsed += len(part)
            super().data_received(part)
            if self._unparsed > MAX_HEAD_BYTES:
                self._refuse()

    def on_message_begin(self) -> None:
        self._has_headers = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Drop trailers, which would come after the checks of the headers."""
        if not self._has_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed = 0
        self._has_headers = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        super().on_message_complete()

    def _refuse(self) -> None:
        _log.info("request refused", status=_STATUS.value, client=self.client and self.client[0])
        self._is_refused = True
        cycle = self.cycle
        is_open = cycle is not None and not cycle.response_complete
        if not (is_open and cycle.response_started):
            self.transport.write(_ANSWER)
        if is_open:  # it waits for trailers, or for a request before
            cycle.disconnected = True
            cycle.message_event.set()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)
