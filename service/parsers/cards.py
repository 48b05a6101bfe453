"""What is recorded about a model in the card beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from syntax.errors import ModelLoadError


def model_card(path: Path) -> dict[str, Any]:
    """The content of a card; empty if there is none.

    Raises:
        ModelLoadError: It is no JSON object.
    """
    if not path.exists():
        return {}
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelLoadError(
            f"the model card {path} is not JSON: {error}", path=str(path)
        ) from None
    if not isinstance(card, dict):
        raise ModelLoadError(f"the model card {path} is not a JSON object", path=str(path))
    return card
