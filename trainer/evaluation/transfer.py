"""A trained model over languages: zero-shot transfer, alone and in pairs.

Zero-shot transfer scores each language. Generalised transfer scores each ordered pair of languages:
the first field, such as the premise or the question, is in one language, and the other fields in
another (Lewis et al. 2020 for questions; Ahmad et al. 2021 for sentence pairs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from syntax.errors import SpecError
from syntax.labels import field_of, is_local
from trainer.data import Source
from trainer.evaluation.baseline import BaselineScore, baseline_scores, training_data
from trainer.evaluation.evaluate import check_labelled
from trainer.evaluation.predictions import (
    Prediction,
    pair_name,
    predictions_file,
    write_predictions,
)
from trainer.evaluation.trained import (
    Answers,
    TrainedRun,
    ask,
    described,
    load_run,
    open_languages,
)
from trainer.metrics.answers import Rules, rules_text
from trainer.results import group_rows, part_name, recipe_of, table, write_json
from trainer.tasks.base import Scores

if TYPE_CHECKING:
    from featurestore import FeatureStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageTable:
    """Common part of the two tables of transfer.

    Attributes:
        sources: The languages trained on.
        metric: Name of the headline metric.
        data: By language, what the scores were computed from: version, parsers, fingerprints.
        rules: Rules that compare answers; None of other tasks.
    """

    dataset: str
    split: str
    sources: Sequence[str]
    metric: str
    data: Mapping[str, Mapping[str, Any]]
    rules: Rules | None = None

    def head(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "split": self.split,
            "sources": list(self.sources),
            "metric": self.metric,
            **({} if self.rules is None else {"rules": self.rules}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferTable(LanguageTable):
    """Scores by language of one model.

    Attributes:
        baselines: By language, the score without a model; none where the store does not have the
            training data, or the task no baseline.
    """

    scores: Mapping[str, Scores]
    predictions: Mapping[str, Sequence[Prediction]]
    baselines: Mapping[str, BaselineScore] = field(default_factory=dict)

    @property
    def targets(self) -> Sequence[str]:
        """The languages never trained on."""
        return [lang for lang in self.scores if lang not in self.sources]

    @property
    def mean_of_targets(self) -> float | None:
        """Mean headline metric of the languages never trained on; None without any."""
        if not self.targets:
            return None
        return fmean(self.scores[lang].headline for lang in self.targets)

    @property
    def gap(self) -> float | None:
        """Score of the source minus mean of the targets (Hu et al. 2020); None without either.

        Of several sources, their mean counts.
        """
        mean = self.mean_of_targets
        ours = [self.scores[lang].headline for lang in self.sources if lang in self.scores]
        return None if mean is None or not ours else fmean(ours) - mean

    def to_json(self) -> dict[str, Any]:
        languages: dict[str, Any] = {}
        for lang, scores in self.scores.items():
            known = {"baseline": asdict(self.baselines[lang])} if lang in self.baselines else {}
            languages[lang] = {**scores.to_json(), **known, "data": self.data[lang]}
        return {
            **self.head(),
            "mean_of_targets": self.mean_of_targets,
            "transfer_gap": self.gap,
            "languages": languages,
        }

    def title(self) -> str:
        return f"{self.dataset}, {self.split}"

    def header(self) -> tuple[str, ...]:
        names = {one.name: None for one in self.baselines.values()}
        return ("language", "examples", self.metric, *names)

    def rows(self) -> list[tuple[str, ...]]:
        """Language, examples, score and baseline, as text, sources first; then mean and gap.

        Groups of examples, where the task has some, come after their language.
        """
        blank = ("",) * bool(self.baselines)
        rows: list[tuple[str, ...]] = []
        for lang in sorted(self.scores, key=lambda lang: (lang not in self.sources, lang)):
            scores = self.scores[lang]
            baseline = (f"{self.baselines[lang].score:.4f}",) if self.baselines else ()
            rows.append((lang, str(scores.examples), f"{scores.headline:.4f}", *baseline))
            groups = group_rows(scores.to_json().get("per_group", {}))
            rows += [(f"{lang}, {name}", *numbers, *blank) for name, *numbers in groups]
        for name, value in (("mean of targets", self.mean_of_targets), ("transfer gap", self.gap)):
            if value is not None:
                rows.append((name, "", f"{value:.4f}", *blank))
        return rows

    def markdown(self) -> str:
        shown = table(self.header(), self.rows())
        trained = f"Trained on {', '.join(self.sources)}.{rules_text(self.rules)}"
        return f"# {self.dataset}, {self.split}\n\n{trained}\n\n{shown}\n"


Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome for one ordered pair of languages.

    Attributes:
        score: The headline metric.
        unmatched: Examples of the first language that the second does not have.
        differing: Examples left out because their labels differ between the two.
    """

    score: float
    examples: int
    unmatched: int
    differing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedTable(LanguageTable):
    """Scores of one model by language of the first field and of the others.

    Attributes:
        classes: Their names, where classes are predicted.
    """

    fields: Sequence[str]
    langs: Sequence[str]
    cells: Mapping[Pair, Cell]
    predictions: Mapping[Pair, Sequence[Prediction]] = field(default_factory=dict)
    classes: Sequence[str] = ()

    @property
    def mean_within(self) -> float:
        return fmean(cell.score for (a, b), cell in self.cells.items() if a == b)

    @property
    def mean_across(self) -> float | None:
        """Mean score of pairs in two languages; None of one language."""
        scores = [cell.score for (a, b), cell in self.cells.items() if a != b]
        return fmean(scores) if scores else None

    def summary(self) -> dict[str, float]:
        """Both means, and what is lost from the first to the second."""
        within, across = self.mean_within, self.mean_across
        if across is None:
            return {"mean_within": within}
        return {"mean_within": within, "mean_across": across, "crossing_gap": within - across}

    def to_json(self) -> dict[str, Any]:
        """Every number by name; ``pairs[a][b]`` has the first field in ``a``."""
        pairs: dict[str, dict[str, Any]] = {a: {} for a in self.langs}
        for (a, b), cell in self.cells.items():
            numbers = asdict(cell)
            pairs[a][b] = {self.metric: numbers.pop("score"), **numbers}
        return {
            **self.head(),
            "fields": list(self.fields),
            "classes": list(self.classes),
            **self.summary(),
            "pairs": pairs,
            "data": self.data,
        }

    def title(self) -> str:
        return f"{self.dataset}, {self.split}: {self.metric}"

    def header(self) -> tuple[str, ...]:
        return (f"{self.fields[0]} / others", *self.langs)

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each language of the first field, a column for each of the others."""
        return [(a, *(f"{self.cells[a, b].score:.4f}" for b in self.langs)) for a in self.langs]

    def markdown(self) -> str:
        header = (f"{self.fields[0]} \\ {', '.join(self.fields[1:])}", *self.langs)
        means = [(name.replace("_", " "), f"{mean:.4f}") for name, mean in self.summary().items()]
        parts = [f"# {self.dataset}, {self.split}: {self.metric}", rules_text(self.rules).strip()]
        parts += [table(header, self.rows()), table(("", ""), means)]
        return "\n\n".join(filter(None, parts)) + "\n"


class Scoring(TypedDict, total=False):
    """Options of scoring a run.

    Attributes:
        any_parser: Accept other parsers for the language that the model was trained on.
        dataset: Another dataset of the same fields and classes, such as ``xquad`` for a model that
            was trained on ``squad``.
        rules: Comparison of answers; as the run says, or the dataset's own scorer, by default.
        parser: Whose parses are read, as `TrainedRun.on` takes it.
    """

    any_parser: bool
    dataset: str | None
    rules: Rules | None
    parser: str | Iterable[str] | None


def evaluate_run(
    folder: Path,
    store: FeatureStore,
    split: str = "test",
    langs: Sequence[str] = (),
    **how: Unpack[Scoring],
) -> TransferTable:
    """Score the model of a run on a stored split, in one language after the other.

    The newest version of the dataset is read. Languages are given as ``["en", "fr"]`` or
    ``"en,fr"``; by default they are all that the split has.
    """
    run, sources, facts = _opened(folder, store, split, langs, how)
    answers = {lang: ask(run, source) for lang, source in sources.items()}
    task, datasets = next(iter(sources.values())).task, {k: v.dataset for k, v in sources.items()}
    return TransferTable(
        **facts,
        scores={lang: found.scores for lang, found in answers.items()},
        predictions={lang: found.predictions for lang, found in answers.items()},
        baselines=baseline_scores(task, training_data(store, recipe_of(folder)), datasets),
    )


def evaluate_crossed(
    folder: Path,
    store: FeatureStore,
    split: str = "test",
    langs: Sequence[str] = (),
    **how: Unpack[Scoring],
) -> CrossedTable:
    """Score the model of a run on all ordered pairs of languages.

    Examples are joined by their ids; those without a partner, or with another label there, are left
    out and counted.
    """
    run, sources, facts = _opened(folder, store, split, langs, how)
    first = next(iter(sources.values())).dataset
    fields = first.card.fields
    if len(fields) < 2:
        raise SpecError(
            f"the examples of {first.name} have the one field {fields[0]!r}; languages can be "
            "crossed between two or more"
        )
    found = {(a, b): _crossed(run, sources[a], sources[b]) for a in sources for b in sources}
    scores = next(answers.scores for _, answers in found.values())
    return CrossedTable(
        **facts,
        fields=fields,
        langs=list(sources),
        cells={pair: cell for pair, (cell, _) in found.items()},
        predictions={pair: answers.predictions for pair, (_, answers) in found.items()},
        classes=tuple(scores.to_json().get("per_class", ())),
    )


def _opened(
    folder: Path, store: FeatureStore, split: str, langs: Sequence[str], how: Scoring
) -> tuple[TrainedRun, dict[str, Source], dict[str, Any]]:
    """The run, its labelled languages, and common facts of a `LanguageTable`."""
    run = load_run(folder).on(store, how.get("dataset"), how.get("parser"))
    run = run.scored_by(how.get("rules"))
    any_parser = how.get("any_parser", False)
    sources = open_languages(store, run, split, langs, any_parser=any_parser)
    for source in sources.values():
        check_labelled(source, run.recipe, split)
    facts = {
        "dataset": run.recipe.data.dataset,
        "split": split,
        "sources": tuple(run.requirements.parsers),
        "metric": next(iter(sources.values())).task.metric,
        "data": {lang: described(source) for lang, source in sources.items()},
        "rules": run.rules,
    }
    return run, sources, facts


def _crossed(run: TrainedRun, first: Source, second: Source) -> tuple[Cell, Answers]:
    from featurestore import CrossedDataset

    fields = first.dataset.card.fields
    crossed = CrossedDataset(first.dataset, second.dataset, fields[1:], differing="leave_out")
    # Answers are read, and compared, in the language that their field is in.
    local = [field_of(label, fields) for label in first.labels.values() if is_local(label)]
    answers = ask(run, second if any(local) else first, crossed)
    counts = (answers.scores.examples, len(crossed.unmatched), len(crossed.differing))
    return Cell(answers.scores.headline, *counts), answers


def write_table(scored: TransferTable | CrossedTable, folder: Path) -> Path:
    """Write a table as ``evaluation-SPLIT.json`` and ``.md``, a crossed one as ``crossed-SPLIT``.

    The predictions of each language, or pair, lie beside it. The name of a dataset that the run was
    not trained on comes before the split's. Gives the JSON file.
    """
    part = part_name(folder, scored.dataset, scored.split)
    if isinstance(scored, TransferTable):
        path = folder / f"evaluation-{part}.json"
        for lang, predictions in scored.predictions.items():
            write_predictions(predictions, predictions_file(folder, part, lang))
    else:
        path = folder / f"crossed-{part}.json"
        for pair, predictions in scored.predictions.items():
            file = predictions_file(folder, f"crossed-{part}", pair_name(*pair))
            write_predictions(predictions, file)
    write_json(path, scored.to_json())
    path.with_suffix(".md").write_text(scored.markdown(), "utf-8")
    return path
