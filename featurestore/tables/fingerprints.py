"""The meaning of each fingerprint: parsers, tokenizers, and the origin of each split."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from featurestore.records import Transaction
from featurestore.tables.files import FileReader
from featurestore.tables.root import StoreRoot
from featurestore.tables.schema import FINGERPRINTS
from syntax.errors import StoreError, UnknownKeyError
from syntax.strict_json import parse_json


class FingerprintTable:
    """Contents by fingerprint. Safe for threads; processes share the location."""

    def __init__(self, root: StoreRoot) -> None:
        self.table = root.table(FINGERPRINTS, "fingerprints")
        self._reader = FileReader(self.table.location)
        self._rows: dict[str, tuple[str, dict[str, Any]]] = {}
        self._read: set[str] = set()
        self._lock = threading.Lock()

    def describe(self, fingerprint: str, kind: str, content: Mapping[str, Any]) -> bool:
        """Record the content of a fingerprint once; ``True`` if it is new."""
        if fingerprint in self._rows:
            return False
        row = {
            "fingerprint": [fingerprint],
            "kind": [kind],
            "content": [json.dumps(content, sort_keys=True, ensure_ascii=False)],
        }
        data = pa.table(row, schema=FINGERPRINTS.schema)
        written = self.table.append(data, Transaction(f"describe-{fingerprint}"))
        self._refresh()
        if fingerprint not in self._rows:  # a repair had to take it out
            written = self.table.append(data)
            self._refresh()
        return written

    def resolve(self, fingerprint: str) -> dict[str, Any]:
        """The content behind a fingerprint; `UnknownKeyError` if it was never described."""
        if fingerprint not in self._rows:
            self._refresh()
        if fingerprint not in self._rows:
            raise UnknownKeyError(
                f"the store does not know what {fingerprint} stands for", fingerprint=fingerprint
            )
        return dict(self._rows[fingerprint][1])

    def all(self, kind: str) -> dict[str, dict[str, Any]]:
        self._refresh()
        rows = dict(self._rows)
        return {key: dict(rows[key][1]) for key in sorted(rows) if rows[key][0] == kind}

    def _refresh(self) -> None:
        with self._lock:
            for file in self.table.snapshot().files:
                if file.path not in self._read:
                    rows = self._reader.columns(file.path, FINGERPRINTS.schema.names)
                    for row in rows.to_pylist():
                        content = read_content(row["fingerprint"], row["content"])
                        self._rows[row["fingerprint"]] = (row["kind"], content)
                    self._read.add(file.path)


def read_content(fingerprint: str, text: str) -> dict[str, Any]:
    try:
        content = parse_json(text)
    except (TypeError, ValueError) as error:
        raise StoreError(f"the description of {fingerprint} is damaged: {error}") from error
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise StoreError(
            f"the description of {fingerprint} is damaged: a JSON {kind}, not an object"
        )
    return content
