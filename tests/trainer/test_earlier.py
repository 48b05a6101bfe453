"""Models and results of releases in which the probes were options of the model.

``data/earlier`` was written by such a release: a tiny model of `make_batch`'s pieces, and what it
gave on the batch of seed 0.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from trainer.models.model import SyntaxForSequenceClassification
from trainer.options import TreeDepthOptions, TreeDistanceOptions
from trainer.options.settings import recipe_from_json, with_settings
from trainer.recipes import RECIPES

FOLDER = Path(__file__).parent / "data" / "earlier"
EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8"))


@torch.no_grad()
def test_a_model_of_an_earlier_release_gives_the_same_losses(make_batch, tmp_path) -> None:
    model = SyntaxForSequenceClassification.from_pretrained(FOLDER).eval()
    options = {"weight": 0.5, "states": "syntax", "rank": 3}
    distance = TreeDistanceOptions(**options, target="as_released")
    assert model.config.objective_options() == (distance, TreeDepthOptions(**options))
    output = model(make_batch())
    assert float(output.task_loss) == pytest.approx(EXPECTED["task_loss"], rel=1e-6)
    found = {name: float(loss) for name, loss in output.objectives.items()}
    assert found == pytest.approx(EXPECTED["objectives"], rel=1e-6)
    model.save_pretrained(tmp_path)
    again = SyntaxForSequenceClassification.from_pretrained(tmp_path).eval()
    assert again.state_dict().keys() == model.state_dict().keys()
    assert torch.equal(again(make_batch()).loss, output.loss)


def test_a_checkpoint_of_an_earlier_release_is_restored() -> None:
    model = SyntaxForSequenceClassification.from_pretrained(FOLDER)
    state = model.state_dict()
    earlier = {
        name.replace("objectives.", "encoder.losses.objectives."): torch.zeros_like(weight)
        for name, weight in state.items()
    }
    assert set(earlier) == set(EXPECTED["weights"])
    model.load_state_dict(earlier)
    assert not any(weight.any() for weight in model.objectives.parameters())


def test_a_recipe_of_an_earlier_release_is_that_of_today() -> None:
    settings = [
        *("objectives.tree_distance.weight=0.2", "objectives.tree_depth.weight=0.2"),
        *("objectives.tree_distance.rank=16", "objectives.tree_depth.rank=16"),
        "objectives.tree_distance.target=as_released",
    ]
    assert recipe_from_json(EXPECTED["recipe"]) == with_settings(RECIPES["pawsx"](), settings)
