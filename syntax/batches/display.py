"""A batch that notebooks show as a table instead of its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from syntax.drawing.page import listing


class Batch(dict[str, Any]):
    """Arrays and lists by name, as a dict that notebooks show as a table."""

    def _repr_html_(self) -> str:
        rows = [
            (name, str(value.dtype), " × ".join(map(str, value.shape)))
            if isinstance(value, np.ndarray)
            else (name, type(value).__name__, str(len(value)) if hasattr(value, "__len__") else "")
            for name, value in self.items()
        ]
        return listing("Batch", ("name", "type", "shape"), rows)
