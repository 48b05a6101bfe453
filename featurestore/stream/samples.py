"""Marks of examples before assembly, and samples that a stream adds to batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from featurestore.stream.options import StreamOptions
from featurestore.stream.window import Window
from featurestore.tables.card import DatasetCard
from syntax.batches import FlatExamples, Span, mark_spans
from syntax.contrast.base import Samples
from syntax.errors import SpecError
from syntax.registry import unknown_name


def marked_examples(window: Window, options: StreamOptions, card: DatasetCard) -> FlatExamples:
    if options.spans is None:
        return window.examples
    if isinstance(options.spans, tuple):
        return mark_spans(window.examples, labelled_spans(window, options.spans, card))
    spans = [options.spans.get(name, ()) for name in window.example_ids]
    return mark_spans(window.examples, spans)


def labelled_spans(window: Window, names: Sequence[str], card: DatasetCard) -> list[list[Span]]:
    """The spans of label columns, column after column, for each example."""
    labels = {label.name: label for label in card.labels}
    spans: list[list[Span]] = [[] for _ in window.example_ids]
    for name in names:
        if name not in labels:
            raise unknown_name(f"label of {card.name}", name, labels)
        label = labels[name]
        if label.kind != "spans":
            raise SpecError(f"the label {name!r} is of kind {label.kind!r}; spans are needed")
        segment = card.fields.index(label.field) if label.field else 0
        for own, rows in zip(spans, window.labels[name], strict=True):
            own += [(segment, start, end) for start, end, _ in rows.tolist()]
    return spans


def draw_samples(batch: dict[str, Any], options: StreamOptions) -> Samples:
    """The arrays of all samplers of the stream; nothing depends on rank or place in the epoch."""
    keys = sequence_keys(batch)
    arrays: Samples = {}
    for sampler in options.samplers:
        drawn = sampler.sample(batch, keys, options.order.seed, options.order.epoch)
        twice = sorted(drawn.keys() & (arrays.keys() | batch.keys()))
        if twice:
            raise SpecError(
                f"{sampler} gives {', '.join(twice)}, which the batch has already; give each kind "
                "of sampler once, and others a stream of their own"
            )
        arrays.update(drawn)
    return arrays


def sequence_keys(batch: dict[str, Any]) -> Sequence[str]:
    """A key for each sequence: its example's id, with its numbers if there are several of one."""
    names: list[str] = batch["example_id"]
    if "example_index" not in batch:
        return names
    numbers = zip(batch["choice_index"].tolist(), batch["window_index"].tolist(), strict=True)
    return [f"{name} {choice} {part}" for name, (choice, part) in zip(names, numbers, strict=True)]
