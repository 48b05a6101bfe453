"""A finished run: its model, what the model needs, and its predictions for stored examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from syntax.errors import ModelLoadError, UnknownDatasetError, UnknownParserError
from syntax.lists import ParserChoice, listed
from syntax.registry import unknown_name
from trainer.data import Source, device_batches, open_source, parser_names, states_of
from trainer.evaluation.evaluate import evaluate
from trainer.evaluation.predictions import Prediction
from trainer.loop import MODEL
from trainer.metrics.answers import Rules
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel, model_class
from trainer.options import Recipe
from trainer.requirements import Requirements
from trainer.results import read_result, recipe_of
from trainer.tasks.base import Scores

if TYPE_CHECKING:
    from featurestore import FeatureStore
    from featurestore.dataset.base import StreamedDataset


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run with its model loaded; the recipe's task has what was tuned on dev."""

    recipe: Recipe
    model: SyntaxModel
    requirements: Requirements

    def on(
        self,
        store: FeatureStore,
        dataset: str | None = None,
        parser: str | Iterable[str] | None = None,
    ) -> TrainedRun:
        """The run on the newest version that a store has of its dataset, or of another.

        The parser is given as to `FeatureStore.dataset`; by default it is the model's own where it
        has one, and else the only one that there is.
        """
        name = dataset or self.recipe.data.dataset
        tokenizer = _tokenizer(store, name, self.requirements)
        chosen = str(ParserChoice.read(parser)) or None
        data = replace(
            self.recipe.data,
            dataset=name,
            tokenizer=tokenizer,
            version=None,
            treebank_version=None,
            parser=chosen,
        )
        return replace(self, recipe=replace(self.recipe, data=data))

    @property
    def rules(self) -> Rules | None:
        """Rules that compare answers on the run's dataset; None of other tasks."""
        return self.recipe.task.rules_of(self.recipe.data.dataset)

    def scored_by(self, rules: Rules | None) -> TrainedRun:
        """The run with its answers compared by these rules; as it is, when left out."""
        if rules is None:
            return self
        return replace(self, recipe=replace(self.recipe, task=self.recipe.task.with_rules(rules)))


@dataclass(frozen=True, slots=True)
class Answers:
    """The predictions of a model for a dataset, and their scores."""

    scores: Scores
    predictions: list[Prediction]


def load_run(folder: Path, attention: str | None = None) -> TrainedRun:
    """A run from its output folder, with another implementation of attention where one is given.

    `trainer.nn.stock.ATTENTION` has the implementations.
    """
    recipe, model = recipe_of(folder), load_model(folder, attention)
    task = recipe.task.tuned(read_result(folder)["scores"])
    requirements = Requirements.from_json(model.config.requires)
    return TrainedRun(replace(recipe, task=task), model, requirements)


def load_model(folder: Path, attention: str | None = None) -> SyntaxModel:
    """The model that a run, finished or not, kept; on the first GPU if there is one."""
    try:
        config = SyntaxConfig.from_pretrained(folder / MODEL)
        config.attention = attention or config.attention
        own_class = model_class(config.task["name"])
        model: SyntaxModel = own_class.from_pretrained(folder / MODEL, config=config)
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"cannot load the model in {folder / MODEL}: {error}") from error
    model.to("cuda" if torch.cuda.is_available() else "cpu")  # type: ignore[arg-type]
    return model


def chosen_languages(
    store: FeatureStore,
    run: TrainedRun,
    split: str,
    langs: Sequence[str] = (),
    further: Sequence[str] = (),
) -> list[str]:
    """Languages of a split, each once.

    They are given as ``["en", "fr"]`` or ``"en,fr"``; by default they are all that the split of the
    run's dataset has. A parser may also be named for the ``further`` ones, which are read beside
    them.
    """
    chosen = list(dict.fromkeys(listed(langs) or languages_of(store, run, split)))
    ParserChoice.read(run.recipe.data.parser).check({*chosen, *further})
    return chosen


