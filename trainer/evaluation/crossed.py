"""A trained model on pairs whose halves are in two languages: generalised transfer.

Each pair of languages gives a score: the first field, such as the premise or the question, is in
one language, and the other fields in another (Lewis et al. 2020 for questions; Ahmad et al. 2021
for sentence pairs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from syntax.errors import SpecError
from syntax.labels import field_of, is_local
from trainer.data import Source
from trainer.evaluation.evaluate import check_labelled
from trainer.evaluation.trained import TrainedRun, ask, described, load_run, open_languages
from trainer.metrics.answers import Rules, rules_text
from trainer.results import part_name, table, write_json

if TYPE_CHECKING:
    from featurestore import FeatureStore

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """The outcome for one ordered pair of languages.

    Attributes:
        score: The headline metric.
        examples: Examples scored.
        unmatched: Examples of the first language that the second does not have.
        differing: Examples left out because their labels differ between the two.
    """

    score: float
    examples: int
    unmatched: int
    differing: int


@dataclass(frozen=True, slots=True)
class CrossedTable:
    """Scores of one model by language of the first field and of the others.

    Attributes:
        dataset, split: What was scored.
        fields: Names of the fields; the first is in the pair's first language.
        sources: The languages trained on.
        metric: Name of the headline metric.
        langs: The languages.
        cells: By ordered pair.
        data: By language, what the scores were computed from.
        rules: How answers were compared; None of other tasks.
    """

    dataset: str
    split: str
    fields: Sequence[str]
    sources: Sequence[str]
    metric: str
    langs: Sequence[str]
    cells: Mapping[Pair, Cell]
    data: Mapping[str, Mapping[str, Any]]
    rules: Rules | None = None

    @property
    def mean_within(self) -> float:
        """Mean score of pairs in one language."""
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
        pairs = {
            a: {b: _cell_json(self.cells[a, b], self.metric) for b in self.langs}
            for a in self.langs
        }
        return {
            "dataset": self.dataset,
            "split": self.split,
            "fields": list(self.fields),
            "sources": list(self.sources),
            "metric": self.metric,
            **({} if self.rules is None else {"rules": self.rules}),
            **self.summary(),
            "pairs": pairs,
            "data": self.data,
        }

    def title(self) -> str:
        """What was scored, and by which metric."""
        return f"{self.dataset}, {self.split}: {self.metric}"

    def header(self) -> tuple[str, ...]:
        """Names of the columns of `rows`."""
        return (f"{self.fields[0]} / others", *self.langs)

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each language of the first field, a column for each of the others."""
        return [(a, *(f"{self.cells[a, b].score:.4f}" for b in self.langs)) for a in self.langs]

    def markdown(self) -> str:
        """The same for people."""
        header = (f"{self.fields[0]} \\ {', '.join(self.fields[1:])}", *self.langs)
        means = [(name.replace("_", " "), f"{mean:.4f}") for name, mean in self.summary().items()]
        parts = [f"# {self.dataset}, {self.split}: {self.metric}", rules_text(self.rules).strip()]
        parts += [table(header, self.rows()), table(("", ""), means)]
        return "\n\n".join(filter(None, parts)) + "\n"


def evaluate_crossed(
    folder: Path,
    store: FeatureStore,
    split: str = "test",
    langs: Sequence[str] = (),
    *,
    any_parser: bool = False,
    dataset: str | None = None,
    rules: Rules | None = None,
    parser: str | Iterable[str] | None = None,
) -> CrossedTable:
    """Score the model of a run on all ordered pairs of languages.

    Examples are joined by their ids; those without a partner, or with another label there, are
    left out and counted.

    Args:
        folder: Output of the run.
        store: Where the data lie; the newest version of the dataset is read.
        split: Which split.
        langs: Which languages, as ``["en", "fr"]`` or ``"en,fr"``; every one that the split has
            by default.
        any_parser: Accept other parsers for the language that the model was trained on.
        dataset: Another dataset of the same fields and classes.
        rules: As `trainer.evaluation.transfer.evaluate_run` takes them.
        parser: Whose parses are read, as `TrainedRun.on` takes it.

    Raises:
        SpecError: The examples have one field; or as `trainer.evaluation.transfer.evaluate_run`.
    """
    run = load_run(folder).on(store, dataset, parser).scored_by(rules)
    sources = open_languages(store, run, split, langs, any_parser=any_parser)
    first = next(iter(sources.values()))
    if len(first.dataset.card.fields) < 2:
        raise SpecError(
            f"the examples of {first.dataset.name} have the one field "
            f"{first.dataset.card.fields[0]!r}; languages can be crossed between two or more"
        )
    for source in sources.values():
        check_labelled(source, run.recipe, split)
    return CrossedTable(
        dataset=run.recipe.data.dataset,
        split=split,
        fields=first.dataset.card.fields,
        sources=tuple(run.requirements.parsers),
        metric=first.task.metric,
        langs=list(sources),
        cells={(a, b): _cell(run, sources[a], sources[b]) for a in sources for b in sources},
        data={lang: described(source) for lang, source in sources.items()},
        rules=run.rules,
    )


def write_crossed(crossed: CrossedTable, folder: Path) -> Path:
    """Write ``crossed-SPLIT.json`` and ``.md``.

    Returns:
        The JSON file.
    """
    path = folder / f"crossed-{part_name(folder, crossed.dataset, crossed.split)}.json"
    write_json(path, crossed.to_json())
    path.with_suffix(".md").write_text(crossed.markdown(), "utf-8")
    return path


def _cell(run: TrainedRun, first: Source, second: Source) -> Cell:
    from featurestore import CrossedDataset

    fields = first.dataset.card.fields
    crossed = CrossedDataset(first.dataset, second.dataset, fields[1:], differing="leave_out")
    # Answers are read, and compared, in the language that their field is in.
    local = [field_of(label, fields) for label in first.labels.values() if is_local(label)]
    scores = ask(run, second if any(local) else first, crossed).scores
    return Cell(scores.headline, scores.examples, len(crossed.unmatched), len(crossed.differing))


def _cell_json(cell: Cell, metric: str) -> dict[str, Any]:
    return {
        metric: cell.score,
        "examples": cell.examples,
        "unmatched": cell.unmatched,
        "differing": cell.differing,
    }
