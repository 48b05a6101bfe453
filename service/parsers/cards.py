"""What is recorded about a model in the card beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from service.parsers.files import read_file
from syntax.errors import ModelLoadError
from syntax.strict_json import parse_json

_TEXTS: Final = ("language", "treebank", "treebank_version", "version", "licence", "sha256")


def model_card(path: Path) -> dict[str, Any]:
    """The content of a card; empty if there is none.

    Raises:
        ModelLoadError: It cannot be read, is no JSON object, or what it says of the model is no
            text.
    """
    try:
        text = read_file(path)
        card = {} if text is None else parse_json(text)
    except ValueError as error:
        raise ModelLoadError(
            f"the model card {path} is not JSON: {error}", path=str(path)
        ) from None
    if not isinstance(card, dict):
        raise ModelLoadError(f"the model card {path} is not a JSON object", path=str(path))
    for key in _TEXTS:
        if not isinstance(card.get(key), str | None):
            raise ModelLoadError(
                f"the model card {path} gives {card[key]!r} as {key}; a text is expected",
                path=str(path),
            )
    return card
