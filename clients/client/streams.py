"""Answers that come line by line: cut into lines, and read as parsed texts.

No socket is touched here, so the synchronous and the asynchronous client share it.
"""

from __future__ import annotations

from typing import Any

from clients.client.failures import ServiceUnreachableError, named_error
from clients.client.results import ItemError, ParsedItem, decode_item
from syntax.strict_json import parse_json

NumberedItem = tuple[int, ParsedItem | ItemError]
"""A text's place in its request, and what became of it."""


class LineBuffer:
    r"""Cuts chunks of bytes at line feeds, and nowhere else.

    ``str.splitlines``, and with it httpx's lines, also cuts at U+2028 and its like, which a JSON
    string may hold as they are.

    >>> buffer = LineBuffer()
    >>> buffer.feed(b'{"a": 1}\n{"b"'), buffer.feed(b": 2}\n")
    (['{"a": 1}'], ['{"b": 2}'])
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that this chunk completes, without their ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line.removesuffix(b"\r").decode("utf-8") for line in lines]


class AnswerReader:
    """Reads the NDJSON of ``POST /parse``: who answers, a line per text, and an end.

    Attributes:
        began: Whether an item has been read.
    """

    def __init__(self) -> None:
        self.began = False
        self._ended = False
        self._lines = LineBuffer()

    def feed(self, chunk: bytes) -> list[NumberedItem]:
        """The texts that this chunk completes.

        Raises:
            ParsebankError: The named error with which the request as a whole ended.
        """
        found = (self._read(parse_json(line)) for line in self._lines.feed(chunk))
        items = [item for item in found if item is not None]
        self.began = self.began or bool(items)
        return items

    def close(self) -> None:
        """The answer is over.

        Raises:
            ServiceUnreachableError: Its end did not come.
        """
        if not self._ended:
            raise ServiceUnreachableError(
                "the answer broke off before its end; ask again: what was parsed is kept"
            )

    def _read(self, line: dict[str, Any]) -> NumberedItem | None:
        if "index" in line:
            return line["index"], decode_item(line)
        if "error" in line:
            raise named_error(line["error"])
        self._ended = self._ended or "done" in line
        return None
