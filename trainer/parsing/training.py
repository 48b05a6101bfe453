"""Train a parser of running text: passes over treebanks, with checkpoints; the last ones round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from torch import Tensor

from syntax.batches import IGNORE, SpecialTokens
from syntax.errors import SpecError
from syntax.parsing.pieces import text_pieces, unknown_id
from trainer.nn.biaffine import mean_loss
from trainer.parsing.corpus import GoldSentence, Window, cut_windows, encode_window
from trainer.parsing.model import Batch, Sizes, TextParser, positions
from trainer.parsing.quantization import observing, rounded_layers, set_state
from trainer.schedule import DivergedError

_OBSERVED: Final = 20


@dataclass(frozen=True)
class TrainingOptions:
    """Training of a parser.

    Attributes:
        epochs: Passes over the treebanks.
        rounded: Share of the steps, the last ones, in which layers round as they are served.
        pieces: Of a batch at most, padding included.
        steps: Of a pass at least: batches of small treebanks have fewer pieces, down to a window.
        window: Pieces of a window at most, special tokens not counted.
        alone: Share of windows that are one sentence.
        learning_rate: Of the heads.
        encoder_rate: Of the encoder.
        bounds_rate: Of the bounds of rounding.
        warmup: Share of the steps in which rates grow; then they fall to 0 in a straight line.
        weight_decay: Of all weights but vectors.
        clip: Largest norm of the gradients.
        precision: ``fp32``, or mixed with ``bf16`` until layers round: on a processor with AMX,
            steps then take a little more than half the time.
        seed: Of weights, order, windows and dropout.
        sizes: Widths of the heads.
    """

    epochs: int = 15
    rounded: float = 0.25
    pieces: int = 1_024
    steps: int = 200
    window: int = 250
    alone: float = 0.5
    learning_rate: float = 1e-3
    encoder_rate: float = 1.5e-4
    bounds_rate: float = 1e-2
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 5.0
    precision: Literal["fp32", "bf16"] = "fp32"
    seed: int = 1
    sizes: Sizes = field(default_factory=Sizes)


@dataclass(frozen=True)
class Report:
    """Progress of a training: after each step, and with dev's figures after each pass."""

    step: int
    steps: int
    losses: Mapping[str, float]
    dev: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Corpus:
    """Treebanks as windows; ``lengths`` are the pieces of each sentence."""

    files: Sequence[Sequence[GoldSentence]]
    lengths: Sequence[Sequence[int]]
    tokenizer: Any
    special: SpecialTokens

    @classmethod
    def of(
        cls, files: Sequence[Sequence[GoldSentence]], tokenizer: Any, special: SpecialTokens
    ) -> Corpus:
        lengths = [
            [len(text_pieces(one.text, tokenizer, unknown_id(special))) for one in file]
            for file in files
        ]
        return cls(files, lengths, tokenizer, special)

    def left_out(self, longest: int) -> int:
        """Sentences with more pieces than the encoder reads, which no batch has."""
        room = longest - self.special.count(1)
        return sum(length > room for lengths in self.lengths for length in lengths)

    def batches(self, options: TrainingOptions, epoch: int, longest: int) -> list[list[Window]]:
        """The windows of a pass in batches of similar length, in a drawn order."""
        random = np.random.default_rng((options.seed, epoch))
        room = longest - self.special.count(1)
        most = min(options.window, room)
        windows = [
            encode_window(file[first:end], self.tokenizer, self.special, random)
            for file, lengths in zip(self.files, self.lengths, strict=True)
            for first, end in cut_windows(file, lengths, most, options.alone, random)
            if lengths[first] <= room
        ]
        windows.sort(key=lambda window: len(window.ids) * (1 + 0.1 * random.random()))
        each = sum(len(window.ids) for window in windows) // options.steps
        batches = list(_grouped(windows, min(options.pieces, max(each, options.window))))
        random.shuffle(batches)
        return batches


def train(
    model: TextParser,
    corpus: Corpus,
    dev: Corpus,
    options: TrainingOptions,
    checkpoint: Path,
    report: Callable[[Report], None],
) -> None:
    """Train until the last pass; a checkpoint after each lets the same call go on after a stop.

    The losses of all parts count alike. Order, windows and dropout of a pass depend on seed and
    pass alone, so a training that was stopped ends as one that was not. At the end, layers round.

    Raises:
        SpecError: The encoder can read no sentence.
        DivergedError: A gradient is not finite.
    """
    longest = positions(model.encoder.config)
    first_rounded = options.epochs - max(round(options.epochs * options.rounded), 1)
    held_out = dev.batches(options, 0, longest)
    optimizer = _optimizer(model, options)
    start = _restored(checkpoint, model, optimizer, options)
    for epoch in range(start, options.epochs):
        torch.manual_seed(options.seed * 1_000_003 + epoch)
        batches = corpus.batches(options, epoch, longest)
        if not batches:
            raise SpecError(f"no sentence of the treebanks fits the encoder's {longest} pieces")
        if epoch == first_rounded:
            _begin_rounding(model, batches)
        elif epoch > first_rounded:
            set_state(model, "rounding")
        model.train()
        steps = len(batches) * options.epochs
        mixed = options.precision == "bf16" and epoch < first_rounded
        for step, windows in enumerate(batches, epoch * len(batches)):
            _set_rates(optimizer, step / steps, options.warmup)
            losses = _step(model, optimizer, collate(windows), options.clip, mixed)
            report(Report(step + 1, steps, losses))
        figures = accuracies(model, held_out)
        _save(checkpoint, model, optimizer, options, epoch + 1)
        report(Report((epoch + 1) * len(batches), steps, losses, figures))
    set_state(model, "rounding")


