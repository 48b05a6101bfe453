"""JSON that every reader accepts, and a parser that fails in one way."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final


def strict_json(content: object, default: Callable[[object], object] | None = None) -> str:
    """Indented JSON with null for NaN and infinity; ``default`` makes other values plain.

    >>> print(strict_json({"loss": float("nan")}))
    {
      "loss": null
    }
    """
    return json.dumps(
        finite(content), indent=2, ensure_ascii=False, allow_nan=False, default=default
    )


def parse_json(text: str | bytes, *, allow_nan: bool = True) -> Any:
    """Content of a JSON text; bytes are UTF-8, and ``allow_nan`` accepts ``NaN`` and ``Infinity``.

    Lists or objects that are nested too deeply raise `ValueError`, not `RecursionError`.

    >>> parse_json("[1, 2]")
    [1, 2]
    """
    try:
        if allow_nan:
            return json.loads(text)
        return _STRICT.decode(text.decode("utf-8") if isinstance(text, bytes) else text)
    except RecursionError:
        raise json.JSONDecodeError("lists or objects are nested too deeply", "", 0) from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


_STRICT: Final = json.JSONDecoder(parse_constant=_no_constant)


def finite(value: object) -> object:
    """Replace NaN and infinity by ``None``."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
