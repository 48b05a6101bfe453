"""Options of streams in tests, and their batches compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from featurestore import OrderPolicy
from featurestore.stream.options import DAILY
from syntax.batches import MAX_LENGTH, AssemblySpec
from syntax.options import options_of

WINDOWS = {
    "max_length": 40,
    "truncation": "only_second",
    "stride": 5,
    "segment_limits": (20, None),
    "offsets": True,
}
SENTENCES = {"max_length": 64, "truncation": "only_second", "level": "sentence", "offsets": True}
CHOICES = {"template": ("hypothesis premise", "premise+hypothesis"), "max_length": 30}


def keywords(**options: Any) -> dict[str, Any]:
    """Options as `stream` takes them: those that are no keywords in the object that holds them."""
    for home, kind in (("assembly", AssemblySpec), ("order", OrderPolicy)):
        held = {name: options.pop(name) for name in options_of(kind).keys() - DAILY & set(options)}
        if held:
            length = {"max_length": options.get("max_length", MAX_LENGTH)}
            options[home] = kind(**held, **(length if home == "assembly" else {}))
    return options


def assert_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Two batches have the same arrays, of the same types."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_equal(value, other[name], err_msg=name)
        assert getattr(value, "dtype", None) == getattr(other[name], "dtype", None), name


def assert_all_same(batches: Iterable[Any], expected: Iterable[Any]) -> None:
    for one, other in zip(batches, expected, strict=True):
        assert_same(one, other)


def ids(stream: Any) -> list[str]:
    """Names of the examples of a stream."""
    return [name for batch in stream for name in batch["example_id"]]
