"""One recipe trained on the trees of several parsers: how much the quality of parses matters.

Source: Gessler's dissertation on MicroBERT, RQ3; Zhang et al. (2020, "SG-Net"), section 7.6, for
parses with noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from featurestore.reports.noise import add_noise, noisy_parser
from syntax.errors import ParsebankError, SpecError
from syntax.lists import ParserChoice, listed
from syntax.trees.noise import Noise
from trainer.environment import require_training
from trainer.evaluation.compare import EVERY, HEADER, Line, compare_systems, read_system
from trainer.evaluation.tables import MEAN, SeedScores
from trainer.options import DataOptions, Recipe
from trainer.options.settings import raise_all
from trainer.results import FinishedRun, table, write_json
from trainer.stored import stored_part
from trainer.studies.grid import Point, points_of
from trainer.studies.runs import (
    Training,
    cells_of,
    languages_in,
    mean_cell,
    score_missing,
    shown,
    train_missing,
)

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore

_TESTS: Final = HEADER.index("A - B")
"""First of the cells of a `Line` that are about a difference."""


@dataclass(frozen=True, slots=True)
class ParserRow:
    """The runs on one parser's trees.

    Attributes:
        las: By its model's card, running text of the test set; None where the store knows none.
        examples: Number of training examples: parsers drop different ones.
        scores: By language, and their mean if there are several.
        difference: From the first parser, over all languages; None of the first itself, and where
            there is no test.
    """

    parser: str
    folder: str
    las: float | None
    examples: int
    scores: Mapping[str, SeedScores]
    difference: Line | None

    def to_json(self) -> dict[str, Any]:
        return {
            "parser": self.parser,
            "folder": self.folder,
            "las": self.las,
            "examples": self.examples,
            "scores": {lang: cell.scores for lang, cell in self.scores.items()},
            "difference": self.difference and self.difference.to_json(),
        }


@dataclass(frozen=True, slots=True)
class ParserStudy:
    """The outcome of a study of parsers.

    Attributes:
        columns: Languages, and `MEAN` if there are several.
        notes: What is missing, and why.
    """

    recipe: str
    dataset: str
    metric: str
    split: str
    columns: Sequence[str]
    parsers: Sequence[ParserRow]
    notes: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe,
            "dataset": self.dataset,
            "metric": self.metric,
            "split": self.split,
            "parsers": [row.to_json() for row in self.parsers],
            "notes": list(self.notes),
        }

    def title(self) -> str:
        return f"{self.recipe} on {self.dataset}, {self.split}: {self.metric}"

    def header(self) -> tuple[str, ...]:
        return ("parser", "LAS", "examples", *self.columns, "- first", *HEADER[_TESTS + 1 :])

    def rows(self) -> list[tuple[str, ...]]:
        untested = ("",) * (len(HEADER) - _TESTS)
        return [
            (
                row.parser,
                "–" if row.las is None else f"{row.las:.2f}",
                str(row.examples),
                *(shown(row.scores.get(column)) for column in self.columns),
                *(row.difference.cells()[_TESTS:] if row.difference else untested),
            )
            for row in self.parsers
        ]

    def markdown(self) -> str:
        notes = "\n".join(f"* {note}" for note in self.notes)
        lines = table(self.header(), self.rows())
        return "\n\n".join(filter(None, [f"# {self.title()}", lines, notes])) + "\n"


def parser_study(
    recipe: Recipe,
    parsers: Sequence[str],
    seeds: Sequence[int],
    store: FeatureStore,
    folder: Path,
    split: str = "test",
    langs: Sequence[str] = (),
    noise: Sequence[float] = (),
    **how: Unpack[Training],
) -> ParserStudy:
    """Train a recipe on the trees of each parser with each seed, and compare all with the first.

    A parser is a value of ``data.parser``. Each share of ``noise`` adds one: the first with this
    share of heads replaced, stored in the same dataset. Languages to score are by default those of
    training. Options are those of `Training`. Writes ``parsers.json`` and ``parsers.md``.
    """
    require_training()
    if not parsers:
        raise SpecError("a study of parsers needs one or more; name them as `parser=NAME`")
    data = recipe.data
    langs = languages_in(store, recipe, langs or _languages(data.lang), split)
    clean = points_of(recipe, [_setting(parsers)], folder)
    _check_split(store, clean, split, langs)
    splits = (data.train_split, data.dev_split, split)
    noisy = [_add_noise(store, clean[0].recipe.data, splits, Noise(share)) for share in noise]
    points = [*clean, *(points_of(recipe, [_setting(noisy)], folder) if noisy else ())]
    failed = train_missing(points, seeds, store, **how)
    score_missing(points, seeds, store, split, langs, **how)
    notes = [f"{one}: {reason}" for one, reason in failed.items()]
    rows = []
    for point in points:
        scores = cells_of(point, seeds, split, langs)
        if len(langs) > 1 and len(scores) == len(langs):
            scores[MEAN] = mean_cell(list(scores.values()))
        part = stored_part(store, point.recipe.data, data.train_split, data.lang)
        tested = _tested(point, points[0], seeds, split, langs, notes)
        name = str(point.recipe.data.parser)
        rows.append(ParserRow(name, str(point.folder), _las(part), len(part), scores, tested))
    done = [run for point in points for run in map(point.run, seeds) if run.is_done()]
    if not done:
        raise SpecError("\n  ".join(["every run failed, so there is no table:", *notes]))
    metric = FinishedRun.read(done[0].folder).metric
    columns = [*langs, *([MEAN] if len(langs) > 1 else [])]
    found = ParserStudy(recipe.name, data.dataset, metric, split, columns, rows, notes)
    write_json(folder / "parsers.json", found.to_json())
    (folder / "parsers.md").write_text(found.markdown(), "utf-8")
    return found


def each_language(parsers: Mapping[str, str]) -> str:
    """A value of ``data.parser``: the one parser of all languages, or that of each."""
    several = len(set(parsers.values())) > 1
    return str(ParserChoice(parsers)) if several else next(iter(parsers.values()))


def _languages(lang: str) -> Sequence[str]:
    return () if lang == "*" else listed(lang)


def _setting(parsers: Iterable[str]) -> str:
    """One setting of several parsers, each of which may have commas."""
    return "data.parser=" + ",".join(f'"{parser}"' for parser in parsers)


def _add_noise(store: FeatureStore, data: DataOptions, splits: Iterable[str], noise: Noise) -> str:
    """Store a parser's trees with noise in their dataset; gives the name of what parsed them."""
    names: dict[str, str] = {}
    for split in dict.fromkeys(splits):
        named = partial(store.dataset, data.dataset, data.tokenizer, split, parser=data.parser)
        whole = named()
        add_noise(store, whole, noise, whole.name)
        for lang in whole.langs:
            (parser,) = named(lang=lang).parsers
            made = noisy_parser(store, parser, noise)
            names[lang] = str(store.fingerprints.resolve(made)["name"])
    return each_language(names)


