"""The training loop, from top to bottom: data, model, steps, evaluation, checkpoints."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.state import AcceleratorState
from accelerate.utils import set_seed
from torch import nn

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.checkpoint import (
    clear_new,
    find_checkpoint,
    load_checkpoint,
    load_random_state,
    new_folder,
    publish_new,
    set_random_state,
    write_checkpoint,
)
from trainer.data import Source, device_batches, pin_version, warn_of_data
from trainer.evaluation.evaluate import evaluate
from trainer.models.build import build_model
from trainer.options import MAIN, Recipe
from trainer.progress import Evaluation, Losses, Observer, Progress, Report, outcomes_of
from trainer.restarts import Restarts
from trainer.resume import changes, continued
from trainer.schedule import DivergedError as DivergedError
from trainer.schedule import (
    ModelOptimizer,
    check_trained,
    check_weights,
    exchange_gradients,
    learned_by,
    new_optimizers,
    separate_losses,
)
from trainer.streams import (
    TrainingStream,
    feeding,
    open_devs,
    open_streams,
    pinned,
    planned_steps,
    profile_streams,
)
from trainer.tasks.base import Scores, Task

if TYPE_CHECKING:
    from featurestore import FeatureStore

MODEL: Final = "model"
CHECKPOINT: Final = "checkpoint"


def train(
    recipe: Recipe,
    store: FeatureStore,
    output: Path,
    *,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> Run:
    """Train a recipe's model on stored features; ``output/model`` gets the best one, or the last.

    Recipe and store determine the run: an interrupted run that resumes from its last checkpoint has
    the same losses as one that was never interrupted. An exception of an observer ends the run.
    """
    checkpoint = find_checkpoint(output / CHECKPOINT) if resume else None
    run = start(recipe, store, output, observers, checkpoint)
    while not run.finished:
        for batches in run.epoch():
            run.step(batches)
            if run.due(run.training.log_every):
                run.report()
            if run.due(run.training.evaluate_every):
                run.evaluate()
            if run.training.checkpoint_every and run.due(run.training.checkpoint_every):
                run.checkpoint()
    run.flush()
    return run


def start(
    recipe: Recipe,
    store: FeatureStore,
    output: Path,
    observers: Sequence[Observer] = (),
    checkpoint: Path | None = None,
) -> Run:
    if checkpoint is None:
        return Run(recipe, store, output, observers)
    state = load_checkpoint(checkpoint)
    run = Run(continued(recipe, state["recipe"]), store, output, observers)
    run.restore(state, load_random_state(checkpoint, run.accelerator.process_index))
    return run


class Run:
    """One training run: its parts, and its progress.

    Attributes:
        recipe: The recipe, its tokenizers and dataset versions pinned.
        sources, devs: Training and dev data by stream; models are selected on the main one.
        epoch_steps, warmup_steps, total_steps: Steps of the main stream in one pass after the
            delay; all of the warm-up in passes; and all planned.
    """

    def __init__(
        self, recipe: Recipe, store: FeatureStore, output: Path, observers: Sequence[Observer]
    ) -> None:
        self.accelerator = new_accelerator(recipe)
        self.output, self.observers, self.training = output, observers, recipe.training
        if self.training.threads:
            torch.set_num_threads(self.training.threads)
        self.sources = open_streams(store, recipe)
        if self.accelerator.is_main_process:
            for name, source in self.sources.items():
                pin_version(source, output)
                warn_of_data(source, recipe.of_stream(name))
        self.recipe = pinned(recipe, self.sources)
        self.devs = open_devs(store, self.recipe, self.sources)
        self.model, self.optimizers = self._prepared()
        self.progress = Progress(tie_metric=self.training.restart_metric)
        self._restarts, self._losses, self._examples = Restarts(self.training), Losses(), 0
        self.streams = {
            name: TrainingStream(name, source, self.recipe.of_stream(name), self.accelerator)
            for name, source in self.sources.items()
        }
        self._resumed: dict[str, Any] = {}
        planned = planned_steps(self.streams[MAIN], self.recipe)
        self.epoch_steps, self.warmup_steps, self.total_steps = planned

    @property
    def data(self) -> Source:
        return self.sources[MAIN]

    @property
    def dev(self) -> Source:
        return self.devs[MAIN]

    @property
    def task(self) -> Task:
        return self.data.task

    @property
    def _delayed(self) -> bool:
        """True while the task of the main stream is learned alone."""
        return self.progress.epoch < self.training.delay

    @property
    def finished(self) -> bool:
        patience = self.training.patience
        stalled = patience is not None and self.progress.evaluations_since_best >= patience
        done = self.progress.step >= self.total_steps
        return stalled or done or self._restarts.ended(self.progress)

    def due(self, every: int | Literal["epoch"] | None) -> bool:
        """True if what happens every so many steps, or epochs, happens now; at the end all does."""
        if every == "epoch":
            fed = MAIN in feeding(self.recipe, self.progress.step - 1, self._delayed)
            fed = fed and (self.progress.epoch + 1) % self.training.evaluate_epochs == 0
            return self.finished or (fed and not self.streams[MAIN].stream.remaining)
        return self.finished or (every is not None and self.progress.step % every == 0)

    def epoch(self) -> Iterator[list[SyntaxBatch]]:
        """The rest of this pass over the main stream: the batches of one step at a time."""
        main = self.streams[MAIN]
        main.begin(self.progress.epoch)
        if self._resumed:
            for name, state in self._resumed["streams"].items():
                self.streams[name].load_state_dict(state)
        # Only now: whatever the iterators draw at their start, the saved run had drawn before.
        if random := self._resumed.get("random"):
            set_random_state(random)
        self._resumed = {}
        while not self.finished and (batches := self._next()):
            yield batches
        if not self.finished or not main.stream.remaining:
            self.progress.epoch += 1

    def step(self, batches: Sequence[SyntaxBatch]) -> None:
        """One step of the optimizers; all batches of a stream have the same weight."""
        step = self.progress.step
        with self._timed():
            self.model.train()
            self._frozen.eval()
            self.accelerator.unwrap_model(self.model).encoder.at_step(step)
            for part in self.optimizers:
                part.set_rates(step, self.total_steps, self.progress.evaluations, self.warmup_steps)
            outputs: dict[str, list[Any]] = {}
            for batch in batches:
                outputs.setdefault(batch.stream, []).append(self._backward(batch, batches))
                self.progress.count(outcomes_of(batch.arrays))
            self._losses.add(outputs)
            self.progress.count_fed(outputs)
            for part in self.optimizers:
                if part.due(step, self._delayed):
                    part.clip(self.accelerator)
                    part.optimizer.step()
                part.optimizer.zero_grad()
                if not self._delayed:
                    part.clamp(step)
        self._examples += sum(map(len, batches))
        self.progress.step += 1

    def report(self) -> None:
        progress = self.progress
        with self._timed():
            losses, means = self._losses.read(lambda part: self.accelerator.reduce(part, "mean"))
            seen = torch.tensor(self._examples, device=self.accelerator.device)
            progress.examples += int(self.accelerator.reduce(seen, "sum"))
        if not all(map(math.isfinite, losses)):
            check_weights(self.model, progress.step)
        progress.take(losses)
        self._examples = 0
        self._tell(
            Report(
                step=progress.step,
                total_steps=self.total_steps,
                losses=means,
                learning_rate=self.optimizers[0].rate,
                examples=progress.examples,
                seconds=progress.seconds,
                waited=progress.waited,
            )
        )

    def flush(self) -> None:
        if len(self.progress.losses) < self.progress.step:
            self.report()

    def evaluate(self) -> None:
        """Score the model on dev in every process, and save it if its weights are to be kept."""
        found: dict[str, Scores] = {}
        for name, source in self.devs.items():
            recipe, device = self.recipe.of_stream(name), self.accelerator.device
            stream = source.evaluation_stream(recipe)
            batches = device_batches(stream, recipe, source.task, device, name)
            found[name] = evaluate(self.model, batches, source.task.scorer(source.dataset))
        content = found[MAIN].to_json()
        if len(found) > 1:
            content["streams"] = {name: of.to_json() for name, of in found.items() if name != MAIN}
        evaluation = Evaluation(self.progress.step, self.task.metric, found[MAIN].headline, content)
        self.progress.evaluations.append(evaluation)
        if self.progress.kept(self.training.keep) is evaluation:
            self._save_model()
        self._tell(evaluation)
        self._restarts.evaluated(self.progress, self.model, self.optimizers)

    def checkpoint(self) -> None:
        self.flush()
        scaler = self.accelerator.scaler
        state = {
            "model": self.accelerator.unwrap_model(self.model).state_dict(),
            "optimizers": [part.optimizer.state_dict() for part in self.optimizers],
            "scaler": scaler.state_dict() if scaler is not None else {},
            "streams": {name: stream.state_dict() for name, stream in self.streams.items()},
            "progress": self.progress.to_state(),
            "recipe": self.recipe.to_json(),
            "processes": self.accelerator.num_processes,
            "best": self._restarts.best,
        }
        rank, wait = self.accelerator.process_index, self.accelerator.wait_for_everyone
        write_checkpoint(self.output / CHECKPOINT, state, rank, wait)

    def restore(self, state: Mapping[str, Any], random: Mapping[str, Any] | None) -> None:
        """Return to the state of a `checkpoint`; the next epoch restores data and generators."""
        self.accelerator.unwrap_model(self.model).load_state_dict(state["model"])
        for part, saved in zip(self.optimizers, state["optimizers"], strict=True):
            part.optimizer.load_state_dict(saved)
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        self._restarts.best = state.get("best")
        self.progress = Progress.from_state(state["progress"], self.training.restart_metric)
        step, processes = self.progress.step, self.accelerator.num_processes
        if step > self.total_steps:
            raise SpecError(
                f"the checkpoint is at step {step}, and the recipe ends at step "
                f"{self.total_steps}; resume with as many steps, or with more"
            )
        changed = changes(self.recipe, state["recipe"])
        if (before := state.get("processes", processes)) != processes:
            changed["processes"] = [before, processes]
        self.progress.resumed.append({"step": step, "changed": changed})
        self._resumed = {"streams": state["streams"], "random": random}

    def _prepared(self) -> tuple[Any, list[ModelOptimizer]]:
        set_seed(self.training.seed)
        model = build_model(self.recipe, profile_streams(self.sources, self.recipe))
        if self.training.compile:
            model.compile(dynamic=True)
        optimizers = new_optimizers(model, self.recipe)
        check_trained(model, optimizers)
        self._frozen = frozen_modules(model)
        # From here on only dropout draws, and processes must not draw alike.
        set_seed(self.training.seed + self.accelerator.process_index)
        model, *wrapped = self.accelerator.prepare(model, *(part.optimizer for part in optimizers))
        for part, optimizer in zip(optimizers, wrapped, strict=True):
            part.optimizer = optimizer
        return model, optimizers

    def _next(self) -> list[SyntaxBatch]:
        """The batches of the next step; none where the main stream's epoch is over."""
        before, count = self.progress.seconds, self.training.accumulation
        batches: list[SyntaxBatch] = []
        with self._timed():
            for name in feeding(self.recipe, self.progress.step, self._delayed):
                if name != MAIN:
                    batches += self.streams[name].cycle(count)
                elif not (batches := self.streams[MAIN].take(count)):
                    break
        self.progress.waited += self.progress.seconds - before
        return batches

    def _backward(self, batch: SyntaxBatch, batches: Sequence[SyntaxBatch]) -> Any:
        """Gradients of one batch; processes exchange them at the last of the step."""
        last, count = batch is batches[-1], sum(one.stream == batch.stream for one in batches)
        separate = any(part.options.objectives for part in self.optimizers)
        taking = [x for x in self.optimizers if x.due(self.progress.step, self._delayed)]
        with nullcontext() if last and not separate else self.accelerator.no_sync(self.model):
            output = self.model(batch, objectives=() if self._delayed else None)
            if not separate:
                # What does not change in this step costs no backward pass.
                skips = len(taking) < len(self.optimizers) and self.accelerator.num_processes == 1
                own = learned_by(taking) if skips else None
                self.accelerator.backward(output.loss / count, inputs=own)
        if separate:
            objectives = self.recipe.of_stream(batch.stream).objectives
            for part, loss in separate_losses(self.optimizers, output, objectives):
                if any(part is x for x in taking) and loss.requires_grad:
                    own = part.parameters
                    self.accelerator.backward(loss / count, inputs=own, retain_graph=True)
            if last:
                exchange_gradients(self.optimizers, self.accelerator)
        return output

    def _save_model(self) -> None:
        if self.accelerator.is_main_process:
            folder = self.output / MODEL
            clear_new(folder)
            self.accelerator.unwrap_model(self.model).save_pretrained(new_folder(folder))
            publish_new(folder)

    def _tell(self, event: Report | Evaluation) -> None:
        for observer in self.observers if self.accelerator.is_main_process else ():
            observer(event)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.progress.seconds += time.perf_counter() - started


