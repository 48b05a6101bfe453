"""The rows of two encoders, from the files of their probes to their verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.reproduction.rows import ROWS, probing_pairs

NAMES = ("MiniLM", "multilingual E5")
SENTENCES = 200


def _content(layers: list[float], best: int, every: int) -> dict[str, Any]:
    """A file of probes: the best layer finds an edge of 10 more in one of ``every`` sentences."""
    points = [{"layer": layer, "seeds": [score] * 3} for layer, score in enumerate(layers)]
    right = [5 + (at % every == 0) for at in range(SENTENCES)]
    examples = {str(at): [one] * 3 + [10] for at, one in enumerate(right)}
    tasks = {"distance": {"layers": points, "best": {"layer": best, "examples": examples}}}
    return {"dataset": "ud_probe", "lang": "en", "tasks": tasks}


@pytest.mark.parametrize(
    ("ours", "theirs", "holds"),
    [(2, 8, True), (9, 8, False), (4, 5, None)],
    ids=["above", "below-what-is-of-interest", "both"],
)
def test_an_encoder_tells_more_if_its_best_layer_does(
    ours: int, theirs: int, holds: bool | None
) -> None:
    contents = (_content([0.5, 0.6], 1, ours), _content([0.4, 0.5, 0.55], 2, theirs))
    found = probing_pairs.compared(*contents, NAMES, effect=1)
    assert found.holds is holds
    assert [one.name for one in found.figures[:1]] == list(ROWS["probing-encoders"].effects)
    assert found.figures[0].values == pytest.approx((5.0,) * 3)
    assert len(found.figures) == 1 + 2 + 3


def test_a_probe_that_is_worse_than_a_chain_of_neighbours_tests_nothing() -> None:
    contents = (_content([0.45], 0, 2), _content([0.2], 0, 5))
    found = probing_pairs.compared(*contents, NAMES, effect=5, chain=46.0)
    assert [floor.is_missed for floor in found.floors] == [True]
