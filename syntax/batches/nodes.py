"""The nodes of whole sequences, before truncation: what a device derives matrices from."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.batches import kernels
from syntax.batches.derived import node_columns
from syntax.batches.segments import FlatExamples
from syntax.matrices.offsets import sizes

_SMALL: Final = int(np.iinfo(np.int16).max)


def padded_nodes(
    examples: FlatExamples, nodes: kernels.Nodes, node_offsets: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """The columns of all nodes, one row per sequence, as `assemble_batch` describes them."""
    counts = sizes(node_offsets)
    width = int(counts.max(initial=0))
    real = np.arange(width) < counts[:, None]
    places = np.int16 if width <= _SMALL else np.int32
    starts = np.repeat(node_offsets[:-1], counts)
    columns = {
        "parents": np.maximum(nodes.heads, -1).astype(places),
        "source": (nodes.source - starts).astype(places),
        "column": nodes.column.astype(places),
    }
    known = node_columns(examples, nodes)
    columns.update({name: known[name]() for name in ("special", "upos", "marks") if name in known})
    return {f"node_{name}": _padded(column, real) for name, column in columns.items()}


def _padded(column: NDArray[Any], real: NDArray[np.bool_]) -> NDArray[Any]:
    signed = np.issubdtype(column.dtype, np.signedinteger)
    padded = np.full(real.shape, -1 if signed else 0, column.dtype)
    padded[real] = column
    return padded
