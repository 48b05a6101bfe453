"""Stored examples that recipes and runs name, found without torch."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from syntax.errors import ParsebankError, SpecError, UnknownDatasetError
from syntax.examples import LabelSpec
from syntax.lists import listed
from syntax.registry import unknown_name
from trainer.options import MAIN, DataOptions, Recipe, TaskOptions
from trainer.options.settings import raise_all
from trainer.results import recipe_of

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore, ParsedDataset

_LOG: Final = logging.getLogger(__name__)


def stored_part(store: FeatureStore, data: DataOptions, split: str, lang: str) -> FeatureDataset:
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
    return dataset


def with_trees(store: FeatureStore, dataset: FeatureDataset, data: DataOptions) -> ParsedDataset:
    """A dataset with its parses, or, where the options name a treebank, with that one's."""
    from featurestore import ParsedDataset

    if data.treebank is None:
        return ParsedDataset(store, dataset)
    treebank = store.dataset(
        data.treebank,
        tokenizer=dataset.card.tokenizer_fingerprint,
        split=dataset.spec.split,
        lang=[*dataset.langs],
        version=data.treebank_version,
    )
    if len(treebank) > len(dataset):
        _LOG.warning(
            "%d of %d examples of %s are not in %s, and are neither learned nor scored",
            len(treebank) - len(dataset),
            len(treebank),
            treebank.name,
            dataset.name,
        )
    return ParsedDataset(store, dataset, treebank)


def task_labels(dataset: FeatureDataset, task: TaskOptions) -> dict[str, LabelSpec]:
    found = {label.name: label for label in dataset.labels}
    for name in task.columns():
        if name not in found:
            raise unknown_name(f"label of {dataset.name}", name, found)
    return {name: found[name] for name in task.columns()}


def check_recipe(store: FeatureStore, recipe: Recipe) -> None:
    """Refuse a recipe whose streams name data or labels that a store lacks; list several faults."""
    faults: dict[str, ParsebankError] = {}
    scored = {MAIN, *(stream.name for stream in recipe.streams if stream.task is not None)}
    for name in recipe.stream_names:
        own = recipe.of_stream(name)
        for split in (own.data.train_split, *([own.data.dev_split] if name in scored else [])):
            try:
                task_labels(stored_part(store, own.data, split, own.data.lang), own.task)
            except ParsebankError as error:
                faults.setdefault(error.message, error)
    raise_all(list(faults.values()))


def check_part(
    store: FeatureStore,
    run: Path,
    split: str,
    langs: str | Iterable[str] | None = None,
    dataset: str | None = None,
) -> None:
    """Refuse data that a store lacks, by default a run's in all languages of the split."""
    own = recipe_of(run).data
    data = replace(own, dataset=dataset or own.dataset, version=None, parser=None)
    for lang in listed(langs) or ("*",):
        try:
            stored_part(store, data, split, lang)
        except UnknownDatasetError:
            raise
        except ParsebankError:
            continue  # several parsers, of which the model's own is taken, or another's tokenizer
