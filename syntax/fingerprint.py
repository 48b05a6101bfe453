"""Fingerprints: identities of JSON content, of files and of parses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
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


MAX_WORDS: Final = 1_000
"""Words of the longest sentence, where a service sets no other limit."""


def parse_key(
    parser: str,
    lang: str,
    mode: str,
    text: str | None = None,
    tokens: Sequence[str] | None = None,
    long_sentences: str = "refuse",
    max_words: int = MAX_WORDS,
) -> Fingerprint:
    """Key of a parse by ``parser``, a fingerprint; ``("New York",)`` is not ``("New", "York")``."""
    content: dict[str, Any] = {"parser": parser, "lang": lang, "mode": mode}
    if tokens is not None:
        content["tokens"] = list(tokens)
    else:
        content["text"] = text
    if long_sentences != "refuse":
        content["long_sentences"] = long_sentences
        if max_words != MAX_WORDS:
            content["max_words"] = max_words
    return fingerprint(content)
