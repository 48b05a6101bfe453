"""Scores of one run, or differences of two, by groups of examples, words or labels.

Scores come from the predictions on disk; the store has the trees by which they are grouped. Whole
examples are resampled, an example and its translations as one. Nothing here imports torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from syntax.errors import SpecError
from syntax.lists import listed
from syntax.registry import unknown_name
from trainer.evaluation.compare import (
    check_same,
    common_predictions,
    count_left_out,
    metric_of,
    read_system,
)
from trainer.evaluation.groupings import (
    GROUPINGS,
    Item,
    Key,
    Part,
    groupings_of,
    has_pairs,
    pairs,
)
from trainer.metrics.significance import Floats, Metric, difference, interval
from trainer.results import read_json, recipe_of
from trainer.seeds import runs_of
from trainer.stored import with_trees

if TYPE_CHECKING:
    from featurestore import FeatureStore, ParsedDataset
    from trainer.options import TaskOptions

Equal = Literal["count", "range"]
"""Bins of about as many items each, or of one width."""

Row: TypeAlias = Sequence[str | float | None]
Lines: TypeAlias = tuple[tuple[str, ...], list[Row]]
"""A header, and the rows below it."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score, and the bounds that hold 95 % of the bootstrap's; None of a single example."""

    score: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The scores of a group.

    Attributes:
        name: As tables show it, such as ``nsubj`` or ``5 to 9``.
        items: Examples, words or labels in it.
        examples: Those that the items are of; an example and its translations are one.
        gap: Of two systems, the first's score less the second's.
        p: Of the gap by the paired bootstrap, two-sided; None of a single example.
    """

    name: str
    items: int
    examples: int
    one: Score
    other: Score | None = None
    gap: Score | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Common part of what is told of one system, or of two.

    Attributes:
        one, other: The folders that were read; ``other`` is None of one system.
        left_out: What counts nowhere, in words, and how many.
    """

    one: str
    other: str | None
    dataset: str
    split: str
    left_out: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Findings):
    """Scores by group.

    Attributes:
        by: Name of the grouping.
        unit: What is grouped: ``examples``, ``words`` or ``labels``.
        is_number: True where groups are numbers, in their order.
    """

    by: str
    metric: str
    unit: str
    is_number: bool
    groups: Sequence[Group]

    @property
    def title(self) -> str:
        return f"{self.dataset}, {self.split}: {self.metric} by {self.by}"

    def numbers(self) -> Lines:
        """Every number; ``p`` is of the paired bootstrap."""
        sides = ("A", "A low", "A high", "B", "B low", "B high", "A - B", "low", "high", "p")
        header = (self.by, self.unit, "resampled", *sides[: 3 if self.other is None else 10])
        rows: list[Row] = []
        for group in self.groups:
            row: Row = (group.name, group.items, group.examples, *astuple(group.one))
            if group.other is not None and group.gap is not None:
                row = (*row, *astuple(group.other), *astuple(group.gap), group.p)
            rows.append(row)
        return header, rows

    def shown(self) -> Lines:
        """The table for people, with four digits."""
        sides = ("A", "95%", "B", "95%", "A - B", "95%", "p")
        header = (self.by, self.unit, *sides[: 2 if self.other is None else 7])
        rows: list[Row] = []
        for name, items, _, *numbers in self.numbers()[1]:
            cells: list[str | float | None] = [name, items]
            for at in range(0, len(numbers), 3):
                score, *bounds = (None if one is None else f"{one:.4f}" for one in numbers[at:][:3])
                cells += [score, *([" to ".join(filter(None, bounds))] if bounds else ())]
            rows.append(cells)
        return header, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion(Findings):
    """Counts of gold and predicted labels, summed over languages, and their mean over seeds.

    Attributes:
        counts: Rows gold, columns predicted; of two systems the first's less the second's.
    """

    labels: Sequence[str]
    counts: Sequence[Sequence[float]]

    @property
    def title(self) -> str:
        less = "" if self.other is None else ", A less B"
        return f"{self.dataset}, {self.split}: confusion{less}"

    def numbers(self) -> Lines:
        rows = zip(self.labels, self.counts, strict=True)
        return ("gold / predicted", *self.labels), [(name, *counts) for name, counts in rows]

    def shown(self) -> Lines:
        header, rows = self.numbers()
        return header, [(name, *(f"{count:g}" for count in counts)) for name, *counts in rows]


