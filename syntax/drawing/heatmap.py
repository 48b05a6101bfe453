"""Distance, depth, ancestor and other matrices as heat maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.drawing.svg import SMALL, Picture, about, element, escaped, fill, number, text, width_of
from syntax.errors import InputError

LARGEST: Final = 64
"""Rows and columns that are drawn: each cell is an element, and more cells cannot be read."""

_CELL: Final = 22.0
_SIGNS: Final = {"yes": "✓", "no": "", "none": ""}

_STRONGEST: Final = 0.9


def draw_matrix(
    name: str, matrix: NDArray[Any], labels: Sequence[str], words: Sequence[str] = ()
) -> Picture:
    """A matrix (L, L) or vector (L,) with a cell for each value, named on hover by its words.

    The larger a value, the stronger its cell. Where there is no path, which distances mark with
    the largest number of their dtype, the cell is empty. Of a matrix of more than `LARGEST` rows,
    the first rows and columns are drawn. ``words`` are ids in CoNLL-U of the labels' words, for a
    page that marks them; empty for a piece without a word.
    """
    values, size = np.asarray(matrix), len(labels)
    if values.shape not in ((size,), (size, size)):
        raise InputError(
            f"{name} has the shape {values.shape}; for {size} labels it must be "
            f"({size}, {size}) or ({size},)"
        )
    shown = labels[:LARGEST]
    cells = values[:LARGEST, :LARGEST] if values.ndim == 2 else values[None, :LARGEST]
    row_names = shown if values.ndim == 2 else [""]
    title = name if size <= LARGEST else f"{name} (the first {LARGEST} of {size})"
    ids = list(words[:LARGEST]) or [""] * len(shown)
    row_ids = ids if values.ndim == 2 else [""]
    left = 12 + max((width_of(label, SMALL) for label in row_names), default=0.0)
    top = 12 + max((width_of(label, SMALL) for label in shown), default=0.0)
    parts = [
        *_row_labels(row_names, row_ids, left, top),
        *_column_labels(shown, ids, left, top),
        *_cells(name, cells, (row_names, shown), (row_ids, ids), (left, top)),
    ]
    size_drawn = (left + _CELL * len(shown) + 8, top + _CELL * len(row_names) + 8)
    return Picture(title, _described(name, cells, row_names, shown), *size_drawn, "".join(parts))


def _row_labels(names: Sequence[str], ids: Sequence[str], left: float, top: float) -> Iterator[str]:
    for at, (name, word) in enumerate(zip(names, ids, strict=True)):
        y = top + _CELL * at + 15
        yield text(name, left - 6, y, size=SMALL, anchor="end", **about(word))


def _column_labels(
    labels: Sequence[str], ids: Sequence[str], left: float, top: float
) -> Iterator[str]:
    for at, (label, word) in enumerate(zip(labels, ids, strict=True)):
        x, y = left + _CELL * at + 15, top - 6
        turned = f"rotate(-90 {number(x)} {number(y)})"
        yield text(label, x, y, size=SMALL, anchor="start", transform=turned, **about(word))


def _cells(
    name: str,
    cells: NDArray[Any],
    names: tuple[Sequence[str], Sequence[str]],
    ids: tuple[Sequence[str], Sequence[str]],
    corner: tuple[float, float],
) -> Iterator[str]:
    known = has_path(name, cells)
    sizes = np.where(known, np.abs(cells.astype(np.float64)), 0.0)
    opacities = sizes * (_STRONGEST / max(sizes.max(initial=0.0), 1e-12))
    for row, column in np.ndindex(cells.shape):
        x, y = corner[0] + _CELL * column, corner[1] + _CELL * row
        told = _told(cells[row, column]) if known[row, column] else "none"
        value = _SIGNS.get(told, told)
        words = ", ".join(filter(None, dict.fromkeys((names[0][row], names[1][column]))))
        box = {"x": x, "y": y, "width": _CELL - 1, "height": _CELL - 1}
        opacity = float(opacities[row, column])
        yield element(
            "g",
            element("title", escaped(f"{words}: {name} {told}")),
            element("rect", **box, fill_opacity=opacity, **fill("heat")),
            text(value, x + _CELL / 2 - 0.5, y + 15, size=SMALL) if value else "",
            **about(ids[0][row], ids[1][column]),
        )


def has_path(name: str, cells: NDArray[Any]) -> NDArray[np.bool_]:
    """False for the largest number of the dtype of distances, and for NaN and infinity."""
    known: NDArray[np.bool_] = np.isfinite(cells)
    if name.partition(".")[0] == "distance" and cells.dtype.kind == "u":
        known = cells < np.iinfo(cells.dtype).max
    return known


def _told(value: Any) -> str:
    if isinstance(value, np.bool_):
        return "yes" if value else "no"
    return f"{value:.2g}" if isinstance(value, np.floating) else str(value)


def _described(
    name: str, cells: NDArray[Any], row_names: Sequence[str], labels: Sequence[str]
) -> str:
    known_cells = has_path(name, cells)
    rows = [
        ", ".join(
            f"{label} {_told(value) if known else 'none'}"
            for label, value, known in zip(labels, row, path, strict=True)
        )
        for row, path in zip(cells, known_cells, strict=True)
    ]
    pairs = zip(row_names, rows, strict=True)
    return "; ".join(f"{row_name}: {row}" if row_name else row for row_name, row in pairs)
