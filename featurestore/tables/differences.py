"""How the labels of two cards differ, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from syntax.examples import LabelSpec

_SHOWN: Final = 5


def difference(ours: Sequence[LabelSpec], theirs: Sequence[LabelSpec]) -> str:
    """What sets their labels apart from ours: other columns, or other names in one of them.

    >>> ours = [LabelSpec("intent", "class", ("buy", "sell"))]
    >>> difference(ours, [LabelSpec("intent", "class", ("buy", "rent"))])
    "intent: 'rent' came new, 'sell' did not come"
    """
    if _columns(ours) != _columns(theirs):
        return f"{_columns(ours)} here, {_columns(theirs)} came"
    pairs = zip(ours, theirs, strict=True)
    return "; ".join(f"{x.name}: {_of_names(x.names, y.names)}" for x, y in pairs if x != y)


def _columns(labels: Sequence[LabelSpec]) -> str:
    described = (f"{x.name} ({x.kind}{f' of {x.field}' if x.field else ''})" for x in labels)
    return ", ".join(described) or "none"


def _of_names(ours: Sequence[str], theirs: Sequence[str]) -> str:
    new = [name for name in theirs if name not in ours]
    missing = [name for name in ours if name not in theirs]
    said = [
        *([f"{_listed(new)} came new"] if new else []),
        *([f"{_listed(missing)} did not come"] if missing else []),
    ]
    return ", ".join(said) or "the same names in another order"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