def _check_split(
    store: FeatureStore, points: Iterable[Point], split: str, langs: Iterable[str]
) -> None:
    """Refuse a split that one of the parsers has not parsed, before anything is trained."""
    faults: dict[str, ParsebankError] = {}
    for point in points:
        for lang in langs:
            try:
                stored_part(store, point.recipe.data, split, lang)
            except ParsebankError as error:
                faults.setdefault(error.message, error)
    raise_all(list(faults.values()))


def _las(part: FeatureDataset) -> float | None:
    """LAS that the store knows of a parser; None of several."""
    known = [described.get("las") for described in part.parsers.values()]
    return float(known[0]) if len(known) == 1 and known[0] is not None else None


def _tested(
    point: Point,
    first: Point,
    seeds: Sequence[int],
    split: str,
    langs: Sequence[str],
    notes: list[str],
) -> Line | None:
    """Difference from the first point over all languages, by the seeds that both have."""
    if point is first:
        return None
    runs = [(point.run(seed), first.run(seed)) for seed in dict.fromkeys(seeds)]
    both = [pair for pair in runs if all(run.is_done() for run in pair)]
    if not both:
        notes.append(f"{point.name} is not compared with {first.name}: they share no seed")
        return None
    if len(both) < len(runs):
        listed_seeds = ", ".join(str(run.seed) for run, _ in both)
        notes.append(f"{point.name} is compared on the seeds {listed_seeds} alone")
    try:
        ours, theirs = (
            read_system({f"seed{pair[side].seed}": pair[side].folder for pair in both}, split)
            for side in (0, 1)
        )
        kept = {lang: of for lang, of in ours.languages.items() if lang in langs}
        lines = compare_systems(replace(ours, languages=kept), theirs)
    except ParsebankError as error:
        notes.append(f"{point.name} is not compared with {first.name}: {error.message}")
        return None
    return next(line for line in lines if line.lang == EVERY or len(lines) == 1)
