"""Single examples that a trial keeps, and the row that reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from syntax.errors import SpecError
from trainer.evaluation.predictions import Prediction, predictions_file, write_predictions
from trainer.metrics.significance import over_runs
from trainer.reproduction.items import ITEMS, shares_of, write_items
from trainer.reproduction.rows import parse_quality


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two arms of two seeds, each with three examples in an order of its own."""
    for arm, ahead in (("own", 1.0), ("udpipe", 0.0)):
        for seed in (1, 2):
            run = tmp_path / "runs" / arm / f"seed{seed}"
            run.mkdir(parents=True)
            predictions = [
                Prediction(key, "x", "x", True, {"f1": (2 * hits, 4.0), "accuracy": (1.0, 1.0)})
                for key, hits in (("a", ahead), ("b", 1.0), ("c", float(seed - 1)))
            ]
            write_predictions(predictions[:: 3 - 2 * seed], predictions_file(run, "test", "en"))
    return tmp_path


def test_every_example_of_every_run_is_kept(folder: Path) -> None:
    assert write_items(folder) == 2 * 2 * 3 * 2
    rows = pq.read_table(folder / ITEMS).to_pylist()
    chosen = [row for row in rows if row["arm"] == "own" and row["metric"] == "f1"]
    assert {row["file"] for row in rows} == {"test-en"}
    assert {(row["seed"], row["example"]): row["shares"] for row in chosen} == {
        (seed, key): [2 * hits, 4.0]
        for seed in (1, 2)
        for key, hits in (("a", 1.0), ("b", 1.0), ("c", float(seed - 1)))
    }


def test_examples_of_all_seeds_are_in_one_order(folder: Path) -> None:
    (shares,) = shares_of(folder / "runs", ["udpipe"], (1, 2), "test", "en", "f1")
    assert shares[..., 0].tolist() == [[0, 0], [2, 2], [0, 2]]
    assert shares[..., 1].tolist() == [[4, 4]] * 3
    with pytest.raises(SpecError, match=r"no shares of 'bleu'; it has accuracy, f1"):
        shares_of(folder / "runs", ["own"], (1, 2), "test", "en", "bleu")
    path = predictions_file(folder / "runs" / "own" / "seed2", "test", "en")
    path.write_text(path.read_text("utf-8").replace('"b"', '"d"'), "utf-8")
    with pytest.raises(SpecError, match="has other examples"):
        shares_of(folder / "runs", ["udpipe", "own"], (1, 2), "test", "en", "f1")


def test_an_interval_over_runs_and_examples_is_of_their_difference(folder: Path) -> None:
    one, other = shares_of(folder / "runs", ["own", "udpipe"], (1, 2), "test", "en", "f1")
    low, high = over_runs(one, other)
    assert (low, high) == pytest.approx((0, 0.5), abs=0.01), "of a alone, which 0 to 3 times"
    assert over_runs(one, one) == (0, 0)
    with pytest.raises(SpecError, match="3 examples of 1 runs"):
        over_runs(one[:, :1], other[:, :1])


@pytest.mark.parametrize(
    ("own", "holds"), [((94.5, 94.6, 94.4), True), ((94.0, 94.05, 93.9), False)]
)
def test_a_better_parse_helps_where_its_trees_are_ahead(own: tuple[float, ...], holds) -> None:
    scores = dict.fromkeys(parse_quality.ARMS, (94.0, 94.0, 94.0)) | {"own": own}
    found = parse_quality.findings(scores)
    assert found.holds is holds
    assert [one.name for one in found.figures[:3]] == list(parse_quality.ROW.effects)
    assert np.mean(found.figures[0].values) == pytest.approx(np.mean(own) - 94)
