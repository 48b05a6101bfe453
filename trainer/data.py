"""Stored datasets as batches on the device that trains."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from featurestore import OrderPolicy, with_repeated, with_weighted_languages
from syntax import fingerprint
from syntax.batches import AssemblySpec, SequenceSpec
from syntax.batches.words import word_layout
from syntax.contrast import Sampler, read_sampler
from syntax.errors import SpecError, StoreError
from syntax.examples import LabelSpec
from syntax.options import options_of
from trainer.batch import SyntaxBatch
from trainer.masking import with_masks
from trainer.matrices.derive import node_arrays, with_matrices
from trainer.options import (
    MAIN,
    DataOptions,
    DependencyOptions,
    ObjectiveOptions,
    Recipe,
    SeparatorEdge,
    TaskOptions,
)
from trainer.options.settings import described
from trainer.requirements import DataProfile, Requirements
from trainer.ring import sender
from trainer.stored import stored_part, task_labels, with_trees
from trainer.tasks import TASKS
from trainer.tasks.base import Task

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore, FeatureStream
    from featurestore.dataset.base import StreamedDataset

_LOG: Final = logging.getLogger(__name__)

SEPARATOR_EDGE: Final[Mapping[SeparatorEdge, str]] = {
    "as_published": "root",
    "as_released": "last_piece",
    "none": "none",
}
"""The switch ``data.separator_edge`` in the words of `syntax.batches.AssemblySpec`."""


MATRICES_OF_A_BATCH: Final = ("distance", "depth", "ancestor")
"""Matrices that a `SyntaxBatch` has a field for; others are among its extras."""


@dataclass(frozen=True, slots=True)
class Source:
    """One split in one language or several, and what a recipe predicts of it.

    Attributes:
        lang: Languages of the examples, with commas between them.
        unlabelled: Number of examples left out because they have no label to learn from.
        gold: The treebank whose sentences are among the examples.
    """

    dataset: FeatureDataset
    task: Task
    labels: Mapping[str, LabelSpec]
    lang: str
    unlabelled: int = 0
    gold: FeatureDataset | None = None

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """Names of the classes of each label column that has some, in id order."""
        return {name: label.names for name, label in self.labels.items() if label.names}

    @property
    def treebank(self) -> FeatureDataset | None:
        """The treebank whose trees stand for those of the examples."""
        from featurestore import ParsedDataset

        return self.dataset.treebank if isinstance(self.dataset, ParsedDataset) else None

    def training_stream(
        self, recipe: Recipe, device: torch.device, *, epoch: int, rank: int, world_size: int
    ) -> FeatureStream:
        """One training epoch, shuffled in an order that is the same for every world size."""
        order = recipe.model.order()
        if recipe.training.batch_tokens:
            order = replace(order or OrderPolicy(), batch_tokens=recipe.training.batch_tokens)
        if recipe.training.buckets:
            order = replace(order or OrderPolicy(), buckets=recipe.training.buckets)
        return self.dataset.stream(
            batch_size=recipe.training.batch_size,
            seed=recipe.training.seed,
            epoch=epoch,
            rank=rank,
            world_size=world_size,
            bucket=recipe.data.bucket,
            assembly=assembly_of(recipe),
            order=order,
            spans=recipe.task.spans() or None,
            samplers=_samplers(recipe, self.dataset, training=True),
            # Pinning copies at once, so the stream may then write over its buffers.
            buffers="ring" if device.type == "cuda" else "fresh",
        )

    def evaluation_stream(
        self,
        recipe: Recipe,
        dataset: StreamedDataset | None = None,
        matrices: Sequence[str] | None = None,
    ) -> FeatureStream:
        """Every example once, those of like length together, to save padding."""
        chosen = self.dataset if dataset is None else dataset
        return chosen.stream(
            batch_size=recipe.training.evaluation_batch_size,
            assembly=assembly_of(recipe, matrices),
            order=recipe.model.order(),
            spans=recipe.task.spans() or None,
            samplers=_samplers(recipe, chosen, training=False),
        )


def open_source(
    store: FeatureStore, recipe: Recipe, split: str, lang: str, *, labelled: bool = False
) -> Source:
    """One split in one language or several, as the recipe names tokenizer, parser and version.

    ``labelled``, for training, leaves out and counts examples without a label to find, adds the
    treebank, and weights languages.
    """
    data, dataset = recipe.data, stored_part(store, recipe.data, split, lang)
    task_labels(dataset, recipe.task)
    if not labelled:
        return source_of(dataset, recipe, store)
    known, gold = _labelled(dataset, recipe.task), None
    left_out = len(dataset) - len(known)
    if data.limit is not None:
        known = known.where(limit=data.limit)
    if data.gold is not None:
        tokenizer = dataset.card.tokenizer_fingerprint
        gold = store.dataset(data.gold, tokenizer, split, lang, data.gold_version)
        known = with_repeated(known, gold, data.gold_every)
    if data.lang_exponent is not None:
        known = with_weighted_languages(known, data.lang_exponent)
    return replace(source_of(known, recipe, store, unlabelled=left_out), gold=gold)


def source_of(
    dataset: FeatureDataset,
    recipe: Recipe,
    store: FeatureStore | None = None,
    *,
    unlabelled: int = 0,
) -> Source:
    labels = task_labels(dataset, recipe.task)
    if recipe.task.added_tokens() and recipe.model.reads_words:
        raise SpecError(
            f"{recipe.model.name} reads the states of words, and {recipe.task.name} adds tokens to "
            "the pieces; take a model that reads pieces"
        )
    dataset = recipe.model.dataset(store, dataset)
    if store is not None:
        dataset = with_parses(store, dataset, recipe)
    options = recipe.task.fitted(dataset)
    special = options.special_tokens(dataset.special_tokens)
    if special != dataset.special_tokens:
        dataset = copy.copy(dataset)
        dataset.card = replace(dataset.card, special_tokens=special)
    if recipe.training.batch_tokens and (lengths := options.lengths(dataset)) is not None:
        dataset = copy.copy(dataset)
        dataset.other_lengths = lengths
    task = TASKS[recipe.task.name].task(options, labels)
    return Source(dataset, task, labels, ",".join(dataset.langs), unlabelled)


def _labelled(dataset: FeatureDataset, task: TaskOptions) -> FeatureDataset:
    """The examples that have the labels to be found; raises if a language has none."""
    found = dataset.where(labelled=task.found())
    if blind := [lang for lang in dataset.langs if lang not in found.langs]:
        split = dataset.spec.split
        raise unlabelled_error(dataset, task, split, ",".join(blind), "to learn from")
    if len(found) < len(dataset):
        _LOG.warning(
            "%d of %d examples of %s %s have no label to learn from, and are left out",
            len(dataset) - len(found),
            len(dataset),
            dataset.name,
            dataset.spec.split,
        )
    return found


def unlabelled_error(
    dataset: FeatureDataset, task: TaskOptions, split: str, lang: str, use: str
) -> SpecError:
    return SpecError(
        f"no example of {dataset.name} {split} {lang} has the label {', '.join(task.found())} "
        f"{use}; name another split, or let `parsebank predict` read the examples"
    )


def pin_version(source: Source, output: Path) -> None:
    """Pin the version that a run reads; where the store cannot be written, log a warning."""
    for data in filter(None, (source.dataset, source.gold, source.treebank)):
        run = fingerprint([data.name, data.card.tokenizer_fingerprint, str(output.resolve())])
        name = f"run-{run[:12]}-{data.version}"
        try:
            data.pin(name, by=str(output.resolve()))
        except StoreError as error:
            _LOG.warning(
                "version %d of %s is not pinned and may be vacuumed: %s",
                data.version,
                data.name,
                error,
            )


def warn_of_data(source: Source, recipe: Recipe) -> None:
    values = {key: value for key, _, value in described(recipe)}
    for warning in recipe.model.warnings(source.dataset, values):
        _LOG.warning("%s", warning)
    for warning in recipe.task.warnings(source.dataset, recipe.data):
        _LOG.warning("%s", warning)
    for objective in recipe.objectives:
        for warning in objective.warnings(source.dataset):
            _LOG.warning("%s", warning)
    learns_trees = isinstance(recipe.task, DependencyOptions)
    if learns_trees and recipe.model.matrices() and source.treebank is None:
        _LOG.warning(
            "%s reads the trees of %s that it learns to find, so that its scores are not those of "
            "a parser; name a dataset of another parser's trees and data.treebank, or set "
            "model.use_syntax=false",
            recipe.model.name,
            source.dataset.name,
        )


def pinned_data(source: Source, recipe: Recipe) -> DataOptions:
    """The recipe's data, with the tokenizer and version that it found where it names none."""
    card = source.dataset.card
    tokenizer = recipe.data.tokenizer or card.tokenizer_fingerprint
    gold = recipe.data.gold_version if source.gold is None else source.gold.version
    return replace(
        recipe.data,
        tokenizer=tokenizer,
        version=source.dataset.version,
        gold_version=gold,
        treebank_version=None if source.treebank is None else source.treebank.version,
    )


