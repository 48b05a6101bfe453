"""JSON as every reader takes it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping


def strict_json(content: object, default: Callable[[object], object] | None = None) -> str:
    """Indented JSON, in which what is no number, or infinite, is null.

    Args:
        content: Plain values.
        default: Makes a plain value of another one.

    >>> print(strict_json({"loss": float("nan")}))
    {
      "loss": null
    }
    """
    return json.dumps(
        finite(content), indent=2, ensure_ascii=False, allow_nan=False, default=default
    )


def finite(value: object) -> object:
    """The same with ``None`` for what is no number, or infinite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
