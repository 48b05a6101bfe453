"""A row of the reproduction page. Nothing here imports torch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from syntax.errors import SpecError

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
        """The 95 % interval of the mean, by Student's t over seeds; None of one seed."""
        from scipy import stats  # takes a fifth of a second to import

        if self.deviation is None:
            return None
        count = len(self.values)
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
    """Outcome of a trial; ``holds`` is None where the rule cannot decide yet."""

    figures: Sequence[Figure]
    holds: bool | None
    notes: tuple[str, ...] = ()
    listings: tuple[Listing, ...] = ()

    def verdict(self, reduced: bool) -> str:
        """The rule's answer; a reduced trial is only consistent with a claim, or not."""
        if self.holds is None:
            return "smaller trial: undecided" if reduced else "undecided"
        if reduced:
            return f"smaller trial: {'consistent' if self.holds else 'inconsistent'}"
        return "reproduced" if self.holds else "not reproduced"


@dataclass(frozen=True, slots=True)
class Row:
    """A published claim, and its test.

    Attributes:
        convention: Split, punctuation, subtypes: what exactly is scored.
        rule: The condition under which the claim holds, stated before anything runs.
        run: Gives the findings of a trial, and goes on where an earlier call was interrupted.
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
    reductions: Mapping[Size, str] = field(default_factory=dict)
    seeds: Mapping[Size, int] = field(default_factory=dict)
