"""Batches of several datasets in turn: by weight, by size, one in eight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Final, Literal

from featurestore.dataset.base import StreamedDataset
from featurestore.stream.iterator import FeatureStream
from featurestore.stream.options import StreamOptions, read_options
from syntax.batches.batch import Batch
from syntax.drawing.page import listing, plain
from syntax.errors import SpecError
from syntax.options import checked

Until = Literal["longest", "shortest"]

_PASS: Final = 2**32
"""Added to the epoch for each further pass over a dataset within one epoch of the mixture."""


@dataclass
class _Member:
    """One dataset of a mixture, and its position: batches given and passes finished."""

    data: StreamedDataset
    weight: float
    options: StreamOptions
    stream: FeatureStream
    taken: int = 0
    passes: int = 0

    def restart(self) -> None:
        self.stream.close()
        self.passes += 1
        self.stream = self._pass(self.passes)

    def moved(self, saved: Mapping[str, Any]) -> _Member:
        """The same dataset at a saved position; this one stays where it is."""
        stream = self._pass(saved["passes"])
        stream.load_state_dict(saved["stream"])
        return replace(self, stream=stream, taken=saved["taken"], passes=saved["passes"])

    def _pass(self, number: int) -> FeatureStream:
        order = self.options.order
        order = replace(order, epoch=order.epoch + number * _PASS)
        return FeatureStream(self.data, replace(self.options, order=order))


class FeatureMixture(Iterator[Batch]):
    """One epoch over several datasets, each batch from one of them (``batch["dataset"]``).

    Step ``k`` belongs to the dataset that is furthest behind its share of the first ``k + 1``
    steps, of several the first by name; so with weights 7 and 1 exactly every eighth batch is of
    the second. The order of datasets and weights has no effect. Every rank has the same dataset in
    the same step. No example is lost or repeated within a pass, on any world size.

    Args:
        datasets: By a name of your own.
        weights: Share of the batches of each dataset; they need not sum to 1.
        temperature: Instead of weights: shares proportional to (examples ** (1 / temperature)).
            1, the default, is by size; a large one gives equal shares.
        until: ``longest``: the epoch ends when each dataset has been passed through once, shorter
            ones several times in different orders; ``shortest``: when the first one is at its end.
        **options: As `StreamedDataset.stream`, for all of them.
    """

    def __init__(
        self,
        datasets: Mapping[str, StreamedDataset],
        weights: Mapping[str, float] | None = None,
        temperature: float | None = None,
        until: Until = "longest",
        **options: Any,
    ) -> None:
        checked("until", Until, until)
        shares = _shares(datasets, weights, temperature)
        self._until = until
        objects = (options.pop("assembly", None), options.pop("order", None))
        chosen = read_options(options, *objects)
        self._members = {
            name: _Member(data, shares[name], chosen, FeatureStream(data, chosen))
            for name, data in sorted(datasets.items())
        }
        for name, member in self._members.items():
            if not member.stream.remaining:
                raise SpecError(
                    f"{name} has {len(member.data)} examples, too few for a batch on each rank; "
                    "leave it out, make batches smaller, or set `drop_last=False`"
                )

    def __iter__(self) -> FeatureMixture:
        return self

    def __next__(self) -> Batch:
        while not self._is_over():
            name = self._turn()
            member = self._members[name]
            if batch := next(member.stream, None):
                member.taken += 1
                return Batch({**batch, "dataset": name})
            member.restart()
        raise StopIteration

    def __repr__(self) -> str:
        shares = {name: round(member.weight, 4) for name, member in self._members.items()}
        return plain("FeatureMixture", {"shares": shares, "until": self._until})

    def _repr_html_(self) -> str:
        rows = [
            (name, len(member.data), f"{member.weight:.4f}", member.taken, member.passes)
            for name, member in self._members.items()
        ]
        names = ("dataset", "examples", "share", "batches taken", "passes")
        return listing("FeatureMixture", names, rows)

    def state_dict(self) -> dict[str, Any]:
        """The position after the last batch given, as plain JSON; the same on every rank."""
        members = {
            name: {
                "taken": member.taken,
                "passes": member.passes,
                "weight": member.weight,
                "stream": member.stream.state_dict(),
            }
            for name, member in self._members.items()
        }
        return {"until": self._until, "sources": members}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the batch at which ``state`` was saved; if refused, stay where it is."""
        if "sources" not in state:
            raise SpecError(
                f"the state was saved in a stream of {state.get('dataset')!r} alone, and this is a "
                f"mixture of {', '.join(self._members)}; load it into such a stream"
            )
        sources = state["sources"]
        theirs = {name: saved["weight"] for name, saved in sources.items()}
        ours = {name: member.weight for name, member in self._members.items()}
        # Shares may differ in the last bits of a sum.
        has_same_shares = theirs.keys() == ours.keys() and all(
            math.isclose(theirs[name], ours[name], rel_tol=1e-9) for name in ours
        )
        if state["until"] != self._until or not has_same_shares:
            raise SpecError(
                f"the state was saved in another mixture: until {state['until']}, weights "
                f"{theirs}; here it is until {self._until}, weights {ours}"
            )
        moved = {name: _moved(name, old, sources[name]) for name, old in self._members.items()}
        self.close()
        self._members = moved

    def close(self) -> None:
        for member in self._members.values():
            member.stream.close()

    def _turn(self) -> str:
        """The dataset furthest behind its share; of several, the first by name."""
        steps = 1 + sum(member.taken for member in self._members.values())
        return max(
            self._members,
            key=lambda name: self._members[name].weight * steps - self._members[name].taken,
        )

    def _is_over(self) -> bool:
        passed = (
            member.passes > 0 or member.stream.remaining == 0 for member in self._members.values()
        )
        return all(passed) if self._until == "longest" else any(passed)