@torch.no_grad()
def accuracies(model: TextParser, batches: Sequence[Sequence[Window]]) -> dict[str, float]:
    """Percentage of right classes of each part, given the words; heads make no tree yet."""
    model.eval()
    right: dict[str, int] = {}
    known: dict[str, int] = {}
    for windows in batches:
        for part, (scores, classes) in model(collate(windows)).items():
            counted = classes != IGNORE
            right[part] = right.get(part, 0) + int((scores.argmax(-1) == classes)[counted].sum())
            known[part] = known.get(part, 0) + int(counted.sum())
    return {part: 100 * right[part] / max(known[part], 1) for part in right}


def collate(windows: Sequence[Window]) -> Batch:
    shape = (len(windows), max(len(window.ids) for window in windows))
    ids, surface = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    mask, boundary = np.zeros(shape, bool), np.full(shape, IGNORE, np.int64)
    for row, window in enumerate(windows):
        size = len(window.ids)
        ids[row, :size], surface[row, :size] = window.ids, window.surface
        mask[row, :size], boundary[row, :size] = True, window.boundary
    lengths = np.concatenate([window.lengths for window in windows])
    real = np.arange(lengths.max()) < lengths[:, None]
    places, head = np.full(real.shape, -1, np.int64), np.full(real.shape, IGNORE, np.int64)
    places[real] = np.arange(lengths.sum())
    head[real] = np.concatenate([window.head for window in windows])
    return Batch(
        ids=torch.from_numpy(ids),
        surface=torch.from_numpy(surface),
        mask=torch.from_numpy(mask),
        boundary=torch.from_numpy(boundary),
        tokens=_numbered([window.tokens for window in windows]),
        split=_flat([window.split for window in windows]),
        words=_numbered([window.words for window in windows]),
        index=_flat([window.index for window in windows]),
        places=torch.from_numpy(places),
        head=torch.from_numpy(head),
        tags={
            column: _flat([window.tags[column] for window in windows]) for column in windows[0].tags
        },
    )


def _grouped(windows: Sequence[Window], pieces: int) -> Iterator[list[Window]]:
    batch: list[Window] = []
    longest = 0
    for window in windows:
        longest = max(longest, len(window.ids))
        if batch and longest * (len(batch) + 1) > pieces:
            yield batch
            batch, longest = [], len(window.ids)
        batch.append(window)
    if batch:
        yield batch


def _flat(parts: Sequence[np.ndarray[Any, Any]]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts))


def _numbered(spans: Sequence[np.ndarray[Any, Any]]) -> Tensor:
    rows = [np.pad(one, ((0, 0), (1, 0)), constant_values=row) for row, one in enumerate(spans)]
    return _flat(rows)


def _step(
    model: TextParser, optimizer: torch.optim.Optimizer, batch: Batch, clip: float, mixed: bool
) -> dict[str, float]:
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        found = model(batch)
    losses = {part: mean_loss(scores.float(), classes) for part, (scores, classes) in found.items()}
    optimizer.zero_grad(set_to_none=True)
    torch.stack([*losses.values()]).sum().backward()
    if not torch.nn.utils.clip_grad_norm_(model.parameters(), clip).isfinite():
        raise DivergedError("a gradient contains NaN or infinity; train again with another seed")
    optimizer.step()
    return {part: loss.item() for part, loss in losses.items()}


def _begin_rounding(model: TextParser, batches: Sequence[Sequence[Window]]) -> None:
    model.eval()
    with torch.no_grad(), observing(model):
        for windows in batches[:_OBSERVED]:
            model(collate(windows))


def _optimizer(model: TextParser, options: TrainingOptions) -> torch.optim.Optimizer:
    bounds = {id(layer.low_high) for layer in rounded_layers(model)}
    encoder = {id(weight) for weight in model.encoder.parameters()} - bounds
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for weight in model.parameters():
        if id(weight) in bounds:
            rate, decay = options.bounds_rate, 0.0
        else:
            rate = options.encoder_rate if id(weight) in encoder else options.learning_rate
            decay = options.weight_decay if weight.ndim > 1 else 0.0
        groups.setdefault((rate, decay), []).append(weight)
    return torch.optim.AdamW(
        [
            {"params": weights, "lr": rate, "peak": rate, "weight_decay": decay}
            for (rate, decay), weights in groups.items()
        ],
        fused=True,
    )


def _set_rates(optimizer: torch.optim.Optimizer, done: float, warmup: float) -> None:
    share = min(done / warmup if warmup else 1.0, (1 - done) / (1 - warmup))
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share


def _save(
    path: Path,
    model: TextParser,
    optimizer: torch.optim.Optimizer,
    options: TrainingOptions,
    epoch: int,
) -> None:
    """Replace the checkpoint at once; it is as large as three models, so it is streamed."""
    draft = path.with_name(f".{path.name}")
    content = {
        "options": asdict(options),
        "epoch": epoch,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(content, draft)
    draft.replace(path)


def _restored(
    path: Path, model: TextParser, optimizer: torch.optim.Optimizer, options: TrainingOptions
) -> int:
    """The pass to go on with; a checkpoint of other options is not read."""
    if not path.is_file():
        return 0
    content = torch.load(path, weights_only=True)
    if content["options"] != asdict(options):
        return 0
    model.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    return int(content["epoch"])
