"""Metrics, each a plain function of gold and predicted values; nothing here imports torch."""

from dataclasses import asdict
from typing import Any, cast


class NamedScores:
    """Base of scores that are a dataclass, whose number named ``metric`` is the headline."""

    __slots__ = ()

    metric: str

    @property
    def headline(self) -> float:
        """The number that models are selected on."""
        return cast(float, getattr(self, self.metric))

    def to_json(self) -> dict[str, Any]:
        return asdict(cast(Any, self))


def share(part: float, whole: float) -> float:
    """A part of a whole; 0 of nothing."""
    return part / whole if whole else 0.0
