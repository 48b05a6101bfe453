"""Two systems on the same examples: differences, and whether they are more than chance.

Predictions are joined by the ids of examples; a system may be several runs that differ in their
seed, whose scores are averaged. Nothing here imports torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import stdev
from typing import Any, Final

import numpy as np

from syntax.errors import SpecError
from syntax.registry import unknown_name
from trainer.evaluation.predictions import (
    Prediction,
    pair_name,
    predictions_file,
    read_predictions,
)
from trainer.metrics.classification import CLASS_METRICS, class_counts
from trainer.metrics.significance import (
    Difference,
    Floats,
    McNemar,
    Metric,
    difference,
    mcnemar,
    ratio,
)
from trainer.metrics.translation import bleu, collins_sign_test
from trainer.results import read_json, table
from trainer.seeds import runs_of

EVERY: Final = "all"
"""Replaces a language: the mean over all of them."""

ById = Mapping[str, Prediction]


@dataclass(frozen=True, slots=True)
class System:
    """Predictions of a split by the runs of one system.

    Attributes:
        metric: Name of the headline metric.
        languages: Predictions by example, of each run in the order of ``seeds``, by language.
        seeds: Names of the runs, such as ``seed0``; ``""`` of a single one.
        classes: Their names, where classes are predicted.
    """

    dataset: str
    metric: str
    languages: Mapping[str, Sequence[ById]]
    seeds: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One metric in one language.

    Attributes:
        lang: The language, or `EVERY`.
        examples: Joined; over languages, an example and its translations are one.
        difference: Of scores that are means over seeds.
        seeds: Score of the first and of the second system, by seed.
        deviation: Sample standard deviation of the seeds' differences; 0 of one.
        mcnemar: McNemar's test of whole examples, by seed; none over several languages, in which
            the answers to one example depend on each other. Of BLEU, the sign test of sentences
            (`trainer.metrics.translation.collins_sign_test`).
    """

    lang: str
    metric: str
    examples: int
    difference: Difference
    seeds: Mapping[str, tuple[float, float]]
    deviation: float
    mcnemar: Mapping[str, McNemar]

    def to_json(self) -> dict[str, Any]:
        numbers = {**asdict(self.difference), "difference": self.difference.difference}
        return {**asdict(self), **numbers}

    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of `HEADER`."""
        found = self.difference
        spread = f" ± {self.deviation:.4f}" if len(self.seeds) > 1 else ""
        tests = ", ".join(f"{test.p:.3g}" for test in self.mcnemar.values())
        return (
            self.lang,
            str(self.examples),
            *(f"{score:.4f}" for score in (found.one, found.other)),
            f"{found.difference:+.4f}{spread}",
            f"{found.low:+.3f} {found.high:+.3f}",
            *(f"{p:.3g}" for p in (found.bootstrap, found.permutation)),
            "-" if found.t_test is None else f"{found.t_test:.3g}",
            tests or "-",
        )


HEADER: Final = ("", "n", "A", "B", "A - B", "95%", "p boot", "p perm", "p t", "p McN")


@dataclass(frozen=True, slots=True)
class Comparison:
    """All lines, and what was left out of them.

    Attributes:
        one, other: The folders that were compared.
        lines: By language, then over all of them.
        left_out: By language, how many examples were not compared, by reason.
        languages_of_one: Languages that only one of them has.
        crossed: True if the languages are pairs (`trainer.evaluation.predictions.pair_name`).
    """

    one: str
    other: str
    dataset: str
    split: str
    lines: Sequence[Line]
    left_out: Mapping[str, Mapping[str, int]]
    languages_of_one: Sequence[str]
    crossed: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "lines": [line.to_json() for line in self.lines]}

    def grids(self) -> dict[str, list[tuple[str, ...]]]:
        """Differences of crossed transfer by metric, as Tables 12 and 13 of Ahmad et al. (2021).

        The first row has the languages of the other fields; each further row is a language of the
        first. Stars are of approximate randomisation, as in `trainer.evaluation.typeset`.
        """
        found: dict[str, dict[str, str]] = {}
        for line in self.lines:
            shown = f"{line.difference.difference:+.4f}{stars(line.difference)}"
            found.setdefault(line.metric, {})[line.lang] = shown
        grids = {}
        for metric, cells in found.items():
            pairs = [name.split("+") for name in cells if name != EVERY]
            firsts, others = (sorted({pair[side] for pair in pairs}) for side in (0, 1))
            rows = [(a, *(cells.get(pair_name(a, b), "–") for b in others)) for a in firsts]
            grids[metric] = [(f"A - B, {metric}", *others), *rows]
        return grids

    def markdown(self) -> str:
        rows = [(line.metric, *line.cells()) for line in self.lines]
        grids = self.grids().values() if self.crossed else ()
        head = f"# {self.dataset}, {self.split}\n\nA is `{self.one}`, B is `{self.other}`."
        tables = [table(first, rest).replace("*", r"\*") for first, *rest in grids]
        return "\n\n".join([head, *tables, table(("metric", *HEADER), rows)]) + "\n"


def stars(found: Difference) -> str:
    """Stars of approximate randomisation: one for p < 0.05, two for p < 0.01."""
    return "**" if found.permutation < 0.01 else "*" if found.permutation < 0.05 else ""


def compare(
    one: Path,
    other: Path,
    split: str,
    metrics: Sequence[str] = (),
    *,
    crossed: bool = False,
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compare two runs, or two folders of runs that differ in their seed.

    ``parsebank evaluate`` has been in both. Metrics are those of the predictions' shares, or
    `CLASS_METRICS` for classes; the headline by default. ``crossed`` compares what ``evaluate
    --crossed`` wrote: each pair of languages is a language of its own.
    """
    ours, theirs = (read_system(runs_of(folder), split, crossed) for folder in (one, other))
    lines = compare_systems(ours, theirs, metrics, resamples=resamples, seed=seed)
    langs = sorted(ours.languages.keys() & theirs.languages.keys())
    left_out = {
        lang: count_left_out(ours.languages[lang], theirs.languages[lang]) for lang in langs
    }
    only = sorted(ours.languages.keys() ^ theirs.languages.keys())
    return Comparison(str(one), str(other), ours.dataset, split, lines, left_out, only, crossed)


