"""A trained model over languages: zero-shot transfer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from trainer.evaluation.evaluate import check_labelled
from trainer.evaluation.predictions import Prediction, predictions_file, write_predictions
from trainer.evaluation.trained import ask, described, load_run, open_languages
from trainer.metrics.answers import Rules, rules_text
from trainer.results import group_rows, part_name, table, write_json
from trainer.tasks import Scores

if TYPE_CHECKING:
    from featurestore import FeatureStore


@dataclass(frozen=True, slots=True)
class TransferTable:
    """Scores by language of one model, trained on one of them or some.

    Attributes:
        dataset, split: What was scored.
        sources: The languages trained on.
        metric: Name of the headline metric.
        scores: By language.
        data: By language, what the scores were computed from: version, parsers, fingerprints.
        predictions: By language, of each example.
        rules: How answers were compared; None of other tasks.
    """

    dataset: str
    split: str
    sources: Sequence[str]
    metric: str
    scores: Mapping[str, Scores]
    data: Mapping[str, Mapping[str, Any]]
    predictions: Mapping[str, Sequence[Prediction]]
    rules: Rules | None = None

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
        """Every number by name."""
        languages = {
            lang: {**scores.to_json(), "data": self.data[lang]}
            for lang, scores in self.scores.items()
        }
        return {
            "dataset": self.dataset,
            "split": self.split,
            "sources": list(self.sources),
            "metric": self.metric,
            **({} if self.rules is None else {"rules": self.rules}),
            "mean_of_targets": self.mean_of_targets,
            "transfer_gap": self.gap,
            "languages": languages,
        }

    def title(self) -> str:
        """What was scored."""
        return f"{self.dataset}, {self.split}"

    def header(self) -> tuple[str, ...]:
        """Names of the columns of `rows`."""
        return ("language", "examples", self.metric)

    def rows(self) -> list[tuple[str, str, str]]:
        """Language, examples and score, as text, sources first; then mean and gap.

        Groups of examples, where the task has some, come after their language.
        """
        order = sorted(self.scores, key=lambda lang: (lang not in self.sources, lang))
        rows = [row for lang in order for row in self._rows_of(lang)]
        summary = {"mean of targets": self.mean_of_targets, "transfer gap": self.gap}
        known = {name: value for name, value in summary.items() if value is not None}
        return rows + [(name, "", f"{value:.4f}") for name, value in known.items()]

    def _rows_of(self, lang: str) -> list[tuple[str, str, str]]:
        scores = self.scores[lang]
        groups = group_rows(scores.to_json().get("per_group", {}))
        row = (lang, str(scores.examples), f"{scores.headline:.4f}")
        return [row, *((f"{lang}, {name}", count, right) for name, count, right in groups)]

    def markdown(self) -> str:
        """The same for people."""
        shown = table(self.header(), self.rows())
        trained = f"Trained on {', '.join(self.sources)}.{rules_text(self.rules)}"
        return f"# {self.dataset}, {self.split}\n\n{trained}\n\n{shown}\n"


def evaluate_run(
    folder: Path,
    store: FeatureStore,
    split: str = "test",
    langs: Sequence[str] = (),
    *,
    any_parser: bool = False,
    dataset: str | None = None,
    rules: Rules | None = None,
    parser: str | Iterable[str] | None = None,
) -> TransferTable:
    """Score the model of a run on a stored split, in one language after the other.

    Args:
        folder: Output of the run.
        store: Where the data lie; the newest version of the dataset is read.
        split: Which split.
        langs: Which languages, as ``["en", "fr"]`` or ``"en,fr"``; every one that the split has
            by default.
        any_parser: Accept other parsers for the language that the model was trained on.
        dataset: Another dataset of the same fields and classes, such as ``xquad`` for a model
            that was trained on ``squad``.
        rules: How answers are compared; as the run says, or the dataset's own scorer, by default.
        parser: Whose parses are read, as `TrainedRun.on` takes it.

    Raises:
        SpecError: The data are of another tokenizer, parser or label set than the model's, or
            have no labels; or rules are given for a run that extracts no answers.
        UnknownDatasetError: The store has no such split or language.
        ModelLoadError: The run has no model.
    """
    run = load_run(folder).on(store, dataset, parser).scored_by(rules)
    sources = open_languages(store, run, split, langs, any_parser=any_parser)
    for source in sources.values():
        check_labelled(source, run.recipe, split)
    answers = {lang: ask(run, source) for lang, source in sources.items()}
    return TransferTable(
        dataset=run.recipe.data.dataset,
        split=split,
        sources=tuple(run.requirements.parsers),
        metric=next(iter(sources.values())).task.metric,
        scores={lang: found.scores for lang, found in answers.items()},
        data={lang: described(source) for lang, source in sources.items()},
        predictions={lang: found.predictions for lang, found in answers.items()},
        rules=run.rules,
    )


def write_transfer(transfer: TransferTable, folder: Path) -> Path:
    """Write ``evaluation-SPLIT.json`` and ``.md``, and the predictions of each language.

    The name of a dataset that the run was not trained on comes before the split's.

    Returns:
        The JSON file.
    """
    part = part_name(folder, transfer.dataset, transfer.split)
    path = folder / f"evaluation-{part}.json"
    write_json(path, transfer.to_json())
    path.with_suffix(".md").write_text(transfer.markdown(), "utf-8")
    for lang, predictions in transfer.predictions.items():
        write_predictions(predictions, predictions_file(folder, part, lang))
    return path
