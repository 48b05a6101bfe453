"""Restarts from the best weights: where they happen, and what a resumed run makes of them."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from syntax.errors import SpecError, UnknownNameError
from trainer.loop import train
from trainer.options import TrainingOptions
from trainer.progress import Evaluation, Progress
from trainer.restarts import Restarts, restarts
from trainer.schedule import learning_rate


def evaluations(*scores: float, watched: tuple[float, ...] = ()) -> list[Evaluation]:
    uas = watched or scores
    return [Evaluation(step, "las", score, {"uas": uas[step]}) for step, score in enumerate(scores)]


def progress(*scores: float) -> Progress:
    return Progress(evaluations=evaluations(*scores))


def options(**given: object) -> TrainingOptions:
    return TrainingOptions(schedule="restarts", learning_rate=1.0, decay=0.75, **given)


def released(scores, watched, after, drop, double) -> list[int]:
    """The release's loop, with its variables."""
    best, best_watched, patient, decay, schedule, found = -1.0, -1.0, 0, 0, after, []
    for epoch, (score, uas) in enumerate(zip(scores, watched, strict=True)):
        if score > best or (score == best and uas > best_watched):
            best, best_watched, patient = score, uas, 0
        elif uas < best_watched - drop or patient >= schedule:
            found.append(epoch)
            patient, decay = 0, decay + 1
            if decay % double == 0:
                schedule *= 2
        else:
            patient += 1
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_run_restarts_where_the_release_does(seed) -> None:
    draw = torch.Generator().manual_seed(seed)
    scores, watched = (
        (torch.rand(80, generator=draw) * 0.2 + 0.5).round(decimals=places).tolist()
        for places in (2, 6)
    )
    given = options(restart_after=3, restart_drop=0.1, restart_metric="uas", restart_double=2)
    expected = released(scores, watched, 3, 0.1, 2)
    assert len(expected) > 2
    assert restarts(evaluations(*scores, watched=tuple(watched)), given) == expected


def test_the_watched_metric_breaks_ties() -> None:
    """Fails where the earliest of equals is the best: the run would restart at 2 and at 4."""
    tied = evaluations(0.5, 0.5, 0.5, 0.5, 0.5, watched=(0.6, 0.7, 0.65, 0.65, 0.7))
    assert restarts(tied, options(restart_after=1, restart_metric="uas")) == [3]
    assert Progress("uas", evaluations=tied).best is tied[1]
    assert Progress(evaluations=tied).best is tied[0]


def test_a_watched_metric_that_is_no_score_is_refused(store, small_recipe, tmp_path) -> None:
    recipe = small_recipe("restart_metric=acuracy", "max_steps=2", "evaluate_every=1")
    with pytest.raises(UnknownNameError, match=r"restart_metric.* 'acuracy'.*accuracy"):
        train(recipe, store, tmp_path)


def test_the_time_to_wait_doubles() -> None:
    """Fails where it stays 1: the third restart would be at evaluation 6."""
    given = options(restart_after=1, restart_double=2)
    assert restarts(evaluations(*[0.5] * 12), given) == [2, 4, 7, 10]


def test_a_score_that_falls_by_more_than_five_points_restarts_at_once() -> None:
    assert restarts(evaluations(0.5, 0.46, 0.44), options()) == [2]


def test_each_restart_lowers_the_rate_after_a_warm_up_in_passes() -> None:
    given = options(restart_after=1, warmup_epochs=2)
    none = evaluations(0.5)
    rates = [learning_rate(step, 100, given, none, 8) for step in range(10)]
    assert rates == [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0, 1.0]
    assert learning_rate(50, 100, given, evaluations(0.5, 0.4), 8) == 0.75
    assert learning_rate(50, 100, given, evaluations(*[0.5] * 5), 8) == 0.75**2


def test_a_restart_brings_the_best_weights_back_and_forgets_the_moments() -> None:
    """Of what has this schedule; as in the release, a discriminator and its Adam go on."""
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({name: torch.nn.Linear(3, 1) for name in ("parser", "critic")})
    chosen = options(restart_after=1)
    parts = [
        SimpleNamespace(
            optimizer=torch.optim.AdamW(model[name].parameters()),
            parameters=list(model[name].parameters()),
            training=replace(chosen, schedule=schedule),
        )
        for name, schedule in (("parser", "restarts"), ("critic", "constant"))
    ]
    known = Restarts(chosen)

    def step() -> None:
        for name, part in zip(model, parts, strict=True):
            part.optimizer.zero_grad()
            model[name](torch.ones(3)).sum().backward()
            part.optimizer.step()

    step()
    best = copy.deepcopy(model.state_dict())
    for count in (1, 2, 3):
        known.evaluated(progress(*(0.5, 0.49, 0.48)[:count]), model, parts)
        if count < 3:
            assert parts[0].optimizer.state
            step()
            last = copy.deepcopy(model["critic"].state_dict())
            assert not torch.equal(model["parser"].weight, best["parser.weight"])
    assert torch.equal(model["parser"].weight, best["parser.weight"])
    assert torch.equal(model["critic"].weight, last["weight"])
    assert not torch.equal(model["critic"].weight, best["critic.weight"])
    assert [bool(part.optimizer.state) for part in parts] == [False, True]


def test_the_last_restart_ends_a_run() -> None:
    known = Restarts(options(restart_after=1, max_restarts=2))
    assert [known.ended(progress(*[0.5] * count)) for count in (3, 4, 5)] == [False, False, True]


def test_other_schedules_keep_no_weights() -> None:
    known = Restarts(TrainingOptions())
    known.evaluated(progress(0.5), torch.nn.Linear(1, 1), [])
    assert known.best is None


def test_weights_to_go_back_to_are_kept() -> None:
    with pytest.raises(SpecError, match="keep=best"):
        options(keep="last")