def analyse(
    one: Path,
    other: Path | None,
    by: str,
    store: FeatureStore,
    split: str = "test",
    metric: str | None = None,
    *,
    langs: Sequence[str] = (),
    field: str | None = None,
    bins: int | None = None,
    equal: Equal = "count",
    resamples: int = 2000,
    seed: int = 0,
) -> Analysis:
    """Score a run, or a folder of runs by seed, by the groups of one of `GROUPINGS`; or two such.

    ``parsebank evaluate`` has been in each. Scores are means over seeds; languages are pooled. The
    metric is the headline by default, F1 of labels. Numbers are put into as many ``bins``; without,
    each is a group. ``field`` names the text whose length counts.
    """
    read = _Joined(one, other, split, langs)
    offered = groupings_of(read.task)
    if by not in offered:
        raise unknown_name(f"grouping of predictions of {read.task.name}", by, offered)
    grouping = offered[by]
    for name, given, fits in (
        ("field", field, by == "length"),
        ("bins", bins, grouping.is_number),
    ):
        if given is not None and not fits:
            ways = ", ".join(way for way, has in GROUPINGS.items() if has.is_number)
            known = "length" if name == "field" else ways
            raise SpecError(f"`{name}={given}` goes with groups by {known}, and not by {by}")
    chosen = metric or grouping.metric or read.metric
    items: dict[Key, list[Item]] = {}
    for part in read.parts(store, field):
        for item in grouping.items(part, chosen):
            items.setdefault(item.key, []).append(item)
    left_out = Counter(read.left_out)
    if ungrouped := items.pop(None, []):
        left_out[f"{grouping.unit} {grouping.none}"] = len(ungrouped)
    groups = []
    for name, members in _named(items, bins, equal):
        added = _by_example(members)
        if added.shape[-1] == 2 and not added[..., 1].any():
            left_out[f"{grouping.unit} of groups in which {chosen} counts nothing"] += len(members)
            continue
        score = metric_of(chosen, added.shape[-1])
        sides = added.reshape(len(added), -1, len(read.seeds), added.shape[-1])
        groups.append(_group(name, len(members), sides, score, resamples=resamples, seed=seed))
    return Analysis(
        **read.facts(left_out),
        by=by,
        metric=chosen,
        unit=grouping.unit,
        is_number=grouping.is_number,
        groups=groups,
    )


def confusion(
    one: Path, other: Path | None, split: str = "test", langs: Sequence[str] = ()
) -> Confusion:
    """Count which labels the runs of one system take for which; or the first's less the second's.

    Labels are classes, tags of tokens, or universal relations of words, wherever their heads are.
    """
    read = _Joined(one, other, split, langs)
    if not has_pairs(read.task):
        raise SpecError(f"{read.task.name} predicts no labels, which a confusion matrix is of")
    counts: Counter[tuple[str, str]] = Counter()
    for runs in read.runs.values():
        for at, run in enumerate(runs):
            sign = -1 if at >= len(read.seeds) else 1
            for pair in (pair for answer in run for pair in pairs(answer, read.task)):
                counts[pair] += sign
    labels = sorted({label for pair in counts for label in pair})
    means = [[counts[gold, said] / len(read.seeds) for said in labels] for gold in labels]
    return Confusion(**read.facts(read.left_out), labels=labels, counts=means)


