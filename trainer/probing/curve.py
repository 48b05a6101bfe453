"""Curves over the layers of an encoder: a score of each layer, with its interval and baselines.

Letters in shapes: ``S`` seeds, ``N`` examples.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax.errors import SpecError
from trainer.metrics.significance import difference
from trainer.probing import classifier, structure
from trainer.probing.classifier import Vectors
from trainer.probing.items import MASK, Items, class_shares, control_gold, features, items_of
from trainer.probing.options import DEV, STRUCTURE, TEST, TRAIN, ProbeOptions, Target
from trainer.probing.words import Encoded

_LOG: Final = logging.getLogger(__name__)


Shares = NDArray[np.float64]
"""Items right in each example, and how many there are. *Shape:* (N, 2)."""

_RESAMPLES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Point:
    """One layer of a curve.

    Attributes:
        layer: `MASK` without states.
        shares: On test, by seed. *Shape:* (N, S, 2).
        examples: Places of these examples among those of the split. *Shape:* (N,).
        dev: Score on dev, by seed.
        others: Mean scores on test beside it: ``linear``, ``control``.
    """

    layer: int | str
    shares: NDArray[np.float64]
    examples: NDArray[np.int64]
    dev: tuple[float, ...]
    others: Mapping[str, float]

    @property
    def seeds(self) -> tuple[float, ...]:
        hits, total = self.shares.sum(0).T
        return tuple((hits / np.maximum(total, 1)).tolist())

    def interval(self) -> tuple[float, float]:
        """The middle 95 % of a bootstrap over examples; scores are means over seeds."""
        draw = np.random.default_rng(0)
        count = len(self.shares)
        # How often each example is in a resample; multiplying sums all of them at once.
        times = draw.multinomial(count, np.full(count, 1 / count), _RESAMPLES).astype(float)
        sums = np.einsum("rn,nsk->rsk", times, self.shares)
        means = (sums[..., 0] / np.maximum(sums[..., 1], 1)).mean(1)
        low, high = np.percentile(means, (2.5, 97.5))
        return float(low), float(high)

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval()
        score = fmean(self.seeds)
        found: dict[str, Any] = {
            "layer": self.layer,
            "score": score,
            "low": low,
            "high": high,
            "deviation": stdev(self.seeds) if len(self.seeds) > 1 else None,
            "seeds": list(self.seeds),
            "dev": list(self.dev),
            **self.others,
        }
        if "control" in self.others:
            found["selectivity"] = score - self.others["control"]
        return found


def curve(task: str, encoded: Mapping[str, Encoded], options: ProbeOptions) -> dict[str, Any]:
    """The curve of a task: ``distance``, ``depth``, one of `WORD_PROBES`, or a label column."""
    count = len(encoded[TRAIN].words)
    for layer in options.layers:
        if not 0 <= layer < count:
            raise SpecError(f"there is no layer {layer}; the encoder has 0 to {count - 1}")
    layers: list[int | str] = list(options.layers or range(count))
    if task in STRUCTURE:
        facts, point = _structure(STRUCTURE[task], encoded, options)
    else:
        facts, point = _classes(task, encoded, options)
        layers += [MASK] if options.mask else []
    points = []
    for place in layers:
        points.append(point(place))
        _LOG.info("%s, layer %s: %.4f", task, place, fmean(points[-1].seeds))
    return {**facts, "layers": [one.to_json() for one in points], "best": _best(points)}


def _best(points: Sequence[Point]) -> dict[str, Any]:
    """The layer that is best on dev, and its differences on test from the first and the last.

    ``examples`` has, for the place of each, how many items are right by each seed, and how many
    there are.
    """
    layers = [one for one in points if one.layer != MASK]
    best = max(layers, key=lambda one: fmean(one.dev))
    answers = np.concatenate([best.shares[..., 0], best.shares[:, :1, 1]], 1).tolist()
    places = zip(best.examples.tolist(), answers, strict=True)
    found: dict[str, Any] = {"layer": best.layer, "examples": dict(places)}
    for name, other in (("first", layers[0]), ("last", layers[-1])):
        if other is not best:
            of = difference(best.shares, other.shares, resamples=_RESAMPLES)
            found[f"less_{name}"] = {"difference": of.difference, "low": of.low, "high": of.high}
    return found


Make = tuple[dict[str, Any], Callable[[int | str], Point]]


def _structure(target: Target, encoded: Mapping[str, Encoded], options: ProbeOptions) -> Make:
    trees = {split: structure.Trees.of(one, target) for split, one in encoded.items()}

    def point(layer: int | str) -> Point:
        at, dev, shares = int(layer), [], []
        for seed in options.seeds:
            probe = structure.fit(trees[TRAIN], trees[DEV], at, options.structure, seed)
            dev.append(structure.probe_scores(trees[DEV], at, probe)[0])
            shares.append(structure.probe_scores(trees[TEST], at, probe)[1])
        of_seeds = np.stack(shares, 1)
        return Point(layer, of_seeds, np.arange(len(of_seeds)), tuple(dev), {})

    facts = {
        "metric": "uuas" if target == "distance" else "root_accuracy",
        "items": {split: len(one.chosen) for split, one in trees.items()},
        "baselines": {"linear chain": structure.chain_scores(trees[TEST])[0]},
    }
    return facts, point


def _classes(task: str, encoded: Mapping[str, Encoded], options: ProbeOptions) -> Make:
    items = {split: items_of(task, one) for split, one in encoded.items()}
    unlabelled = {split: one.unlabelled for split, one in items.items()}
    whole = {split: len(one) for split, one in items.items()}
    for split, count in whole.items():
        if count < 2:
            raise SpecError(f"{count} examples of {split} have the label {task!r}; name another")
    items[TRAIN] = items[TRAIN].drawn(options.train_items)
    items[DEV] = items[DEV].drawn(options.train_items)
    shares = class_shares(items[TRAIN])
    gold = {split: one.gold for split, one in items.items()}
    linear = replace(options.classifier, hidden=(0,))

    def control(seed: int) -> dict[str, NDArray[np.int64]]:
        return {
            split: control_gold(one, encoded[split].pieces, shares, seed)
            for split, one in items.items()
        }

    def point(layer: int | str) -> Point:
        inputs = {split: features(encoded[split], layer, one) for split, one in items.items()}
        count, of_words = len(shares), items[TEST].of_words

        def tried(
            classes: Mapping[str, NDArray[np.int64]], how: Any, seed: int
        ) -> tuple[float, Shares]:
            given = {split: Vectors.of(inputs[split], classes[split]) for split in items}
            found = classifier.fit(given[TRAIN], given[DEV], count, how, seed)
            return found.accuracy, _shares(found.right(given[TEST]), items[TEST], encoded[TEST])

        main = [tried(gold, options.classifier, seed) for seed in options.seeds]
        # Logistic regression has one optimum, whatever the seed.
        same = options.classifier == linear
        others = {"linear": main[:1] if same else [tried(gold, linear, options.seeds[0])]}
        if options.control and of_words:
            others["control"] = [
                tried(control(seed), options.classifier, seed) for seed in options.seeds
            ]
        means = {
            name: fmean(float(one[:, 0].sum() / one[:, 1].sum()) for _, one in found)
            for name, found in others.items()
        }
        accuracies = tuple(accuracy for accuracy, _ in main)
        of_seeds = np.stack([one for _, one in main], 1)
        return Point(layer, of_seeds, np.unique(items[TEST].example), accuracies, means)

    majority = int(shares.argmax())
    facts = {
        "metric": "accuracy",
        "items": whole,
        "trained_on": len(items[TRAIN]),
        "unlabelled": unlabelled,
        "baselines": {
            f"majority class ({items[TRAIN].names[majority]})": float(
                (items[TEST].gold == majority).mean()
            )
        },
    }
    return facts, point


def _shares(right: NDArray[np.bool_], items: Items, encoded: Encoded) -> Shares:
    """Shares of each example in the accuracy; examples that are not asked are left out."""
    found = np.zeros((len(encoded.starts) - 1, 2))
    np.add.at(found[:, 0], items.example, right)
    np.add.at(found[:, 1], items.example, 1)
    return found[found[:, 1] > 0]
