"""Stored datasets as batches on the device that trains."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from syntax import fingerprint
from syntax.errors import SpecError, StoreError
from syntax.examples import LabelSpec
from syntax.registry import unknown_name
from trainer.batch import SyntaxBatch
from trainer.derive import check_whole, with_matrices
from trainer.models.build import DataProfile
from trainer.recipes.base import DataOptions, Recipe, SeparatorEdge
from trainer.requirements import Requirements

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore, FeatureStream

_LOG: Final = logging.getLogger(__name__)

SEPARATOR_EDGE: Final[Mapping[SeparatorEdge, str]] = {
    "as_published": "root",
    "as_released": "last_piece",
    "none": "none",
}
"""The switch ``data.separator_edge`` in the words of `syntax.assembly.AssemblySpec`."""


@dataclass(frozen=True, slots=True)
class Source:
    """One split in one language, and the label that a recipe predicts.

    Attributes:
        dataset: The stored examples, at a pinned version.
        label: The label column.
        lang: Language of the examples.
    """

    dataset: FeatureDataset
    label: LabelSpec
    lang: str

    def training_stream(
        self, recipe: Recipe, device: torch.device, *, epoch: int, rank: int, world_size: int
    ) -> FeatureStream:
        """One training epoch: shuffled, in an order that is the same for every world size."""
        return self.dataset.stream(
            batch_size=recipe.training.batch_size,
            seed=recipe.training.seed,
            epoch=epoch,
            rank=rank,
            world_size=world_size,
            bucket=recipe.data.bucket,
            **_stream_options(recipe, device),
        )

    def evaluation_stream(self, recipe: Recipe, device: torch.device) -> FeatureStream:
        """Every example once, those of like length together, to save padding."""
        return self.dataset.stream(
            batch_size=recipe.training.evaluation_batch_size, **_stream_options(recipe, device)
        )


def open_source(store: FeatureStore, data: DataOptions, split: str, lang: str) -> Source:
    """One split in one language, of the tokenizer, parser and version that the options name.

    Raises:
        UnknownDatasetError, UnknownTokenizerError, UnknownParserError: The store has no such data.
        UnknownNameError: The dataset has no such label.
        SpecError: The part is empty, or several fit and the options do not choose.
    """
    dataset = store.dataset(
        data.dataset,
        tokenizer=data.tokenizer,
        split=split,
        lang=lang,
        version=data.version,
        parser=data.parser,
    )
    if not len(dataset):
        raise SpecError(f"{data.dataset} has no examples in {split}/{lang}; its drops say why")
    labels = {label.name: label for label in dataset.labels}
    if data.label not in labels:
        raise unknown_name(f"label of {data.dataset}", data.label, labels)
    return Source(dataset, labels[data.label], lang)


def pin_version(source: Source, output: Path) -> None:
    """Keep the version that a run reads, so that the run can be repeated after a vacuum.

    A store that cannot be written is no reason not to train: that is logged.
    """
    name = f"run-{fingerprint(str(output.resolve()))[:12]}-{source.dataset.version}"
    try:
        source.dataset.pin(name, by=str(output.resolve()))
    except StoreError as error:
        _LOG.warning(
            "version %d of %s is not pinned and may be vacuumed: %s",
            source.dataset.version,
            source.dataset.name,
            error,
        )


def profile_data(source: Source, data: DataOptions) -> DataProfile:
    """What the training data asks of a model, and what the model will ask for from then on."""
    names = parser_names(source)
    requirements = Requirements(
        tokenizer=source.dataset.card.tokenizer_fingerprint,
        tokenizer_name=source.dataset.card.tokenizer,
        parsers={source.lang: tuple(names)},
        parser_names=names,
        classes=source.label.names,
        features=features_of(data),
    )
    return DataProfile(source.label.names, source.dataset.special_tokens, requirements)


def parser_names(source: Source) -> dict[str, str]:
    """Name of each parser behind the examples, by fingerprint; ``?`` if nobody told the store."""
    parsers = source.dataset.parsers
    return {found: parsers[found].get("name", "?") for found in sorted(parsers)}


def features_of(data: DataOptions) -> dict[str, Any]:
    """How examples become batches, in the words of a stream's options."""
    return {
        "max_length": data.max_length,
        "truncation": data.truncation,
        "policy": data.policy,
        "joint_root": data.joint_root,
        "separator_edge": SEPARATOR_EDGE[data.separator_edge],
    }


def device_batches(
    stream: FeatureStream, recipe: Recipe, device: torch.device
) -> Iterator[SyntaxBatch]:
    """The batches of a stream where the model is, each made only when it is asked for.

    Raises:
        SpecError: Matrices are to be derived on the device, and an example may be truncated.
    """
    derive = _derives(recipe)
    for arrays in stream:
        batch = SyntaxBatch.from_numpy(arrays, labels=(recipe.data.label,))
        if derive:
            check_whole(batch, recipe.data.max_length)
        if device.type == "cuda":
            batch = batch.pin_memory()
        batch = batch.to(device, non_blocking=True)
        yield with_matrices(batch) if derive else batch


def _derives(recipe: Recipe) -> bool:
    return recipe.model.use_syntax and recipe.data.matrices == "device"


def _stream_options(recipe: Recipe, device: torch.device) -> dict[str, Any]:
    streams_matrices = recipe.model.use_syntax and not _derives(recipe)
    return {
        **features_of(recipe.data),
        "matrices": ("distance", "depth") if streams_matrices else (),
        # Pinning copies at once, so the stream may then write over its buffers.
        "buffers": "ring" if device.type == "cuda" else "fresh",
    }