def compare_systems(
    ours: System, theirs: System, metrics: Sequence[str] = (), **options: int
) -> list[Line]:
    """Compare two systems of the same seeds in each language that both have, and over all of these.

    Metrics are as in `compare`; options are ``resamples`` and ``seed`` of each test.
    """
    check_same(ours, theirs, not metrics)
    langs = sorted(ours.languages.keys() & theirs.languages.keys())
    joined = {
        lang: common_predictions(ours.languages[lang], theirs.languages[lang], lang)
        for lang in langs
    }
    parts: list[Part] = [{lang: runs} for lang, runs in joined.items()]
    if len(joined) > 1:
        parts.append(joined)
    return [
        _line(part, metric, ours, options) for metric in metrics or (ours.metric,) for part in parts
    ]


def read_system(runs: Mapping[str, Path], split: str, crossed: bool = False) -> System:
    """The predictions of the runs of one system, by a name such as ``seed0``.

    With ``crossed`` a language is a pair of them.
    """
    scored, part = [], f"crossed-{split}" if crossed else split
    for run in runs.values():
        command = f"parsebank evaluate {run} --split {split}{' --crossed' * crossed}"
        absent = f"{run} has no predictions of {part}; run: {command}"
        found = read_json(run / f"{'' if crossed else 'evaluation-'}{part}.json", absent)
        if crossed:
            pairs = [pair_name(a, b) for a, row in found["pairs"].items() for b in row]
            if not all(predictions_file(run, part, pair).exists() for pair in pairs):
                raise SpecError(absent)
            classes = dict.fromkeys(found["classes"])
            found["languages"] = {pair: {"per_class": classes} for pair in pairs}
        scored.append(found)
    if len({(one["dataset"], one["metric"]) for one in scored}) > 1:
        raise SpecError(
            f"the runs {', '.join(map(str, runs.values()))} are not of one dataset and metric"
        )
    langs = set.intersection(*(set(one["languages"]) for one in scored))
    languages = {
        lang: [_by_id(predictions_file(run, part, lang)) for run in runs.values()]
        for lang in sorted(langs)
    }
    classes = next(iter(scored[0]["languages"].values())).get("per_class", ())
    first = scored[0]
    return System(first["dataset"], first["metric"], languages, tuple(runs), tuple(classes))


def _by_id(path: Path) -> ById:
    found = read_predictions(path)
    counts = Counter(one.example_id for one in found)
    if len(counts) < len(found):
        name, count = counts.most_common(1)[0]
        raise SpecError(
            f"{path} has {count} predictions of the example {name!r}, such as of its sentences; "
            "examples that were scored in parts cannot be joined"
        )
    return {one.example_id: one for one in found}


def check_same(ours: System, theirs: System, metric: bool) -> None:
    for what, one, other in (
        ("dataset", ours.dataset, theirs.dataset),
        ("classes", ours.classes, theirs.classes),
        ("seeds", ours.seeds, theirs.seeds),
        ("metric", metric and ours.metric, metric and theirs.metric),
    ):
        if one != other:
            raise SpecError(
                f"the first runs are of the {what} {one!r}, and the second of {other!r}; only "
                "systems that differ in nothing else can be compared"
            )
    if not ours.languages.keys() & theirs.languages.keys():
        raise SpecError(
            f"the first runs predicted {', '.join(ours.languages)}, and the second "
            f"{', '.join(theirs.languages)}; they share no language"
        )


