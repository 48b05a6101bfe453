"""The key of a parse: the fingerprint of everything that determines it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from syntax.fingerprint import Fingerprint, fingerprint

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
