"""What single examples add to the scores of a trial: enough to compute every interval again."""

from __future__ import annotations

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

    A metric is the sum of the first share over a run's examples divided by that of the second
    (`trainer.evaluation.predictions.Prediction`). Gives the number of rows.
    """
    columns: dict[str, list[object]] = {name: [] for name in _SCHEMA.names}
    for path in sorted(folder.glob("runs/*/*/predictions-*.jsonl")):
        arm, seed = path.parts[-3], int(path.parts[-2].removeprefix("seed"))
        for one in read_predictions(path):
            for metric, shares in one.shares.items():
                row = (arm, seed, path.stem.removeprefix("predictions-"), one.example_id, metric)
                for name, value in zip(_SCHEMA.names, (*row, list(shares)), strict=True):
                    columns[name].append(value)
    table = pa.table(columns, schema=_SCHEMA)
    pq.write_table(table, folder / ITEMS, compression="zstd")
    return int(table.num_rows)


def shares_of(runs: Path, seeds: tuple[int, ...], split: str, lang: str, metric: str) -> Floats:
    """What each example adds in each seed of an arm, in order of its id. *Shape:* (N, R, K)."""
    found = []
    for seed in seeds:
        path = predictions_file(runs / f"seed{seed}", split, lang)
        ordered = sorted(read_predictions(path), key=lambda one: one.example_id)
        if ordered and metric not in ordered[0].shares:
            known = ", ".join(sorted(ordered[0].shares))
            raise SpecError(f"{path} has no shares of {metric!r}; it has {known}")
        found.append([one.shares[metric] for one in ordered])
    return np.array(found, float).transpose(1, 0, 2)