class _Joined:
    """The predictions of one system or of two, joined.

    Attributes:
        runs: By language, the predictions of each run for the same examples, first one system's.
        seeds: Names of the runs of a system.
    """

    def __init__(self, one: Path, other: Path | None, split: str, langs: Sequence[str]) -> None:
        self._folders, first = (one, other), next(iter(runs_of(one).values()))
        systems = [read_system(runs_of(path), split) for path in self._folders if path is not None]
        ours, theirs = systems[0], systems[-1]
        check_same(ours, theirs, metric=False)
        path = first / f"evaluation-{split}.json"
        self._scored, self._recipe = read_json(path, f"{path} is gone"), recipe_of(first)
        self.task: TaskOptions = self._recipe.task
        self.metric, self.seeds, self.classes = ours.metric, ours.seeds, ours.classes
        common = sorted(ours.languages.keys() & theirs.languages.keys())
        chosen = listed(langs) or common
        self.left_out: Counter[str] = Counter()
        self.runs = {}
        for lang in dict.fromkeys(chosen):
            if lang not in common:
                raise unknown_name("language of these predictions", lang, common)
            sides = ours.languages[lang], theirs.languages[lang] if other is not None else ()
            self.runs[lang] = common_predictions(*sides, lang)
            counts = count_left_out(ours.languages[lang], theirs.languages[lang])
            self.left_out.update({f"examples {x.replace('_', ' ')}": counts[x] for x in counts})
        if only := len(ours.languages.keys() ^ theirs.languages.keys()):
            self.left_out["languages that only one predicted"] = only

    def facts(self, left_out: Mapping[str, int]) -> dict[str, Any]:
        one, other = self._folders
        return {
            "one": str(one),
            "other": None if other is None else str(other),
            "dataset": self._scored["dataset"],
            "split": self._scored["split"],
            "left_out": dict(left_out),
        }

    def parts(self, store: FeatureStore, field: str | None) -> Iterator[Part]:
        def opened(lang: str) -> ParsedDataset:
            """The examples that the first run was scored on, with their parses."""
            data = self._scored["languages"][lang]["data"]
            parsers = list(data["parsers"])
            dataset = store.dataset(
                self._scored["dataset"],
                tokenizer=self._recipe.data.tokenizer,
                split=self._scored["split"],
                lang=lang,
                version=data["version"],
                parser=parsers[0] if len(parsers) == 1 else None,
            )
            return with_trees(store, dataset, self._recipe.data)

        for lang, runs in self.runs.items():
            yield Part(lang, runs, self.classes, self.task, field, opened)


def _named(
    items: Mapping[Key, list[Item]], bins: int | None, equal: Equal
) -> Iterator[tuple[str, list[Item]]]:
    """The groups in order, by name."""
    if bins is None:
        for key in sorted(items, key=lambda key: (key if isinstance(key, int) else 0, str(key))):
            yield str(key), items[key]
        return
    sizes = {key: len(found) for key, found in items.items() if isinstance(key, int)}
    for values in binned(sizes, bins, equal):
        name = f"{values[0]} to {values[-1]}" if len(values) > 1 else str(values[0])
        yield name, [*chain(*(items[value] for value in values))]


def binned(sizes: Mapping[int, int], bins: int, equal: Equal = "count") -> list[list[int]]:
    """Values in bins, by how often each occurs; a value is in one bin, and no bin is empty.

    Bins of equal count are as even as that allows; those of equal range divide the values from the
    least to the largest.

    >>> binned({1: 4, 2: 1, 3: 1, 9: 2}, 2), binned({1: 4, 2: 1, 3: 1, 9: 2}, 2, "range")
    ([[1], [2, 3, 9]], [[1, 2, 3], [9]])
    """
    found: dict[int, list[int]] = {}
    total, before = sum(sizes.values()), 0
    low, high = min(sizes, default=0), max(sizes, default=0)
    for value in sorted(sizes):
        part, whole = (before, total) if equal == "count" else (value - low, high - low + 1)
        found.setdefault(bins * part // whole, []).append(value)
        before += sizes[value]
    return list(found.values())


def _by_example(items: Sequence[Item]) -> Floats:
    """Sums of the shares of items by example. *Shape:* (N, runs, numbers)."""
    sums: dict[str, Any] = {}
    for item in items:
        sums[item.example] = sums.get(item.example, 0) + np.asarray(item.shares, float)
    return np.stack(list(sums.values()))


def _group(name: str, items: int, added: Floats, metric: Metric, **options: int) -> Group:
    """The scores of a group by what its examples add. *Shape:* (N, systems, seeds, K)."""
    is_tested = len(added) > 1
    scores = [
        Score(
            float(metric(side.sum(0)).mean()),
            *(interval(side, metric, **options) if is_tested else ()),
        )
        for side in added.swapaxes(0, 1)
    ]
    found = Group(name, items, len(added), scores[0])
    if len(scores) == 1:
        return found
    found = replace(found, other=scores[1], gap=Score(scores[0].score - scores[1].score))
    if not is_tested:
        return found
    test = difference(added[:, 0], added[:, 1], metric, **options)
    gap = Score(test.difference, test.low, test.high)
    return replace(found, gap=gap, p=test.bootstrap)