def profile_data(source: Source, recipe: Recipe) -> DataProfile:
    """Demands of the training data on a model, and of the model on data from then on."""
    dataset = source.dataset
    langs = sorted({lang for _, lang in dataset.parts})
    requirements = Requirements(
        tokenizer=dataset.card.tokenizer_fingerprint,
        tokenizer_name=dataset.card.tokenizer,
        parsers={lang: tuple(sorted(dataset.where(langs=[lang]).parsers)) for lang in langs},
        parser_names=parser_names(source),
        classes=source.classes,
        features={**features_of(recipe.data), **states_of(source)},
        fields=dataset.card.fields,
        labels=tuple(source.labels.values()),
        mode=dataset.spec.mode,
    )
    return DataProfile(source.classes, dataset.special_tokens, requirements)


def parser_names(source: Source) -> dict[str, str]:
    parsers = source.dataset.parsers
    return {found: parsers[found].get("name", "?") for found in sorted(parsers)}


def states_of(source: Source) -> dict[str, str]:
    found = source.dataset.fingerprints.get("states")
    return {} if found is None else {"states": found}


def features_of(data: DataOptions) -> dict[str, Any]:
    shared = {name: getattr(data, name) for name in options_of(SequenceSpec)}
    return {**shared, "separator_edge": SEPARATOR_EDGE[data.separator_edge]}


