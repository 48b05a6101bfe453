"""Which staged lines have a text, found without parsing those that cannot."""

from __future__ import annotations

import re
from typing import Any, Final

from syntax.errors import ParsebankError
from syntax.strict_json import parse_json
from syntax.trees.conllu import parse_conllu, parse_from_sentences

_ESCAPED_LETTER: Final = re.compile(r"\\u00[3-7]")
"""JSON may escape ASCII letters and digits too, though it is rare."""

_FIRST_TOKEN: Final = re.compile(r"^\d+(?:-\d+)?\t(\S+)", re.MULTILINE)


class TextFinder:
    """Tells of checked lines whether a segment's parse has one text.

    Args:
        text: Text of the parse: that of the segment, its tokens joined by spaces, or what its
            CoNLL-U comes to.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # Longest first: it is the rarest.
        self._words = sorted(set(re.findall(r"\w+", text)), key=len, reverse=True)
        self._plain = [word for word in self._words if word.isascii()]

    def is_in(self, body: str) -> bool:
        """Whether the line has the text."""
        return self._may_be_in(body) and any(
            map(self._is_segment, parse_json(body).get("example", {}).get("segments", ()))
        )

    def _may_be_in(self, body: str) -> bool:
        if '"conllu"' in body or _ESCAPED_LETTER.search(body):
            return True
        words = self._plain if "\\" in body else self._words
        return all(word in body for word in words)

    def _is_segment(self, segment: dict[str, Any]) -> bool:
        conllu = segment.get("conllu")
        if conllu is not None:
            return self._begins(conllu) and self._text == _gold_text(conllu)
        text = segment.get("text")
        return self._text == (text if text is not None else " ".join(segment.get("tokens") or ()))

    def _begins(self, conllu: str) -> bool:
        """Whether the text begins as the first token does; to read all of them takes long."""
        token = _FIRST_TOKEN.search(conllu)
        return token is None or self._text.lstrip().startswith(token[1])


def _gold_text(conllu: str) -> str | None:
    try:
        return parse_from_sentences(list(parse_conllu(conllu))).text
    except ParsebankError:
        return None
