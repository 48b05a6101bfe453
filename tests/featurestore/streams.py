"""Options of streams in tests."""

from __future__ import annotations

from typing import Any

from featurestore import OrderPolicy
from featurestore.stream.options import DAILY
from syntax.batches import MAX_LENGTH, AssemblySpec
from syntax.options import options_of


def keywords(**options: Any) -> dict[str, Any]:
    """Options as `stream` takes them: those that are no keywords in the object that holds them."""
    for home, kind in (("assembly", AssemblySpec), ("order", OrderPolicy)):
        held = {name: options.pop(name) for name in options_of(kind).keys() - DAILY & set(options)}
        if held:
            length = {"max_length": options.get("max_length", MAX_LENGTH)}
            options[home] = kind(**held, **(length if home == "assembly" else {}))
    return options
