"""Several streams: which of them feeds a step, their heads and scores, and exact resumption."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
import torch

from featurestore import open_store
from syntax.errors import SpecError, UnknownNameError
from tests.trainer.everything import recipe_for, two_streams
from tests.trainer.runs import resumed
from trainer.loop import Run, start, train
from trainer.options import MAIN, DataOptions, Recipe, StreamOptions, TrainingOptions
from trainer.options.settings import recipe_from_json, with_settings
from trainer.progress import Evaluation, Report
from trainer.report import result_of
from trainer.results import recipe_of, write_result
from trainer.schedule import new_optimizers
from trainer.streams import feeding, steps_with


def shared_by(*streams: StreamOptions, seed: int = 0) -> Recipe:
    return Recipe(
        "any", DataOptions(dataset="x"), training=TrainingOptions(seed=seed), streams=streams
    )


DATA = DataOptions(dataset="y")


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("steps", [16, 100, 5000])
def test_every_stream_has_its_share_of_any_number_of_steps(seed, steps) -> None:
    shares = {"gold": 0.125, "silver": 0.3}
    recipe = shared_by(*(StreamOptions(n, DATA, share=s) for n, s in shares.items()), seed=seed)
    fed = Counter(name for step in range(steps) for name in feeding(recipe, step))
    for name, share in {**shares, MAIN: 0.575}.items():
        assert abs(fed[name] - share * steps) <= 4, name
    assert sum(fed.values()) == steps


def test_streams_that_join_take_no_step_from_the_main_one() -> None:
    gold = StreamOptions("gold", DATA, share=0.25)
    usual, always = (StreamOptions(n, DATA, share=s, joins=True) for n, s in (("b", 0.8), ("c", 1)))
    fed = [feeding(shared_by(gold, usual, always), step) for step in range(2000)]
    main = [names for names in fed if names[0] == MAIN]
    assert all(names == ("gold",) for names in fed if names not in main)
    assert len(main) == pytest.approx(1500, abs=4)
    assert all("c" in names for names in main)
    assert sum("b" in names for names in main) == pytest.approx(0.8 * 1500, rel=0.02)


def test_seeds_feed_steps_in_different_orders() -> None:
    gold = StreamOptions("gold", DATA, share=0.5)
    orders = {tuple(feeding(shared_by(gold, seed=n), step) for step in range(20)) for n in range(5)}
    assert len(orders) > 1


def test_a_run_of_epochs_ends_with_the_last_batch_of_the_main_stream() -> None:
    recipe = shared_by(StreamOptions("gold", DATA, share=0.25))
    steps = steps_with(recipe, 30)
    fed = [feeding(recipe, step) == (MAIN,) for step in range(steps)]
    assert (sum(fed), fed[-1]) == (30, True)
    assert steps_with(shared_by(), 30) == 30


def test_a_warm_up_of_a_pass_counts_the_steps_of_other_streams(everything, tmp_path) -> None:
    """Fails where it has only as many steps as the main stream feeds."""
    apart = ("streams.tags.share=0.6", "max_steps=null", "epochs=2", "schedule=constant")
    recipe = two_streams(*apart, "warmup_epochs=1", "warmup_steps=0", "warmup_share=0")
    run, rates = start(recipe, everything, tmp_path), []
    while not run.finished:
        for batches in run.epoch():
            run.step(batches)
            rates.append(run.optimizers[0].rate)
    rising = [rate < run.training.learning_rate for rate in rates]
    steps = rising.index(False) + 1  # the last step of the warm-up has the full rate
    assert not any(rising[steps:])
    fed = [MAIN in feeding(run.recipe, step) for step in range(len(rates))]
    assert sum(fed) == 2 * run.epoch_steps
    assert sum(fed[:steps]) == run.epoch_steps < steps
    assert fed[steps - 1]


@pytest.fixture(scope="module")
def whole(everything_uri, tmp_path_factory) -> tuple[Run, list[Report | Evaluation]]:
    """A finished run of two streams, and its events."""
    events: list[Report | Evaluation] = []
    with open_store(everything_uri) as store:
        output = tmp_path_factory.mktemp("whole")
        run = train(two_streams("evaluate_every=epoch"), store, output, observers=[events.append])
        write_result(result_of(run), output)
    return run, events


def test_a_run_learns_from_both_streams_and_scores_both(whole) -> None:
    run, events = whole
    assert run.total_steps == len(run.progress.losses) == steps_with(run.recipe, 12)
    assert run.streams["tags"].epoch >= 1, "the shorter stream begins again"
    reports = [event for event in events if isinstance(event, Report)]
    fed = [feeding(run.recipe, step)[0] for step in range(run.total_steps)]
    for report, name in zip(reports, fed, strict=True):
        assert ("tags/task" in report.losses) == (name == "tags")
        assert ("task" in report.losses) == (name == MAIN)
    scored = [event for event in events if isinstance(event, Evaluation)]
    last_of_epoch = [
        number + 1
        for number in range(len(fed))
        if fed[: number + 1].count(MAIN) in (6, 12) and fed[number] == MAIN
    ]
    assert [event.step for event in scored] == last_of_epoch
    assert "f1" in scored[-1].scores["streams"]["tags"]


def test_the_model_has_a_head_for_each_stream_and_loads_again(whole) -> None:
    run, _ = whole
    model = run.accelerator.unwrap_model(run.model)
    loaded = type(model).from_pretrained(run.output / "model")
    assert set(loaded.heads) == {"tags"}
    assert set(loaded.state_dict()) == set(model.state_dict())


def test_the_result_repeats_the_run(whole, everything, tmp_path) -> None:
    run, _ = whole
    recipe = recipe_of(run.output)
    assert recipe == recipe_from_json(json.loads(json.dumps(recipe.to_json())))
    assert recipe.streams[0].data.version is not None
    assert train(recipe, everything, tmp_path).progress.losses == run.progress.losses


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"joins": True, "share": 0.6}])
def test_an_interrupted_run_of_two_streams_resumes_to_the_same_losses(
    everything, tmp_path, options
) -> None:
    recipe = two_streams("checkpoint_every=2", "evaluate_every=5", "accumulation=2", **options)
    expected = train(recipe, everything, tmp_path / "whole")
    stop = random.SystemRandom().randrange(3, expected.total_steps)
    cut = resumed(recipe, everything, tmp_path / "cut", stop)
    assert cut.progress.losses == expected.progress.losses, f"stopped at step {stop}"
    assert cut.progress.evaluations == expected.progress.evaluations
    assert cut.streams["tags"].state_dict() == expected.streams["tags"].state_dict()


def test_a_checkpoint_with_another_share_is_refused(everything, tmp_path) -> None:
    train(two_streams("max_steps=3"), everything, tmp_path)
    with pytest.raises(SpecError, match=r"made with streams\.tags\.share=0\.3"):
        train(two_streams("streams.tags.share=0.5"), everything, tmp_path, resume=True)
    with pytest.raises(SpecError, match=r"made with streams\.tags\.name=tags"):
        train(with_settings(two_streams(), ["streams=[]"]), everything, tmp_path, resume=True)


OPTIMIZERS = [
    {"name": "encoder", "learning_rate": 0.001},
    {"name": "heads", "parameters": ["head", "heads"], "schedule": "constant", "every": 2},
]


def test_optimizers_have_rates_of_their_own_and_steps_of_their_own(everything, tmp_path) -> None:
    settings = (f"optimizers={json.dumps(OPTIMIZERS)}", "warmup_steps=0")
    with_two = train(two_streams(*settings, "max_steps=1"), everything, tmp_path)
    later = train(two_streams(*settings, "max_steps=2"), everything, tmp_path)

    def weights(run: Run, *starts: str) -> list[torch.Tensor]:
        state = run.accelerator.unwrap_model(run.model).state_dict()
        return [weight for name, weight in state.items() if name.startswith(starts)]

    assert all(map(torch.equal, weights(with_two, "head"), weights(later, "head")))
    assert not all(map(torch.equal, weights(with_two, "encoder"), weights(later, "encoder")))
    encoder, heads = later.optimizers
    assert encoder.optimizer.param_groups[0]["lr"] == pytest.approx(0.0005)
    assert heads.optimizer.param_groups[0]["lr"] == later.training.learning_rate


@pytest.mark.slow
def test_a_run_with_two_optimizers_resumes_to_the_same_losses(everything, tmp_path) -> None:
    recipe = two_streams(f"optimizers={json.dumps(OPTIMIZERS)}", "max_steps=8")
    expected = train(recipe, everything, tmp_path / "whole")
    train(with_settings(recipe, ["max_steps=8"]), everything, tmp_path / "cut")
    assert train(recipe, everything, tmp_path / "cut", resume=True).progress.losses == (
        expected.progress.losses
    )


def test_one_optimizer_that_is_named_trains_as_the_one_that_is_not(everything, tmp_path) -> None:
    recipe = recipe_for("sequence_classification.v1", "max_steps=3")
    named = with_settings(recipe, ['optimizers=[{"name": "main"}]'])
    expected = train(recipe, everything, tmp_path / "a").progress.losses
    assert train(named, everything, tmp_path / "b").progress.losses == expected


def model() -> torch.nn.Module:
    parts = {
        "encoder": torch.nn.Linear(2, 2),
        "norm": torch.nn.LayerNorm(2),
        "head": torch.nn.Linear(2, 2),
    }
    return torch.nn.ModuleDict(parts)


def optimizers(*given: dict[str, object]) -> list[object]:
    recipe = with_settings(shared_by(), [f"optimizers={json.dumps(given)}", "weight_decay=0.1"])
    return new_optimizers(model(), recipe)


def test_groups_have_a_rate_and_a_decay_of_their_own() -> None:
    head = {"name": "head", "parameters": [r"head\..*"], "learning_rate": 0.5, "weight_decay": 0.2}
    (part,) = optimizers({"name": "main", "learning_rate": 0.1, "groups": [head]})
    found = [(len(g["params"]), g["weight_decay"]) for g in part.optimizer.param_groups]
    assert found == [(1, 0.1), (3, 0.0), (2, 0.2), (0, 0.0)]
    part.set_rates(0, 10, [])
    assert [g["lr"] for g in part.optimizer.param_groups] == [0.1, 0.1, 0.5, 0.5]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([{"name": "a"}, {"name": "b"}], SpecError, "a and b name no parameters"),
        ([{"name": "a", "parameters": ["head"]}], SpecError, "encoder.weight is trained by none"),
        (
            [
                {"name": "a"},
                {"name": "b", "parameters": ["head"]},
                {"name": "c", "parameters": [".*bias"]},
            ],
            SpecError,
            "head.bias is trained by b and c",
        ),
        ([{"name": "a", "parameters": ["haed"]}], SpecError, "'haed', which matches no parameter"),
        ([{"name": "a", "parameters": ["("]}], SpecError, "is not a regular expression"),
        ([{"name": "a", "objectives": ["mlm"]}], UnknownNameError, r"optimizers\.a 'mlm'"),
    ],
)
def test_parameters_of_two_optimizers_or_of_none_are_refused(given, error, message) -> None:
    with pytest.raises(error, match=message):
        optimizers(*given)


def test_several_optimizers_do_not_train_in_fp16() -> None:
    two = [{"name": "a"}, {"name": "b", "parameters": ["head"]}]
    recipe = with_settings(shared_by(), [f"optimizers={json.dumps(two)}", "precision=fp16"])
    with pytest.raises(SpecError, match="fp16 scales losses for one optimizer"):
        new_optimizers(model(), recipe)