def device_batches(
    stream: FeatureStream, recipe: Recipe, task: Task, device: torch.device, name: str = MAIN
) -> Iterator[SyntaxBatch]:
    """Batches on the device of the model, made as needed; the recipe is of this stream alone."""
    derive, send = _derives(recipe), sender(device)
    matrices = [name for name in matrices_of(recipe) if name not in MATRICES_OF_A_BATCH]
    extras = [
        *recipe.model.extras(),
        *(name for one in _objectives(recipe) for name in one.arrays()),
    ]
    for given in stream:
        arrays = with_masks(with_targets(recipe, recipe.model.arrays(given)))
        further = [name for name in task.extras if name in arrays]
        carried = (*further, *extras, *(node_arrays(arrays) if derive else matrices))
        batch = send(SyntaxBatch.from_numpy(arrays, task.targets(arrays), carried, name))
        yield with_matrices(batch, matrices) if derive else batch


def matrices_of(recipe: Recipe) -> tuple[str, ...]:
    further = (name for one in _objectives(recipe) for name in one.matrices())
    return tuple(dict.fromkeys((*recipe.model.matrices(), *further)))


def _objectives(recipe: Recipe) -> list[ObjectiveOptions]:
    return [one for one in recipe.objectives if one.is_active(recipe.model.use_syntax)]


def _samplers(recipe: Recipe, dataset: StreamedDataset, *, training: bool) -> list[Sampler]:
    special = dataset.special_tokens
    return [
        *map(read_sampler, recipe.data.samplers),
        *recipe.task.samplers(special),
        *(one for of in _objectives(recipe) for one in of.samplers(special, training)),
    ]


def _derives(recipe: Recipe) -> bool:
    return bool(matrices_of(recipe)) and recipe.data.matrices == "device"


def assembly_of(recipe: Recipe, matrices: Sequence[str] | None = None) -> AssemblySpec:
    derives = _derives(recipe)
    if matrices is None:
        matrices = () if derives else matrices_of(recipe)
    asked = {
        **TASKS[recipe.task.name].task.stream_options,
        **recipe.model.stream_options(),
        **parse_options(recipe),
    }
    for one in _objectives(recipe):
        asked.update(one.stream_options())
    return AssemblySpec(
        **features_of(recipe.data),
        **asked,
        matrices=tuple(matrices),
        nodes=derives,
    )


def reads_parses(recipe: Recipe) -> bool:
    return recipe.task.reads_parses() or any(
        one.reads_parses() for one in recipe.objectives if one.is_active(recipe.model.use_syntax)
    )


def with_parses(store: FeatureStore, dataset: FeatureDataset, recipe: Recipe) -> FeatureDataset:
    from featurestore import ParsedDataset

    if not reads_parses(recipe):
        return dataset
    if isinstance(dataset, ParsedDataset):
        if recipe.data.treebank is not None:
            raise SpecError(
                f"{recipe.model.name} reads the trees of {dataset.name} themselves, and "
                f"data.treebank is {recipe.data.treebank!r}; leave it out, or take a model that "
                "reads pieces"
            )
        return dataset
    if recipe.model.reads_words:
        raise SpecError(
            f"{recipe.model.name} reads the states of words, and {recipe.task.name} or an "
            "objective finds words among pieces; take a model that reads pieces"
        )
    return with_trees(store, dataset, recipe.data)


def parse_options(recipe: Recipe) -> dict[str, Any]:
    return {"offsets": True} if reads_parses(recipe) else {}


def with_targets(recipe: Recipe, arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    found = dict(recipe.task.arrays(arrays))
    if reads_parses(recipe) and "word_layout" not in found:
        found["word_layout"] = word_layout(arrays)
    for one in recipe.objectives:
        if one.is_active(recipe.model.use_syntax):
            found.update(one.targets(found))
    return found


def fitted(recipe: Recipe, dataset: FeatureDataset) -> Recipe:
    """The recipe with what it leaves to the training examples, such as names of relations."""
    objectives = tuple(one.fitted(dataset) for one in recipe.objectives)
    return replace(recipe, task=recipe.task.fitted(dataset), objectives=objectives)
