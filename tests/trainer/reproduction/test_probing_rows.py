"""The rows of two encoders, from the files of their probes to its verdict."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.reproduction.rows import ROWS, probing_pairs


def _content(layers: list[list[float]], **further: Any) -> dict[str, Any]:
    points = [{"layer": layer, "seeds": seeds} for layer, seeds in enumerate(layers)]
    return {"tasks": {"distance": {"layers": points}}, **further}


@pytest.mark.parametrize(
    ("low", "high", "holds"),
    [(0.01, 0.05, True), (-0.03, 0.019, False), (-0.03, 0.021, None)],
    ids=["above", "below-what-is-of-interest", "both"],
)
def test_an_encoder_tells_more_if_its_best_layer_does(
    low: float, high: float, holds: bool | None
) -> None:
    against = {"distance": {"layers": [1, 2], "examples": 700, "low": low, "high": high}}
    ours = _content([[0.5, 0.5], [0.6, 0.62]], against=against)
    theirs = _content([[0.4, 0.4], [0.5, 0.5], [0.55, 0.56]])
    names = ("MiniLM", "multilingual E5")
    found = probing_pairs.compared(ours, theirs, names, effect=2)
    assert found.holds is holds
    assert [one.name for one in found.figures[:1]] == list(ROWS["probing-encoders"].effects)
    assert found.figures[0].values == pytest.approx((5.0, 6.0))
    assert len(found.figures) == 1 + 2 + 3


def test_a_probe_that_is_worse_than_a_chain_of_neighbours_tests_nothing() -> None:
    against = {"distance": {"layers": [0, 0], "examples": 700, "low": 0.2, "high": 0.3}}
    ours, theirs = _content([[0.45]], against=against), _content([[0.2]])
    found = probing_pairs.compared(ours, theirs, ("a", "b"), effect=5, chain=46.0)
    assert [floor.is_missed for floor in found.floors] == [True]
