"""Who is told how a run goes."""

from __future__ import annotations

import sys
import time
from io import StringIO

import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from syntax.errors import MissingExtraError
from trainer.evaluation.pictures import require_matplotlib
from trainer.metrics.significance import mcnemar
from trainer.observers import TensorBoard, WeightsAndBiases, progress_bar
from trainer.progress import Evaluation, Report


def events(step: int) -> list[Report | Evaluation]:
    return [
        Report(step, 4, {"loss": 1.0 / step, "task": 0.5}, 1e-3, 8 * step, 2.0, 0.5),
        Evaluation(step, "accuracy", 0.25 * step, {"accuracy": 0.25 * step, "per_class": {}}),
    ]


def test_tensorboard_has_every_number_by_step(tmp_path) -> None:
    with TensorBoard(tmp_path) as board:
        for step in (1, 2):
            for event in events(step):
                board(event)
    found = EventAccumulator(str(tmp_path)).Reload()
    assert [(one.step, one.value) for one in found.Scalars("train/loss")] == [(1, 1.0), (2, 0.5)]
    assert [one.value for one in found.Scalars("dev/accuracy")] == [0.25, 0.5]
    assert found.Scalars("speed/data_share")[0].value == 0.25


def test_the_bar_begins_with_the_first_event() -> None:
    shown = StringIO()
    with progress_bar(Console(file=shown)):
        assert shown.getvalue() == ""
    assert shown.getvalue() == ""
    with progress_bar(Console(file=shown)) as bar:
        for event in events(3):
            bar(event)
    assert "step 3: dev accuracy 0.7500" in shown.getvalue()
    assert "3/4" in shown.getvalue()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_weights_and_biases_get_the_same_numbers(tmp_path, monkeypatch, small_recipe) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB__SERVICE_WAIT", "300")
    with WeightsAndBiases(tmp_path, small_recipe()) as observer:
        assert list(tmp_path.iterdir()) == []
        for step in (1, 2, 3):
            for event in events(step):
                observer(event)
        # A step is summed up when the next one begins.
        summary = dict(observer._run.summary)
        assert observer._run.config["training"]["max_steps"] == 8
    assert (summary["train/loss"], summary["dev/accuracy"]) == (0.5, 0.5)
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    for _ in range(1_000):  # A process of wandb's own writes the file.
        if b"speed/data_share" in kept.read_bytes():
            return
        time.sleep(0.1)
    pytest.fail("the measurements were not written")


@pytest.mark.parametrize(
    ("library", "extra", "use"),
    [
        ("wandb", "wandb", lambda folder, recipe: WeightsAndBiases(folder, recipe)),
        ("matplotlib", "pictures", lambda *_: require_matplotlib()),
        ("scipy", "train", lambda *_: mcnemar([True], [False])),
    ],
)
def test_without_a_library_the_line_that_installs_it_is_given(
    tmp_path, monkeypatch, small_recipe, library, extra, use
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"pip install .*\[{extra}\]'"):
        use(tmp_path, small_recipe())