def common_predictions(
    ours: Sequence[ById], theirs: Sequence[ById], lang: str
) -> list[list[Prediction]]:
    """The predictions of all runs, first the first system's, of the examples that all have."""
    runs = [*ours, *theirs]
    common = [name for name, one in runs[0].items() if one.gold is not None]
    common = [name for name in common if all(name in run and run[name].shares for run in runs)]
    for name in common:
        golds = [run[name].gold for run in runs]
        if any(gold != golds[0] for gold in golds):
            raise SpecError(
                f"the {lang} example {name!r} has the label {golds[0]!r} in one run and another "
                "elsewhere; the runs were scored on different data",
                example_id=name,
            )
    if len(common) < 2:
        raise SpecError(
            f"in {lang} the runs share {len(common)} examples with a label; a test needs two or "
            "more. Are they of the same data?"
        )
    return [[run[name] for name in common] for run in runs]


def count_left_out(ours: Sequence[ById], theirs: Sequence[ById]) -> dict[str, int]:
    sides = [set.intersection(*(set(run) for run in runs)) for runs in (ours, theirs)]
    every = set().union(*ours, *theirs)
    both = [[run[name] for run in (*ours, *theirs)] for name in sides[0] & sides[1]]
    unlabelled = sum(one[0].gold is None for one in both)
    unscored = sum(not all(of_run.shares for of_run in one) for one in both)
    counts = {
        "only_in_one": len(sides[0] - sides[1]),
        "only_in_other": len(sides[1] - sides[0]),
        "not_in_every_seed": len(every - sides[0] - sides[1]),
        "without_label": unlabelled,
        "not_scored": unscored - unlabelled,
    }
    return {reason: count for reason, count in counts.items() if count}


Part = Mapping[str, list[list[Prediction]]]


def _line(part: Part, metric: str, system: System, options: Mapping[str, Any]) -> Line:
    shares = _shares(part, metric, system.classes)
    score = metric_of(metric, shares.shape[-1])
    rows, seeds = len(shares), system.seeds
    # A score is a mean over seeds and languages alike.
    one, other = (side.reshape(rows, -1, shares.shape[-1]) for side in np.split(shares, 2, axis=1))
    by_seed = score(shares.sum(0)).mean(1).reshape(2, len(seeds))
    pairs = {seed: (float(a), float(b)) for seed, a, b in zip(seeds, *by_seed, strict=True)}
    gaps = [a - b for a, b in pairs.values()]
    return Line(
        lang=next(iter(part)) if len(part) == 1 else EVERY,
        metric=metric,
        examples=rows,
        difference=difference(one, other, score, **options),
        seeds=pairs,
        deviation=stdev(gaps) if len(gaps) > 1 else 0.0,
        mcnemar=_sign_tests(part, metric, shares, seeds),
    )


def metric_of(name: str, numbers: int) -> Metric:
    """A function from sums to a score; an example adds two numbers, or three of each class."""
    if name == "bleu":
        return bleu
    return ratio if numbers == 2 else CLASS_METRICS[name]


def _sign_tests(
    part: Part, metric: str, shares: Floats, seeds: Sequence[str]
) -> dict[str, McNemar]:
    """Tests by seed, in a single language."""
    if len(part) > 1:
        return {}
    if metric != "bleu":
        right = [[bool(one.right) for one in run] for run in next(iter(part.values()))]
        pairs = zip(seeds, right[: len(seeds)], right[len(seeds) :], strict=True)
        return {seed: mcnemar(ours, theirs) for seed, ours, theirs in pairs}
    ours, theirs = np.split(shares[:, :, 0], 2, axis=1)
    return {seed: collins_sign_test(ours[:, at], theirs[:, at]) for at, seed in enumerate(seeds)}


def _shares(part: Part, metric: str, classes: Sequence[str]) -> Floats:
    """Shares of each example in every run and language; 0 in one that does not have it.

    *Shape:* (examples, runs, languages, numbers).
    """
    names = {one.example_id: None for runs in part.values() for one in runs[0]}
    places = {name: at for at, name in enumerate(names)}
    added = [added_shares(runs, metric, classes) for runs in part.values()]
    shares = np.zeros((len(places), added[0].shape[1], len(part), added[0].shape[2]))
    for column, (runs, of_lang) in enumerate(zip(part.values(), added, strict=True)):
        shares[[places[one.example_id] for one in runs[0]], :, column] = of_lang
    return shares


def added_shares(runs: list[list[Prediction]], metric: str, classes: Sequence[str]) -> Floats:
    """Shares of each example in one language. *Shape:* (examples, runs, numbers)."""
    every = [one for run in runs for one in run]
    ids = {name: at for at, name in enumerate(classes)}
    of_classes = all(str(side) in ids for one in every for side in (one.gold, one.predicted))
    known = dict.fromkeys([*runs[0][0].shares, *(CLASS_METRICS if of_classes else ())])
    if metric not in known:
        raise unknown_name("metric of these predictions", metric, known)
    if metric not in runs[0][0].shares:
        gold = np.array([[ids[one.gold] for one in run] for run in runs]).T
        predicted = np.array([[ids[one.predicted] for one in run] for run in runs]).T
        return class_counts(gold, predicted, len(classes))
    return np.array([[one.shares[metric] for one in run] for run in runs]).swapaxes(0, 1)
