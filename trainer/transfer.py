"""A trained model over languages: zero-shot transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from syntax.errors import ModelLoadError, UnknownDatasetError, UnknownParserError
from trainer.data import Source, device_batches, open_source, parser_names
from trainer.evaluate import evaluate
from trainer.loop import MODEL
from trainer.models.model import MODEL_CLASSES, SyntaxModel
from trainer.options import Recipe
from trainer.requirements import Requirements
from trainer.results import read_result, recipe_of
from trainer.tasks import Scores

if TYPE_CHECKING:
    from featurestore import FeatureStore


@dataclass(frozen=True, slots=True)
class TransferTable:
    """Scores by language of one model, trained on one of them.

    Attributes:
        dataset, split: What was scored.
        source: The language trained on.
        metric: Name of the headline metric.
        scores: By language.
        data: By language, what the scores were computed from: version, parsers, fingerprints.
    """

    dataset: str
    split: str
    source: str
    metric: str
    scores: Mapping[str, Scores]
    data: Mapping[str, Mapping[str, Any]]

    @property
    def targets(self) -> Sequence[str]:
        """The languages never trained on."""
        return [lang for lang in self.scores if lang != self.source]

    @property
    def mean_of_targets(self) -> float | None:
        """Mean headline metric of the languages never trained on; None without any."""
        if not self.targets:
            return None
        return fmean(self.scores[lang].headline for lang in self.targets)

    @property
    def gap(self) -> float | None:
        """Score of the source minus mean of the targets (Hu et al. 2020); None without either."""
        mean = self.mean_of_targets
        if mean is None or self.source not in self.scores:
            return None
        return self.scores[self.source].headline - mean

    def to_json(self) -> dict[str, Any]:
        """Every number by name."""
        languages = {
            lang: {**scores.to_json(), "data": self.data[lang]}
            for lang, scores in self.scores.items()
        }
        return {
            "dataset": self.dataset,
            "split": self.split,
            "source": self.source,
            "metric": self.metric,
            "mean_of_targets": self.mean_of_targets,
            "transfer_gap": self.gap,
            "languages": languages,
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """Language, examples and score, as text, source first; then mean and gap."""
        order = sorted(self.scores, key=lambda lang: (lang != self.source, lang))
        rows = [
            (lang, str(self.scores[lang].examples), f"{self.scores[lang].headline:.4f}")
            for lang in order
        ]
        summary = {"mean of targets": self.mean_of_targets, "transfer gap": self.gap}
        known = {name: value for name, value in summary.items() if value is not None}
        return rows + [(name, "", f"{value:.4f}") for name, value in known.items()]


def evaluate_run(
    folder: Path,
    store: FeatureStore,
    split: str = "test",
    langs: Sequence[str] = (),
    *,
    any_parser: bool = False,
) -> TransferTable:
    """Score the model of a run on a stored split, in one language after the other.

    Args:
        folder: Output of the run.
        store: Where the data lie; the newest version of the dataset is read.
        split: Which split.
        langs: Which languages; every one that the split has by default.
        any_parser: Accept other parsers for the language that the model was trained on.

    Raises:
        SpecError: The data are of another tokenizer, parser or label set than the model's.
        UnknownDatasetError: The store has no such split or language.
        ModelLoadError: The run has no model.
    """
    recipe, model = recipe_of(folder), load_model(folder)
    requirements = Requirements.from_json(model.config.requires)
    data = replace(recipe.data, version=None, tokenizer=_tokenizer(store, recipe, requirements))
    task = recipe.task.tuned(read_result(folder)["scores"])
    recipe = replace(recipe, data=data, task=task)
    sources = {
        lang: _open(store, recipe, split, lang, requirements, any_parser)
        for lang in langs or _languages(store, recipe, split)
    }
    return TransferTable(
        dataset=data.dataset,
        split=split,
        source=data.lang,
        metric=next(iter(sources.values())).task.metric,
        scores={lang: _score(model, source, recipe) for lang, source in sources.items()},
        data={lang: _described(source) for lang, source in sources.items()},
    )


def load_model(folder: Path) -> SyntaxModel:
    """The model that a run kept, on the first GPU if there is one.

    Raises:
        ModelLoadError: There is none, or it cannot be read.
        SpecError: As `recipe_of`.
    """
    model_class = MODEL_CLASSES.get(recipe_of(folder).task.name, SyntaxModel)
    try:
        model = model_class.from_pretrained(folder / MODEL)
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot load the model in {folder / MODEL}: {error}") from error
    model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]
    return model


def _tokenizer(store: FeatureStore, recipe: Recipe, requirements: Requirements) -> str:
    """Fingerprint of the model's tokenizer, if the dataset has been backfilled with it."""
    found = {
        info.tokenizer_fingerprint: info.tokenizer
        for info in store.datasets()
        if info.name == recipe.data.dataset
    }
    if not found:
        raise UnknownDatasetError(f"the store has no dataset {recipe.data.dataset!r}")
    if requirements.tokenizer not in found:
        requirements.check_tokenizer(*next(iter(found.items())))
    return requirements.tokenizer


def _languages(store: FeatureStore, recipe: Recipe, split: str) -> list[str]:
    data = recipe.data
    parts = {
        (part.split, part.lang)
        for info in store.datasets()
        if (info.name, info.tokenizer_fingerprint) == (data.dataset, data.tokenizer)
        for part in info.parts
    }
    langs = sorted(lang for found, lang in parts if found == split)
    if not langs:
        known = ", ".join(sorted({found for found, _ in parts}))
        raise UnknownDatasetError(f"{data.dataset} has no split {split!r}; it has {known}")
    return langs


def _open(
    store: FeatureStore,
    recipe: Recipe,
    split: str,
    lang: str,
    requirements: Requirements,
    any_parser: bool,
) -> Source:
    source = _of_known_parser(store, recipe, split, lang, requirements)
    if not any_parser:
        requirements.check_parsers(lang, parser_names(source))
    requirements.check_classes(source.classes)
    return source


def _of_known_parser(
    store: FeatureStore, recipe: Recipe, split: str, lang: str, requirements: Requirements
) -> Source:
    """The examples parsed by the model's own parser, if there are any; else whatever there is."""
    for parser in requirements.parsers.get(lang, ()):
        try:
            return open_source(store, _parsed_by(recipe, parser), split, lang)
        except UnknownParserError:
            continue
    return open_source(store, _parsed_by(recipe, None), split, lang)


def _parsed_by(recipe: Recipe, parser: str | None) -> Recipe:
    return replace(recipe, data=replace(recipe.data, parser=parser))


def _score(model: SyntaxModel, source: Source, recipe: Recipe) -> Scores:
    stream = source.evaluation_stream(recipe)
    batches = device_batches(stream, recipe, source.task, model.device)
    return evaluate(model, batches, source.task.scorer(source.dataset))


def _described(source: Source) -> dict[str, Any]:
    dataset = source.dataset
    return {
        "version": dataset.version,
        "parsers": parser_names(source),
        "fingerprints": dataset.fingerprints,
        "dropped": dataset.report,
    }