def _moved(name: str, member: _Member, saved: Mapping[str, Any]) -> _Member:
    try:
        return member.moved(saved)
    except SpecError as error:
        raise SpecError(f"{name}: {error.message}", **error.detail) from error


def _shares(
    datasets: Mapping[str, StreamedDataset],
    weights: Mapping[str, float] | None,
    temperature: float | None,
) -> dict[str, float]:
    """Share of each dataset; they sum to 1."""
    _check_datasets(datasets)
    if weights is not None and temperature is not None:
        raise SpecError("both weights and temperature came; give one of them")
    if weights is None:
        weights = _heated(datasets, 1.0 if temperature is None else temperature)
    if set(weights) != set(datasets):
        raise SpecError(f"weights came for {sorted(weights)}; the datasets are {sorted(datasets)}")
    for name, weight in weights.items():
        _check_positive(f"the weight of {name}", weight)
    largest = max(weights.values())
    total = math.fsum(weight / largest for weight in weights.values())
    return {name: float(weights[name] / largest / total) for name in datasets}


def _heated(datasets: Mapping[str, StreamedDataset], temperature: float) -> dict[str, float]:
    _check_positive("temperature", temperature)
    largest = max(map(len, datasets.values()))
    weights = {
        name: (len(data) / largest) ** (1.0 / temperature) for name, data in datasets.items()
    }
    if nothing := [name for name, weight in weights.items() if not weight]:
        raise SpecError(
            f"temperature is {temperature}, which leaves nothing to {', '.join(nothing)}; raise it"
        )
    return weights


def _check_datasets(datasets: Mapping[str, StreamedDataset]) -> None:
    if not isinstance(datasets, Mapping):
        raise SpecError(f"datasets came as {datasets!r}; give each a name: {{'xnli': data}}")
    if not datasets or not all(map(len, datasets.values())):
        empty = [name for name, data in datasets.items() if not len(data)]
        raise SpecError(f"a mixture needs datasets with examples; without any: {empty or 'all'}")
    if len({data.card.tokenizer_fingerprint for data in datasets.values()}) > 1:
        each = {name: data.card.tokenizer for name, data in datasets.items()}
        raise SpecError(f"a mixture needs datasets of one tokenizer; these are of {each}")


def _check_positive(name: str, value: Any) -> None:
    if not (isinstance(value, Real) and 0 < float(value) < math.inf):
        raise SpecError(f"{name} is {value!r}; it must be a positive, finite number")
