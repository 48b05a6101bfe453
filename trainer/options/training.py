"""Options of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from syntax.errors import SpecError
from syntax.options import Bounds, Count, NonNegative, NonNegativeInt, Probability, check_fields

Schedule: TypeAlias = Literal["linear", "plateau", "cosine", "constant", "restarts", "inverse_sqrt"]

LARGEST_SEED: Final = 2**31 - 1
"""So that each of several processes can add its number, and NumPy takes 32 bits."""

Seed: TypeAlias = Annotated[int, Bounds(0, LARGEST_SEED)]


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options of training.

    Attributes:
        seed: Seed of initial weights, dropout and the order of examples.
        batch_size: Examples per batch on one device.
        batch_tokens: In its place: most positions of a padded batch, of what the encoder reads and
            of what the task writes alike.
        accumulation: Batches per optimizer step.
        epochs: Passes over the training data, unless ``max_steps`` is set.
        buckets: The most words, ROOT included, of the sentences of each bucket. Where there are
            some, the batches of an epoch are drawn from them (`featurestore.stream.order`), and
            longer sentences are not trained on. Not together with ``batch_tokens``.
        max_steps: Optimizer steps, however many passes they take.
        optimizer: ``adamw``, ``rmsprop``, or plain ``sgd``, which has no epsilon.
        learning_rate, epsilon, weight_decay: Settings of the optimizer.
        schedule: ``linear``: the learning rate falls to 0; ``cosine``: it falls to 0 along half a
            cosine; ``constant``: it stays; ``inverse_sqrt``: it falls with the inverse root of the
            step (Vaswani et al. 2017); ``plateau``: it is multiplied by ``decay`` after every
            evaluation that is no better than the best one before, except the first
            ``decay_after``; ``restarts``: it is multiplied by ``decay`` whenever the run goes back
            to its best weights, with a new optimizer (`trainer.restarts`).
        decay, decay_after: Settings of ``plateau``; ``restarts`` has the first.
        restart_after: Evaluations without a better one that are let pass before a restart.
        restart_drop: How far ``restart_metric`` may fall below its value at the best evaluation.
        restart_metric: One of the scores, which also breaks ties of the headline; the headline when
            left out.
        restart_double: Restarts after which ``restart_after`` is doubled.
        max_restarts: The run ends with this restart.
        warmup_steps: Steps over which the learning rate rises, before the schedule begins; the last
            of them has the full rate.
        warmup_share: The same as a share of all steps.
        warmup_epochs: The same in passes over the main stream, from the first one on; steps of
            other streams count, too. The largest of the three counts.
        clip_norm: Largest norm of the gradient; 0 leaves it alone.
        clip_value: Largest absolute value of each of its elements, before the norm; likewise.
        share_exponent: The streams that take steps of their own, the main one among them, have
            shares in proportion to their examples to this power, which a result records, in place
            of ``share`` (multilingual sampling, Lample and Conneau 2019).
        precision: ``fp32``, or mixed with ``bf16`` or ``fp16``; recurrent parts stay in fp32.
        compile: Whether to compile the model; this pays off on a GPU and in long runs.
        gradient_checkpointing: Whether the stock encoder recomputes its activations in the backward
            pass, which takes less memory and more time.
        evaluate_every: Steps between evaluations on dev, or ``epoch`` for one after each pass; the
            last step is always evaluated.
        evaluate_epochs: Passes between evaluations, with ``evaluate_every=epoch``.
        patience: Evaluations in a row without improvement after which a run ends; ``None``
            never ends it early.
        checkpoint_every: Steps between checkpoints to resume from; ``None`` writes none.
        log_every: Steps over which a logged loss is averaged.
        evaluation_batch_size: Examples per batch in evaluation.
        threads: CPU threads of torch; by default torch decides.
        betas: AdamW's decay of the running means of the gradient and of its square.
        keep: Which weights the run keeps: those of the ``best`` evaluation, of the one with the
            ``lowest_loss``, or the ``last``.
        delay: Passes over the main stream at the beginning in which only its task is learned: other
            streams and all objectives wait, and every optimizer takes every step.
        delay_batch_size: Examples per batch in these passes; by default ``batch_size``.
    """

    seed: Seed = 0
    batch_size: Count = 32
    accumulation: Count = 1
    epochs: Count = 5
    buckets: tuple[int, ...] = ()
    max_steps: Count | None = None
    optimizer: Literal["adamw", "sgd", "rmsprop"] = "adamw"
    learning_rate: NonNegative = 2e-5
    epsilon: NonNegative = 1e-8
    weight_decay: NonNegative = 0.0
    schedule: Schedule = "linear"
    decay: Probability = 0.9
    decay_after: NonNegativeInt = 0
    restart_after: Count = 20
    restart_drop: Probability = 0.05
    restart_metric: str | None = None
    restart_double: Count = 5
    max_restarts: Count | None = None
    warmup_steps: NonNegativeInt = 0
    warmup_share: Probability = 0.0
    warmup_epochs: NonNegativeInt = 0
    clip_norm: NonNegative = 1.0
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    compile: bool = False
    gradient_checkpointing: bool = False
    evaluate_every: Count | Literal["epoch"] | None = 2000
    evaluate_epochs: Count = 1
    patience: Count | None = None
    checkpoint_every: Count | None = 2000
    log_every: Count = 10
    evaluation_batch_size: Count = 64
    threads: Count | None = None
    betas: tuple[float, ...] = (0.9, 0.999)
    keep: Literal["best", "last", "lowest_loss"] = "best"
    clip_value: NonNegative = 0.0
    delay: NonNegativeInt = 0
    delay_batch_size: Count | None = None
    batch_tokens: Count | None = None
    share_exponent: NonNegative | None = None

    def batch_size_of(self, epoch: int) -> int:
        return self.delay_batch_size or self.batch_size if epoch < self.delay else self.batch_size

    def __post_init__(self) -> None:
        check_fields("training", self)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise SpecError(
                f"training.betas is {self.betas}; it must be two numbers from 0 and below 1"
            )
        if self.schedule == "restarts" and self.keep != "best":
            raise SpecError(
                "training.schedule=restarts goes back to the best weights; set training.keep=best"
            )
        if self.buckets and self.batch_tokens is not None:
            raise SpecError(
                "training.buckets draws batches of training.batch_size examples, and "
                "training.batch_tokens bounds positions instead; leave out training.batch_tokens, "
                "or set training.buckets=[] before it"
            )
