"""The training loop, from top to bottom: data, model, steps, evaluation, checkpoints."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from syntax.errors import SpecError, WorkError
from trainer.batch import SyntaxBatch
from trainer.checkpoint import (
    clear_new,
    find_checkpoint,
    load_checkpoint,
    load_random_state,
    new_folder,
    publish_new,
    save_checkpoint,
    set_random_state,
)
from trainer.data import (
    device_batches,
    open_source,
    pin_version,
    pinned_data,
    profile_data,
    warn_of_data,
)
from trainer.evaluation.evaluate import check_labelled, check_languages, evaluate
from trainer.models.build import build_model
from trainer.options import Recipe
from trainer.progress import Evaluation, Losses, Observer, Progress, Report
from trainer.resume import changes, continued
from trainer.schedule import learning_rate, new_optimizer

if TYPE_CHECKING:
    from featurestore import FeatureStore, FeatureStream

MODEL: Final = "model"
CHECKPOINT: Final = "checkpoint"
_PRECISION: Final = {"fp32": "no", "bf16": "bf16", "fp16": "fp16"}


def train(
    recipe: Recipe,
    store: FeatureStore,
    output: Path,
    *,
    resume: bool = False,
    observers: Sequence[Observer] = (),
) -> Run:
    """Train a recipe's model on stored features; the best one is left in ``output/model``.

    Recipe and store determine the run: the same losses come out whether it runs through, or is
    interrupted anywhere and resumed from its last checkpoint.

    Args:
        recipe: What to do.
        store: Where the data lie.
        output: Folder for model and checkpoint.
        resume: Go on from the checkpoint in ``output``.
        observers: Told of reports and evaluations; what they raise ends the run.

    Raises:
        SpecError: Recipe, data and encoder do not fit each other, or there is no checkpoint of
            the same run.
        UnknownNameError: The store has no such data, or a registry no such name.
        ModelLoadError: The encoder cannot be had.
        DivergedError: The weights are no numbers any more.
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
    """A run at its beginning, or where a checkpoint was written."""
    if checkpoint is None:
        return Run(recipe, store, output, observers)
    state = load_checkpoint(checkpoint)
    run = Run(continued(recipe, state["recipe"]), store, output, observers)
    run.restore(state, load_random_state(checkpoint, run.accelerator.process_index))
    return run


class DivergedError(WorkError):
    """A model whose weights are no numbers any more, and will not be again."""


