"""What a stream adds to the examples of a batch: marks before assembly, samples after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from featurestore.stream.options import StreamOptions
from featurestore.stream.reader import Window
from syntax.assembly import FlatExamples, mark_spans
from syntax.contrast.base import Samples


def marked_examples(window: Window, options: StreamOptions) -> FlatExamples:
    """The examples with their spans marked, if the stream was given spans.

    Raises:
        InputError: A span covers no piece of its example.
    """
    if options.spans is None:
        return window.examples
    spans = [options.spans.get(name, ()) for name in window.example_ids]
    return mark_spans(window.examples, spans)


def draw_samples(batch: dict[str, Any], options: StreamOptions) -> Samples:
    """The arrays of all samplers of the stream; nothing depends on rank or place in the epoch."""
    keys = sequence_keys(batch)
    arrays: Samples = {}
    for sampler in options.samplers:
        arrays.update(sampler.sample(batch, keys, options.seed, options.epoch))
    return arrays


def sequence_keys(batch: dict[str, Any]) -> Sequence[str]:
    """A key for each sequence: its example's id, with its numbers if there are several of one."""
    names: list[str] = batch["example_id"]
    if "example_index" not in batch:
        return names
    numbers = zip(batch["choice_index"].tolist(), batch["window_index"].tolist(), strict=True)
    return [f"{name} {choice} {part}" for name, (choice, part) in zip(names, numbers, strict=True)]
