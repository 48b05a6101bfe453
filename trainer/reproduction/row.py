"""A row of the reproduction page. Nothing here imports torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from syntax.errors import SpecError
from trainer.reproduction.judgement import Design, Floor, Kind

if TYPE_CHECKING:
    from trainer.reproduction.trial import Trial

Size = Literal["small", "full"]


def size_named(name: str) -> Size:
    for size in get_args(Size):
        if size == name:
            return cast("Size", size)
    raise SpecError(f"size {name!r} is unknown; it is one of {', '.join(get_args(Size))}")


@dataclass(frozen=True, slots=True)
class Source:
    """Data that a row needs: a path below the data folder, and its origin for those without it."""

    path: str
    origin: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, published (None if no paper has it), and ours, one of each seed."""

    name: str
    published: float | None
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of a sample; None of one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean, by Student's t over seeds; None of fewer than three."""
        from scipy import stats  # takes a fifth of a second to import

        count = len(self.values)
        if self.deviation is None or count < 3:
            return None
        half = float(stats.t.ppf(0.975, count - 1)) * self.deviation / math.sqrt(count)
        return self.mean - half, self.mean + half

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "published": self.published,
            "values": list(self.values),
            "mean": self.mean,
            "deviation": self.deviation,
            "interval_95": self.interval,
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of texts, for what figures cannot say."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """Outcome of a trial.

    Attributes:
        holds: Whether the rule's claim holds; None where the rule cannot decide yet.
        floors: Of the arms; where one is missed, nothing was tested.
    """

    figures: Sequence[Figure]
    holds: bool | None
    notes: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()
    floors: tuple[Floor, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A claim, and its test.

    Attributes:
        kind: A published claim; a check that data and code are what they should be; or a claim
            of ours.
        convention: Split, punctuation, subtypes: what exactly is scored.
        rule: The condition under which the claim holds, stated before anything runs.
        run: Gives the findings of a trial, and goes on where an earlier call was interrupted.
        effects: Names of the figures that are differences, the one of the rule first.
        design: The effect of interest of the first of them, and the spread of a pilot.
        code: Folders and files that decide the figures, beside what all rows share.
        reductions: By size, all that is left out of the published trial.
        seeds: Default number of seeds by size; empty where nothing is drawn.
    """

    name: str
    claim: str
    source: str
    convention: str
    rule: str
    data: tuple[Source, ...]
    run: Callable[[Trial], Findings]
    kind: Kind = "reproduction"
    effects: tuple[str, ...] = ()
    design: Design | None = None
    code: tuple[str, ...] = ()
    reductions: Mapping[Size, str] = field(default_factory=dict)
    seeds: Mapping[Size, int] = field(default_factory=dict)

    def reduced(self, size: Size) -> str:
        """The reductions of a size; `none` without any."""
        return self.reductions.get(size, "none")
