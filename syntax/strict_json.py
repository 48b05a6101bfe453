"""JSON as every reader takes it, and from whomever it comes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final


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


def parse_json(text: str | bytes, *, allow_nan: bool = True) -> Any:
    """What a JSON text holds.

    Python's parser, ``json.loads``, ends with a `RecursionError` where lists or objects are nested
    too deeply; whoever sends such a text is answered as for any other that is no JSON.

    Args:
        text: The text; bytes are UTF-8.
        allow_nan: Whether it may hold ``NaN``, ``Infinity`` and ``-Infinity``, which are no JSON.

    Raises:
        ValueError: It is no JSON, or is nested too deeply.

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
    """The same with ``None`` for what is no number, or infinite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    return [finite(item) for item in value] if isinstance(value, list | tuple) else value
