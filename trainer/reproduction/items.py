"""Shares of single examples in the scores of a trial: enough to compute its intervals again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from syntax.errors import SpecError
from trainer.evaluation.predictions import predictions_file, read_predictions
from trainer.metrics.significance import Floats

ITEMS: Final = "items.parquet"
_SCHEMA: Final = pa.schema(
    [
        ("arm", pa.dictionary(pa.int32(), pa.string())),
        ("seed", pa.int32()),
        ("file", pa.dictionary(pa.int32(), pa.string())),
        ("example", pa.string()),
        ("metric", pa.dictionary(pa.int32(), pa.string())),
        ("shares", pa.list_(pa.float32())),
    ]
)


def write_items(folder: Path) -> int:
    """Write ``items.parquet`` of a trial: a row for each run, example and metric.

    Shares are those of `trainer.evaluation.predictions.Prediction`. Gives the number of rows; a
    trial without predictions has no file.
    """
    columns: dict[str, list[object]] = {name: [] for name in _SCHEMA.names}
    for path in sorted(folder.glob("runs/*/*/predictions-*.jsonl")):
        arm, seed = path.parts[-3], int(path.parts[-2].removeprefix("seed"))
        for one in read_predictions(path):
            for metric, shares in one.shares.items():
                row = (arm, seed, path.stem.removeprefix("predictions-"), one.example_id, metric)
                for name, value in zip(_SCHEMA.names, (*row, list(shares)), strict=True):
                    columns[name].append(value)
    if not columns["arm"]:
        return 0
    table = pa.table(columns, schema=_SCHEMA)
    pq.write_table(table, folder / ITEMS, compression="zstd")
    return int(table.num_rows)


def shares_of(
    runs: Path, arms: Sequence[str], seeds: Sequence[int], split: str, lang: str, metric: str
) -> list[Floats]:
    """Shares of the examples in each seed of each arm, in order of ids. *Shape:* (N, R, K).

    Raises:
        SpecError: Two runs have not the same examples.
    """
    found, ids = [], None
    for path in (
        predictions_file(runs / arm / f"seed{seed}", split, lang) for arm in arms for seed in seeds
    ):
        ordered = sorted(read_predictions(path), key=lambda one: one.example_id)
        own = [one.example_id for one in ordered]
        ids = ids or own
        if own != ids:
            raise SpecError(f"{path} has other examples than the other runs; compare common ones")
        if ordered and metric not in ordered[0].shares:
            known = ", ".join(sorted(ordered[0].shares))
            raise SpecError(f"{path} has no shares of {metric!r}; it has {known}")
        found.append([one.shares[metric] for one in ordered])
    shares = np.array(found, float).reshape(len(arms), len(seeds), len(ids or ()), -1)
    return [of_arm.transpose(1, 0, 2) for of_arm in shares]
