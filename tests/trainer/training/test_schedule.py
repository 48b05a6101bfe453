"""Optimizers and learning rates; a rate that falls when scores stop rising, and resumes."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator

from syntax.errors import SpecError
from tests.trainer.runs import reported, resumed
from trainer.loop import Run, new_accelerator, train
from trainer.options import DataOptions, Recipe, TrainingOptions
from trainer.progress import Evaluation
from trainer.schedule import learning_rate, new_optimizers, plateaus


def new_optimizer(model: torch.nn.Module, training: TrainingOptions) -> torch.optim.Optimizer:
    (part,) = new_optimizers(model, Recipe("any", DataOptions(dataset="any"), training=training))
    return part.optimizer


def evaluations(*headlines: float) -> list[Evaluation]:
    return [Evaluation(step, "f1", headline, {}) for step, headline in enumerate(headlines)]


def slow_plateaus(headlines, after) -> int:
    count = 0
    for number in range(len(headlines)):
        better = all(headlines[number] > earlier for earlier in headlines[:number])
        count += number >= after and number > 0 and not better
    return count


@pytest.mark.parametrize("after", [0, 1, 3, 9])
def test_every_evaluation_that_is_no_better_counts(after) -> None:
    headlines = [0.1, 0.3, 0.2, 0.3, 0.4, 0.4, 0.1]
    assert plateaus(headlines, after) == slow_plateaus(headlines, after)


def test_the_rate_falls_on_a_plateau_alone() -> None:
    """GATE: 0.1, multiplied by 0.9 after each pass without a better score after the fifth."""
    options = TrainingOptions(
        learning_rate=0.1, schedule="plateau", decay=0.9, decay_after=5, warmup_steps=2
    )
    found = [learning_rate(0, 10, options), learning_rate(1, 10, options)]
    assert found == [0.05, 0.1]
    stalled = evaluations(0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.6, 0.6)
    assert learning_rate(9, 10, options, stalled[:5]) == 0.1
    assert learning_rate(9, 10, options, stalled) == pytest.approx(0.1 * 0.9**2)


def test_plain_gradient_descent() -> None:
    model = torch.nn.Linear(1, 1)
    before = model.weight.item()
    optimizer = new_optimizer(model, TrainingOptions(optimizer="sgd", learning_rate=0.5))
    (3 * model.weight).sum().backward()
    optimizer.step()
    assert model.weight.item() == pytest.approx(before - 0.5 * 3)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_biases_and_layer_norms_do_not_decay(optimizer: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2))
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    options = TrainingOptions(optimizer=optimizer, learning_rate=0.1, weight_decay=0.5)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    new_optimizer(model, options).step()
    after = dict(model.named_parameters())
    assert torch.allclose(after.pop("0.weight"), before["0.weight"] * (1 - 0.1 * 0.5))
    assert all(torch.equal(weight, before[name]) for name, weight in after.items())


def test_an_evaluation_after_each_pass(store, small_recipe, tmp_path) -> None:
    run = train(
        small_recipe("max_steps=30", "evaluate_every=epoch", "batch_size=8"), store, tmp_path
    )
    assert run.epoch_steps == 12
    assert [one.step for one in run.progress.evaluations] == [12, 24, 30]


@pytest.mark.slow
def test_a_rate_that_fell_is_the_same_after_a_resume(store, small_recipe, tmp_path) -> None:
    recipe = small_recipe(
        *("max_steps=12", "evaluate_every=2", "checkpoint_every=3", "optimizer=sgd"),
        *("schedule=plateau", "decay=0.5", "warmup_steps=0", "learning_rate=0.0001"),
    )
    whole, reports = reported(recipe, store, tmp_path / "whole")
    assert reports[0].learning_rate > reports[-1].learning_rate
    cut = resumed(recipe, store, tmp_path / "cut", step=8)
    assert cut.progress.losses == whole.progress.losses


def taken(part) -> list[torch.Tensor]:
    """Gradients of all weights, which grow by those that each step of the optimizer takes."""
    seen, step = [], part.optimizer.step

    def noted() -> None:
        seen.append(torch.cat([x.grad.flatten() for x in part.parameters if x.grad is not None]))
        step()

    part.optimizer.step = noted
    return seen


@pytest.mark.parametrize(
    ("setting", "largest", "total"),
    [("clip_value=0.001", 0.001, None), ("clip_norm=0.001", None, 0.001), ("seed=0", None, None)],
)
def test_gradients_are_clipped_by_value_or_by_norm(
    store, small_recipe, tmp_path, setting, largest, total
) -> None:
    run = Run(small_recipe("clip_norm=0", "max_steps=2", setting), store, tmp_path, ())
    seen = taken(*run.optimizers)
    for batches in run.epoch():
        run.step(batches)
    for gradient in seen:
        if largest:
            assert float(gradient.abs().max()) == pytest.approx(largest)
            assert float(gradient.norm()) > 5 * largest
        elif total:
            assert float(gradient.norm()) == pytest.approx(total, rel=1e-3)
        else:
            assert float(gradient.abs().max()) > 0.01
    assert len(seen) == 2


FROZEN = 'optimizers=[{"name": "main", "groups": [{"name": "encoder", "parameters": \
["encoder"], "learning_rate": 0}]}]'


def test_a_group_with_the_rate_0_is_frozen(store, small_recipe, tmp_path) -> None:
    """Fails where its gradients count in the norm that is clipped, or where it has dropout."""
    run = Run(small_recipe(FROZEN, "max_steps=2", "clip_norm=0.5"), store, tmp_path, ())
    model = run.accelerator.unwrap_model(run.model)
    before = [weight.detach().clone() for weight in model.encoder.parameters()]
    dropouts = [one for one in model.encoder.modules() if isinstance(one, torch.nn.Dropout)]
    assert any(one.p for one in dropouts)
    (part,) = run.optimizers
    assert set(part.parameters) == set(model.parameters()) - set(model.encoder.parameters())
    for batches in run.epoch():
        run.step(batches)
        assert model.training
        assert all(one.training for one in model.head.modules())
        assert not any(one.training for one in model.encoder.modules())
    assert run.progress.step == 2
    assert all(map(torch.equal, before, model.encoder.parameters()))
    run._backward(batches[0], batches[:1])
    assert all(weight.grad is None for weight in model.encoder.parameters())
    assert any(weight.grad is not None for weight in part.parameters)


def test_a_run_with_a_frozen_group_resumes_to_the_same_losses(
    store, small_recipe, tmp_path
) -> None:
    recipe = small_recipe(FROZEN, "max_steps=6", "checkpoint_every=2", "evaluate_every=3")
    whole = train(recipe, store, tmp_path / "whole")
    cut = resumed(recipe, store, tmp_path / "cut", step=5)
    assert cut.progress.losses == whole.progress.losses


def test_an_optimizer_of_nothing_but_frozen_groups_is_refused(
    store, small_recipe, tmp_path
) -> None:
    everything = FROZEN.replace('["encoder"]', '[".*"]')
    with pytest.raises(SpecError, match=r"optimizers\.main trains no weights"):
        Run(small_recipe(everything), store, tmp_path, ())


def test_scaled_gradients_are_clipped_by_value_and_by_norm(
    store, small_recipe, tmp_path, monkeypatch
) -> None:
    """Without a GPU accelerate scales no losses, so the scaler of a GPU's fp16 is put in."""

    def scaling(recipe: Recipe) -> Accelerator:
        found = new_accelerator(recipe)
        found.native_amp, found.scaler = True, torch.amp.GradScaler("cpu")
        return found

    monkeypatch.setattr("trainer.loop.new_accelerator", scaling)
    made = small_recipe("precision=fp16", "clip_value=0.001", "clip_norm=0.002", "max_steps=1")
    run = Run(made, store, tmp_path, ())
    seen = taken(*run.optimizers)
    run.step(next(run.epoch()))
    assert float(seen[0].abs().max()) <= 0.001
    assert float(seen[0].norm()) == pytest.approx(0.002, rel=1e-3)


def test_buckets_of_a_bounded_number_of_positions_are_refused() -> None:
    with pytest.raises(SpecError, match=r"training\.buckets .* training\.batch_tokens"):
        TrainingOptions(buckets=(5, 9), batch_tokens=64)
    assert TrainingOptions(buckets=(5, 9)).batch_tokens is None