class Run:
    """One training run: its parts, and how far it has come.

    Attributes:
        recipe: The recipe, its tokenizer and dataset version pinned.
        data, dev: What is trained on, and what models are selected on.
        progress: Position and history.
        epoch_steps, total_steps: Optimizer steps of one pass over the data, and planned.
    """

    def __init__(
        self, recipe: Recipe, store: FeatureStore, output: Path, observers: Sequence[Observer]
    ) -> None:
        self.accelerator = new_accelerator(recipe)
        self.output, self.observers, self.training = output, observers, recipe.training
        if self.training.threads:
            torch.set_num_threads(self.training.threads)
        data = recipe.data
        self.data = open_source(store, recipe, data.train_split, data.lang, labelled=True)
        self.task = self.data.task
        if self.accelerator.is_main_process:
            pin_version(self.data, output)
            warn_of_data(self.data, recipe)
        self.recipe = replace(recipe, data=pinned_data(self.data, recipe))
        pinned = self.recipe.data
        self.dev = open_source(store, self.recipe, pinned.dev_split, pinned.lang)
        check_languages(self.data, self.dev, self.recipe)
        check_labelled(self.dev, self.recipe, pinned.dev_split)
        self.task.scorer(self.dev.dataset)  # what cannot be scored is refused before it is learned
        self.model, self.optimizer = self._prepared()
        self.progress, self._losses, self._examples = Progress(), Losses(), 0
        self._stream = self._training_stream(0)
        self._resumed: dict[str, Any] = {}
        self.epoch_steps = -(-len(self._stream) // self.training.accumulation)
        self.total_steps = self.training.max_steps or self.epoch_steps * self.training.epochs

    @property
    def finished(self) -> bool:
        """Whether every planned step is done, or the scores have not risen for long enough."""
        patience = self.training.patience
        stalled = patience is not None and self.progress.evaluations_since_best >= patience
        return stalled or self.progress.step >= self.total_steps

    def due(self, every: int | Literal["epoch"] | None) -> bool:
        """Whether what happens every so many steps happens now; at the end everything does.

        The last weights are always scored: the release scores at multiples alone, and a short
        run ends there without any.
        """
        steps = self.epoch_steps if every == "epoch" else every
        return self.finished or (steps is not None and self.progress.step % steps == 0)

    def epoch(self) -> Iterator[list[SyntaxBatch]]:
        """The rest of this pass over the data, as the batches of one optimizer step at a time."""
        self._stream = self._training_stream(self.progress.epoch)
        if self._resumed:
            self._stream.load_state_dict(self._resumed["stream"])
        batches = iter(self._device_batches(self._stream))
        # Only now: whatever the iterator draws at its start, the saved run had drawn before.
        if random := self._resumed.get("random"):
            set_random_state(random)
        self._resumed = {}
        while not self.finished and (group := self._next(batches)):
            yield group
        if not self.finished or not self._stream.remaining:
            self.progress.epoch += 1

    def step(self, batches: Sequence[SyntaxBatch]) -> None:
        """One optimizer step over the batches, each with the same weight."""
        with self._timed():
            self.model.train()
            self._set_learning_rate()
            self._losses.add([self._backward(batch, batches) for batch in batches])
            if self.training.clip_norm > 0:
                self.accelerator.clip_grad_norm_(self.model.parameters(), self.training.clip_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
        self._examples += sum(map(len, batches))
        self.progress.step += 1

    def report(self) -> None:
        """Read the losses off the device and tell the observers."""
        progress = self.progress
        with self._timed():
            losses, means = self._losses.read(lambda part: self.accelerator.reduce(part, "mean"))
            seen = torch.tensor(self._examples, device=self.accelerator.device)
            progress.examples += int(self.accelerator.reduce(seen, "sum"))
        if not all(map(math.isfinite, losses)):
            self._check_weights()
        progress.losses += losses
        self._examples = 0
        self._tell(
            Report(
                step=progress.step,
                total_steps=self.total_steps,
                losses=means,
                learning_rate=self._learning_rate(progress.step - 1),
                examples=progress.examples,
                seconds=progress.seconds,
                waited=progress.waited,
            )
        )

    def flush(self) -> None:
        """Report the steps that no report has told of yet."""
        if len(self.progress.losses) < self.progress.step:
            self.report()

    def evaluate(self) -> None:
        """Score the model on dev, and keep it if it is the best so far.

        Every process scores all of dev: waiting for one of them would take as long.
        """
        batches = self._device_batches(self.dev.evaluation_stream(self.recipe))
        scores = evaluate(self.model, batches, self.task.scorer(self.dev.dataset))
        evaluation = Evaluation(
            self.progress.step, self.task.metric, scores.headline, scores.to_json()
        )
        self.progress.evaluations.append(evaluation)
        if self.progress.best is evaluation:
            self._save_model()
        self._tell(evaluation)

    def checkpoint(self) -> None:
        """Write everything that `restore` needs."""
        self.flush()
        scaler = self.accelerator.scaler
        state = {
            "model": self.accelerator.unwrap_model(self.model).state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": scaler.state_dict() if scaler is not None else {},
            "stream": self._stream.state_dict(),
            "progress": self.progress.to_state(),
            "recipe": self.recipe.to_json(),
            "processes": self.accelerator.num_processes,
        }
        rank, folder = self.accelerator.process_index, self.output / CHECKPOINT
        wait = self.accelerator.wait_for_everyone
        if rank == 0:
            clear_new(folder)
        wait()
        save_checkpoint(folder, state if rank == 0 else None, rank)
        wait()
        if rank == 0:
            publish_new(folder)
        wait()

    def restore(self, state: Mapping[str, Any], random: Mapping[str, Any] | None) -> None:
        """Go to where `checkpoint` was called; the next epoch restores data and generators.

        Raises:
            SpecError: More steps are done than the recipe has.
        """
        self.accelerator.unwrap_model(self.model).load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])
        self.progress = Progress.from_state(state["progress"])
        self._note_resumption(state)
        self._resumed = {"stream": state["stream"], "random": random}

    def _note_resumption(self, state: Mapping[str, Any]) -> None:
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

    def _check_weights(self) -> None:
        """Raise if they are no numbers: the loss of a batch without labels is none either."""
        if not all(bool(weight.isfinite().all()) for weight in self.model.parameters()):
            raise DivergedError(
                f"by step {self.progress.step} the weights of the model are no numbers any more; "
                "train anew with a lower training.learning_rate, or a longer warm-up"
            )

    def _prepared(self) -> tuple[Any, Any]:
        """Model and optimizer, with weights from the seed, on their device."""
        set_seed(self.training.seed)
        model = build_model(self.recipe, profile_data(self.data, self.recipe))
        if self.training.compile:
            model.compile(dynamic=True)
        optimizer = new_optimizer(model, self.training)
        # From here on only dropout draws, and processes must not draw alike.
        set_seed(self.training.seed + self.accelerator.process_index)
        return self.accelerator.prepare(model, optimizer)  # type: ignore[no-any-return]

    def _training_stream(self, epoch: int) -> FeatureStream:
        return self.data.training_stream(
            self.recipe,
            self.accelerator.device,
            epoch=epoch,
            rank=self.accelerator.process_index,
            world_size=self.accelerator.num_processes,
        )

    def _device_batches(self, stream: FeatureStream) -> Iterator[SyntaxBatch]:
        return device_batches(stream, self.recipe, self.task, self.accelerator.device)

    def _next(self, batches: Iterator[SyntaxBatch]) -> list[SyntaxBatch]:
        before = self.progress.seconds
        with self._timed():
            group = list(islice(batches, self.training.accumulation))
        self.progress.waited += self.progress.seconds - before
        return group

    def _backward(self, batch: SyntaxBatch, group: Sequence[SyntaxBatch]) -> Any:
        """Gradients of one batch; processes exchange them at the last of the group."""
        last = batch is group[-1]
        with nullcontext() if last else self.accelerator.no_sync(self.model):
            output = self.model(batch)
            self.accelerator.backward(output.loss / len(group))
        return output

    def _learning_rate(self, step: int) -> float:
        return learning_rate(step, self.total_steps, self.training, self.progress.evaluations)

    def _set_learning_rate(self) -> None:
        rate = self._learning_rate(self.progress.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def _save_model(self) -> None:
        if self.accelerator.is_main_process:
            folder = self.output / MODEL
            clear_new(folder)
            self.accelerator.unwrap_model(self.model).save_pretrained(new_folder(folder))
            publish_new(folder)

    def _tell(self, event: Report | Evaluation) -> None:
        if self.accelerator.is_main_process:
            for observer in self.observers:
                observer(event)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.progress.seconds += time.perf_counter() - started


def new_accelerator(recipe: Recipe) -> Accelerator:
    """This process's place among those of its run, all on accelerators or all on the CPU.

    Raises:
        SpecError: Other processes were started with this one, and it cannot reach them.
    """
    precision = _PRECISION[recipe.training.precision]
    # Not told so, accelerate lets each process on the CPU train by itself.
    accelerator = Accelerator(cpu=not torch.accelerator.is_available(), mixed_precision=precision)
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if accelerator.num_processes != started:
        raise SpecError(
            f"{started} processes were started, and {accelerator.num_processes} can train together "
            f"on {accelerator.device.type}; start one, or set ACCELERATE_USE_CPU=true"
        )
    return accelerator