def frozen_modules(model: nn.Module) -> nn.ModuleList:
    """The outermost modules whose parameters are all frozen; a module without any is none of them.

    A run leaves them in eval mode, with all that they contain: what does not learn has no dropout,
    so that what reads its states finds the same ones in every pass.

    >>> model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1), nn.Dropout()))
    >>> _ = model[1].requires_grad_(False)
    >>> list(frozen_modules(model)) == [model[1]]
    True
    """
    learns = [parameter.requires_grad for parameter in model.parameters()]
    if learns and not any(learns):
        return nn.ModuleList([model])
    return nn.ModuleList(one for child in model.children() for one in frozen_modules(child))


_PRECISION: Final = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}


def new_accelerator(recipe: Recipe) -> Accelerator:
    """One process of a run; all run on accelerators, or all on the CPU."""
    precision = _PRECISION[recipe.training.precision]
    # The parts of the model that belong to one stream have no gradients in steps of the others,
    # and objectives none before they begin.
    partial = bool(recipe.streams) or recipe.training.delay > 0
    unused = [DistributedDataParallelKwargs(find_unused_parameters=True)] if partial else []
    # It would keep the precision of the first run for the whole process, and refuse another.
    AcceleratorState._reset_state()
    # Without `cpu`, accelerate lets each process on the CPU train by itself.
    accelerator = Accelerator(
        cpu=not torch.accelerator.is_available(), mixed_precision=precision, kwargs_handlers=unused
    )
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != started:
        raise SpecError(
            f"{started} processes were started, and {accelerator.num_processes} can train together "
            f"on {accelerator.device.type}; start one, or set ACCELERATE_USE_CPU=true"
        )
    return accelerator
