"""Tree matrices from parent vectors, on the device that trains.

At 128 pieces a parent vector is 128 times smaller than the two matrices it spells. Matrices of
whole sequences are derived (``nodes=True``), and then lose what truncation deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.matrices.forest import DeviceForest
from trainer.matrices.relations import derive

_NO_NODES: Final = (
    "this batch carries no nodes to derive matrices from: stream it with nodes=True, and carry "
    "them (SyntaxBatch.from_numpy(..., extras=node_arrays(arrays)))"
)

NODES: Final = (
    "node_parents",
    "node_source",
    "node_column",
    "node_special",
    "node_upos",
    "node_marks",
)
"""Arrays of nodes in a stream; the last of marked examples only."""


def node_arrays(arrays: Mapping[str, Any]) -> list[str]:
    """Names of the arrays that must reach the device (``extras`` of `SyntaxBatch.from_numpy`)."""
    there = [name for name in NODES if name in arrays]
    if not there:
        raise SpecError(_NO_NODES)
    return there


def with_matrices(batch: SyntaxBatch, matrices: Iterable[str] = ()) -> SyntaxBatch:
    """The batch with its matrices derived on its device from the nodes among its ``extras``.

    Further ``matrices`` come among the ``extras``, by their names in `syntax.matrices.MATRICES`:
    ``["sla_mask(threshold=4)"]``. Distances, depths and ancestors are as the host would make them,
    but int32 as soon as a whole sequence has more than 255 nodes.
    """
    if NODES[0] not in batch.extras:
        raise SpecError(_NO_NODES)
    forest = DeviceForest.of(*(batch.extras.get(name) for name in NODES))  # type: ignore[arg-type]
    width = batch.input_ids_BL.shape[1]
    others = {name: value for name, value in batch.extras.items() if name not in NODES}
    return replace(
        batch,
        distance_BLL=derive("distance", forest, width),
        depth_BL=derive("depth", forest, width),
        ancestor_BLL=derive("ancestor", forest, width),
        extras={**others, **{name: derive(name, forest, width) for name in matrices}},
    )
