"""Fingerprints: identities of JSON content and of files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final, NewType

Fingerprint = NewType("Fingerprint", str)
"""32 lower-case hexadecimal digits: BLAKE2b with a 128-bit digest."""


def canonical_json(content: Any) -> bytes:
    """One JSON text for equal contents: sorted keys, UTF-8, no spaces, no NaN, only string keys."""
    _check_keys(content)
    return _encode(content).encode("utf-8")


_encode: Final = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode


def _check_keys(content: Any) -> None:
    if isinstance(content, dict):
        if not all(isinstance(key, str) for key in content):
            raise TypeError(f"keys of JSON content must be strings, not {list(content)}")
        content = list(content.values())
    if isinstance(content, list | tuple):
        for item in content:
            if not isinstance(item, str):
                _check_keys(item)


def fingerprint(content: Any) -> Fingerprint:
    """Identity of JSON content.

    >>> fingerprint({"b": 1, "a": [2]}) == fingerprint({"a": [2], "b": 1})
    True
    """
    return Fingerprint(hashlib.blake2b(canonical_json(content), digest_size=16).hexdigest())


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
