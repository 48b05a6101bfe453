"""The streams of a run: which of them feeds a step, and the place of each in its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from accelerate import Accelerator

from syntax.errors import SpecError
from syntax.mixing import stream_seed
from trainer.batch import SyntaxBatch
from trainer.data import (
    Source,
    device_batches,
    fitted,
    open_source,
    pinned_data,
    profile_data,
)
from trainer.evaluation.evaluate import check_labelled, check_languages
from trainer.options import MAIN, Recipe, StreamOptions
from trainer.requirements import DataProfile

if TYPE_CHECKING:
    from featurestore import FeatureStore, FeatureStream

_RATIOS: Final = tuple(prime**0.5 for prime in (5, 2, 3, 7, 11, 13, 17, 19))
"""Irrational, so that points a ratio apart fill the interval from 0 to 1 evenly; a ratio for the
streams that take steps, and others for those that join."""


def open_streams(store: FeatureStore, recipe: Recipe) -> dict[str, Source]:
    """The training data of each stream by name, the main stream first; all of one tokenizer."""
    sources: dict[str, Source] = {}
    for name in recipe.stream_names:
        own = recipe.of_stream(name)
        sources[name] = open_source(store, own, own.data.train_split, own.data.lang, labelled=True)
        main, card = sources[MAIN].dataset.card, sources[name].dataset.card
        if card.tokenizer_fingerprint != main.tokenizer_fingerprint:
            raise SpecError(
                f"the stream {name} has pieces of the tokenizer {card.tokenizer}, and the main "
                f"stream of {main.tokenizer}; backfill both with the same"
            )
    return sources


def pinned(recipe: Recipe, sources: Mapping[str, Source]) -> Recipe:
    own = {name: fitted(recipe.of_stream(name), of.dataset) for name, of in sources.items()}
    objectives = {
        name: tuple(one.prepared(recipe) for one in of.objectives) for name, of in own.items()
    }
    shares = _shares(recipe, {name: len(of.dataset) for name, of in sources.items()})
    data = {name: pinned_data(of, own[name]) for name, of in sources.items()}
    streams = tuple(
        replace(
            stream,
            data=data[stream.name],
            task=None if stream.task is None else own[stream.name].task,
            objectives=objectives[stream.name],
            share=shares.get(stream.name, stream.share),
        )
        for stream in recipe.streams
    )
    main = own[MAIN]
    return replace(
        recipe,
        data=data[MAIN],
        model=recipe.model.fitted([one.task for one in own.values()]),
        task=main.task,
        objectives=objectives[MAIN],
        streams=streams,
    )


def _shares(recipe: Recipe, sizes: Mapping[str, int]) -> dict[str, float]:
    """The shares that follow from numbers of examples.

    A stream that joins in turn has that of its examples; one with steps of its own has
    ``n_i ** a / sum(n_j ** a)`` with the recipe's exponent a. (PLBART's equation divides by the
    share of the examples once more, as XLM does to repeat examples, and does not add up to 1.)
    """
    in_turn = [stream.name for stream in recipe.streams if stream.joins == "in_turn"]
    total = sum(sizes[name] for name in in_turn)
    shares = {name: sizes[name] / total for name in in_turn}
    exponent = recipe.training.share_exponent
    if exponent is not None:
        apart = [MAIN, *(stream.name for stream in recipe.streams if not stream.joins)]
        powers = sum(sizes[name] ** exponent for name in apart)
        shares |= {name: sizes[name] ** exponent / powers for name in apart}
    return shares


def open_devs(
    store: FeatureStore, recipe: Recipe, sources: Mapping[str, Source]
) -> dict[str, Source]:
    tasks = [MAIN, *(stream.name for stream in recipe.streams if stream.task is not None)]
    devs = {}
    for name in tasks:
        own = recipe.of_stream(name)
        dev = devs[name] = open_source(store, own, own.data.dev_split, own.data.lang)
        check_languages(sources[name], dev, own)
        check_labelled(dev, own, own.data.dev_split)
        dev.task.scorer(dev.dataset)  # what cannot be scored is refused before it is learned
    return devs


def profile_streams(sources: Mapping[str, Source], recipe: Recipe) -> DataProfile:
    profile = profile_data(sources[MAIN], recipe)
    further = {name: source.classes for name, source in sources.items() if name != MAIN}
    return replace(profile, streams=further)


def feeding(recipe: Recipe, step: int, delayed: bool = False) -> tuple[str, ...]:
    """Names of the streams whose batches make a step, by the recipe's seed and shares alone.

    All processes, on any number of them, and a resumed run agree. Streams with steps of their own
    divide the interval from 0 to 1 by their shares, and the main stream has the rest; a step
    belongs to the part that its point falls into. The points of consecutive steps are an irrational
    number apart, modulo 1, so that each stream soon has its share (a Kronecker sequence). Streams
    that join have points of their own; those that join in turn divide an interval of their own. In
    a ``delayed`` run all others wait.
    """
    seed = recipe.training.seed
    if delayed:
        return (MAIN,)
    apart = [stream for stream in recipe.streams if not stream.joins]
    if own := _part_with(apart, _point(seed, MAIN, 0, step)):
        return (own.name,)
    joining = [stream for stream in recipe.streams if stream.joins is True]
    fed = [
        stream.name
        for number, stream in enumerate(joining, start=1)
        if _point(seed, stream.name, number, step) < stream.share
    ]
    in_turn = [stream for stream in recipe.streams if stream.joins == "in_turn"]
    if in_turn:
        point = _point(seed, "in turn", len(joining) + 1, step)
        # Shares that were rounded may end just below 1.
        fed.append((_part_with(in_turn, point) or in_turn[-1]).name)
    return (MAIN, *fed)


def _part_with(streams: Sequence[StreamOptions], point: float) -> StreamOptions | None:
    start = 0.0
    for stream in streams:
        if start <= point < start + stream.share:
            return stream
        start += stream.share
    return None


def _point(seed: int, name: str, number: int, step: int) -> float:
    return (_first_point(seed, name) + step * _RATIOS[number % len(_RATIOS)]) % 1.0


@cache
def _first_point(seed: int, name: str) -> float:
    return stream_seed(seed, "share", name) / 2**64


def steps_with(recipe: Recipe, main_steps: int, delayed: int = 0) -> int:
    """Steps of a run with ``main_steps`` of the main stream after the ``delayed`` ones."""
    if not recipe.streams:
        return delayed + main_steps
    step, fed = delayed, 0
    while fed < main_steps:
        fed += MAIN in feeding(recipe, step)
        step += 1
    return step


class TrainingStream:
    """One stream of a run and its place; the recipe is of it alone (`Recipe.of_stream`)."""

    def __init__(self, name: str, source: Source, recipe: Recipe, accelerator: Accelerator) -> None:
        self.name, self.source = name, source
        self._recipe, self._accelerator = recipe, accelerator
        self.begin(0)

    def begin(self, epoch: int) -> None:
        device, recipe = self._accelerator.device, self._recipe
        if self.name == MAIN:
            size = recipe.training.batch_size_of(epoch)
            recipe = replace(recipe, training=replace(recipe.training, batch_size=size))
        self.epoch = epoch
        self.stream: FeatureStream = self.source.training_stream(
            recipe,
            device,
            epoch=epoch,
            rank=self._accelerator.process_index,
            world_size=self._accelerator.num_processes,
        )
        self._batches = device_batches(
            self.stream, self._recipe, self.source.task, device, self.name
        )

    def take(self, count: int) -> list[SyntaxBatch]:
        return list(islice(self._batches, count))

    def cycle(self, count: int) -> list[SyntaxBatch]:
        """The next batches; after the end of an epoch those of the next."""
        batches = self.take(count)
        while len(batches) < count:
            self.begin(self.epoch + 1)
            batches += self.take(count - len(batches))
        return batches

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "position": self.stream.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.begin(state["epoch"])
        self.stream.load_state_dict(state["position"])


def planned_steps(main: TrainingStream, recipe: Recipe) -> tuple[int, int, int]:
    """Steps of a pass, of the warm-up in passes, and of a run; ``main`` is left at its beginning.

    A pass counts steps of the main stream after the delay; the warm-up counts all.
    """
    training, passes = recipe.training, []
    for epoch in dict.fromkeys((training.delay, 0)):
        main.begin(epoch)
        passes.append(-(-len(main.stream) // training.accumulation))

    def steps_of(epochs: int) -> int:
        delay = min(training.delay, epochs)
        return steps_with(recipe, passes[0] * (epochs - delay), passes[-1] * delay)

    total = training.max_steps or steps_of(training.epochs)
    return passes[0], steps_of(training.warmup_epochs), total