def languages_of(store: FeatureStore, run: TrainedRun, split: str, lang: str = "*") -> list[str]:
    """The languages that ``data.lang`` names, each once; of ``*`` every one that the split has."""
    data, named = run.recipe.data, listed(lang)
    if "*" not in named:
        return list(dict.fromkeys(named))
    parts = {
        (part.split, part.lang)
        for info in store.datasets()
        if (info.name, info.tokenizer_fingerprint) == (data.dataset, data.tokenizer)
        for part in info.parts
    }
    langs = sorted(lang for found, lang in parts if found == split)
    if not langs:
        known = {found for found, _ in parts}
        raise unknown_name(f"split of {data.dataset}", split, known, UnknownDatasetError)
    return langs


def open_language(
    store: FeatureStore, run: TrainedRun, split: str, lang: str, *, any_parser: bool = False
) -> Source:
    """One language of a split, parsed as the model needs it; several are read as one.

    ``any_parser`` accepts other parsers for the language that the model was trained on.
    """
    source = _of_known_parser(store, run, split, lang)
    if not any_parser:
        for one in source.dataset.langs:
            part = replace(source, dataset=source.dataset.where(langs=[one]))
            run.requirements.check_parsers(one, parser_names(part))
    run.requirements.check_states(states_of(source).get("states"))
    run.requirements.check_classes(source.classes)
    return source


def open_languages(
    store: FeatureStore,
    run: TrainedRun,
    split: str,
    langs: Sequence[str] = (),
    *,
    any_parser: bool = False,
) -> dict[str, Source]:
    """Some languages of a split, or all of them, each opened by `open_language`, by name."""
    return {
        lang: open_language(store, run, split, lang, any_parser=any_parser)
        for lang in chosen_languages(store, run, split, langs)
    }


def ask(run: TrainedRun, source: Source, dataset: StreamedDataset | None = None) -> Answers:
    """The predictions and scores of a run's model on all examples of a source.

    ``dataset`` has other examples of the same task, such as crossed ones; the source has the texts
    that answers are read from.
    """
    stream = source.evaluation_stream(run.recipe, dataset)
    batches = device_batches(stream, run.recipe, source.task, run.model.device)
    scorer = source.task.scorer(source.dataset)
    return Answers(evaluate(run.model, batches, scorer), scorer.predictions())


def described(source: Source) -> dict[str, Any]:
    """The data as results describe them: version, parsers, fingerprints, drops."""
    dataset = source.dataset
    return {
        "version": dataset.version,
        "parsers": parser_names(source),
        "fingerprints": dataset.fingerprints,
        "dropped": dataset.report,
    }


def _tokenizer(store: FeatureStore, dataset: str, requirements: Requirements) -> str:
    """Fingerprint of the model's tokenizer, if the dataset has been backfilled with it."""
    found = {
        info.tokenizer_fingerprint: info.tokenizer
        for info in store.datasets()
        if info.name == dataset
    }
    if not found:
        known = {info.name for info in store.datasets()}
        raise unknown_name("dataset", dataset, known, UnknownDatasetError)
    if requirements.tokenizer not in found:
        requirements.check_tokenizer(*next(iter(found.items())))
    return requirements.tokenizer


def _of_known_parser(store: FeatureStore, run: TrainedRun, split: str, lang: str) -> Source:
    """The examples of each language's chosen parser, else of the model's own if there are any."""
    choice, langs = ParserChoice.read(run.recipe.data.parser), languages_of(store, run, split, lang)
    given = {one: parser for one in langs if (parser := choice.of(one)) is not None}
    own = {one: run.requirements.parsers.get(one, ()) for one in langs if one not in given}
    while True:
        parsers = {**given, **{one: of[0] for one, of in own.items() if of}}
        try:
            data = replace(run.recipe.data, parser=str(ParserChoice(parsers)) or None)
            return open_source(store, replace(run.recipe, data=data), split, ",".join(langs))
        except UnknownParserError as error:
            unparsed = error.detail.get("lang")
            if unparsed not in own:
                raise
            own[unparsed] = own[unparsed][1:]
