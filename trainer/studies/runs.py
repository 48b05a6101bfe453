"""Training and scoring of the runs of a study that have not been, here or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from syntax.errors import ParsebankError, SpecError, UnknownDatasetError
from syntax.extras import missing_extra
from syntax.registry import unknown_name
from trainer import api
from trainer.evaluation.tables import SeedScores
from trainer.options import Recipe
from trainer.results import read_json
from trainer.studies.grid import Point, StudyRun

if TYPE_CHECKING:
    from featurestore import FeatureStore
    from trainer.progress import Observer

    Observing = api.Observers | Sequence[Observer]

CONNECT_SECONDS: Final = 10.0


class Training(TypedDict, total=False):
    """Options of training the runs of a study.

    Attributes:
        dask: Address of a scheduler, on whose workers the runs are side by side. The workers see
            the same folders and store.
        observers: As `trainer.api.train` takes them; none on a cluster.
        told: Is called with lines on the progress.
    """

    dask: str | None
    observers: Observing
    told: Callable[[str], object]


def silent(_: str) -> None:
    """Tell nothing."""


def train_missing(
    points: Sequence[Point],
    seeds: Sequence[int],
    store: FeatureStore,
    **how: Unpack[Training],
) -> dict[Path, str]:
    """Train the runs that have no result, and give by folder the reasons of those that failed.

    Seeds come one after the other, so that an interrupted study has whole columns of points.
    """
    from trainer.stored import check_recipe

    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise SpecError(
            "a study trains each run in one process; start it without torchrun, and give `dask=` "
            "to train several runs at once"
        )
    runs = [point.run(seed) for seed in dict.fromkeys(seeds) for point in points]
    todo = [run for run in runs if not run.is_done()]
    for point in dict.fromkeys(run.point for run in todo):
        check_recipe(store, point.recipe)
    told = how.get("told", silent)
    told(f"{len(runs)} runs, of which {len(runs) - len(todo)} are done")
    failed: dict[Path, str] = {}
    if address := how.get("dask"):
        ended = _on_cluster(todo, store.uri, address)
    else:
        ended = _here(todo, store, how.get("observers", ()), told)
    for count, (run, reason) in enumerate(ended, len(runs) - len(todo) + 1):
        told(f"{count} of {len(runs)}: {run.folder}{reason and f' failed: {reason}'}")
        if reason:
            failed[run.folder] = reason
    return failed


def score_missing(
    points: Sequence[Point],
    seeds: Sequence[int],
    store: FeatureStore,
    split: str,
    langs: Sequence[str],
    **how: Unpack[Training],
) -> None:
    """Evaluate the finished runs on a split, unless they were on all of these languages."""
    for run in (point.run(seed) for seed in dict.fromkeys(seeds) for point in points):
        if run.is_done() and not set(langs) <= scored_languages(run.folder, split):
            how.get("told", silent)(f"evaluating {run.folder} on {split}")
            api.evaluate(run.folder, store, split, langs)


def cells_of(
    point: Point, seeds: Sequence[int], split: str, langs: Sequence[str]
) -> dict[str, SeedScores]:
    """Headline scores of a point's finished runs by language; one without any is left out."""
    found: dict[str, dict[int, float]] = {lang: {} for lang in langs}
    for run in map(point.run, dict.fromkeys(seeds)):
        path = run.folder / f"evaluation-{split}.json"
        if run.is_done():
            content = read_json(path, f"{path} is gone")
            for lang in langs:
                if (score := content["languages"][lang][content["metric"]]) is not None:
                    found[lang][run.seed] = float(score)
    return {lang: SeedScores(scores) for lang, scores in found.items() if scores}


def mean_cell(cells: Sequence[SeedScores]) -> SeedScores:
    """The mean of some scores, by the seeds that all have."""
    seeds = set.intersection(*(set(cell.scores) for cell in cells))
    return SeedScores({seed: fmean(cell.scores[seed] for cell in cells) for seed in sorted(seeds)})


def shown(cell: SeedScores | None) -> str:
    """Mean, and deviation over seeds if there are several."""
    if cell is None or not cell.scores:
        return "–"
    spread = "" if cell.deviation is None else f" ± {cell.deviation:.4f}"
    return f"{cell.mean:.4f}{spread}"


def scored_languages(folder: Path, split: str) -> set[str]:
    path = folder / f"evaluation-{split}.json"
    return set(read_json(path, f"{path} is gone")["languages"] if path.exists() else ())


def languages_in(
    store: FeatureStore, recipe: Recipe, langs: Sequence[str], *splits: str
) -> list[str]:
    """Some languages of a recipe's dataset, or all that each of the splits has.

    One that a split lacks is refused, before anything is trained for it.
    """
    data = recipe.data
    infos = [info for info in store.datasets() if info.name == data.dataset]
    own = [one for one in infos if data.tokenizer in (one.tokenizer, one.tokenizer_fingerprint)]
    parts = {(part.split, part.lang) for info in own or infos for part in info.parts}
    known = sorted(
        lang for lang in {lang for _, lang in parts} if all((one, lang) in parts for one in splits)
    )
    if not known:
        raise SpecError(
            f"no language of {data.dataset} has examples in {' and '.join(splits)}; backfill "
            "them, or name other splits"
        )
    for lang in langs:
        if lang not in known:
            where = f"language of {data.dataset} in {' and '.join(splits)}"
            raise unknown_name(where, lang, known, UnknownDatasetError)
    return list(dict.fromkeys(langs)) or known


def train_run(
    recipe: Recipe, store: FeatureStore | str, folder: Path, observers: Observing = ()
) -> str:
    """Train a run, or go on from its checkpoint; gives the reason if it failed, else nothing."""
    from torch import OutOfMemoryError

    from trainer.checkpoint import has_checkpoint
    from trainer.loop import CHECKPOINT

    try:
        goes_on = has_checkpoint(folder / CHECKPOINT)
        api.train(recipe, store, folder, resume=goes_on, observers=observers)
    except ParsebankError as error:
        return error.message
    except OutOfMemoryError as error:  # which a point with smaller batches need not meet
        return str(error)
    return ""


def _here(
    runs: Sequence[StudyRun],
    store: FeatureStore,
    observers: Observing,
    told: Callable[[str], object],
) -> Iterator[tuple[StudyRun, str]]:
    for run in runs:
        told(f"training {run.point.name}, seed {run.seed}")
        yield run, train_run(run.recipe, store, run.folder, observers)


def _on_cluster(
    runs: Sequence[StudyRun], store: str, address: str
) -> Iterator[tuple[StudyRun, str]]:
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise missing_extra("runs on a cluster need distributed", "dask") from None
    where = store if "://" in store else str(Path(store).absolute())
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="parsebank")
    except (OSError, TimeoutError, ValueError) as error:
        raise SpecError(
            f"no Dask scheduler answers at {address} ({error or type(error).__name__}); expected "
            "an address such as tcp://HOST:8786"
        ) from error
    with client:
        futures = {
            client.submit(_on_worker, run.recipe, where, run.folder.absolute(), pure=False): run
            for run in runs
        }
        for future in as_completed(futures, loop=client.loop):
            fault = future.exception()
            yield futures[future], f"{type(fault).__name__}: {fault}" if fault else future.result()


def _on_worker(recipe: Recipe, store: str, folder: Path) -> str:
    from distributed import get_worker

    if (threads := get_worker().state.nthreads) > 1:
        return (
            f"the worker has {threads} threads, and runs of one process share its generators of "
            "random numbers; start it with --nthreads 1"
        )
    return train_run(recipe, store, folder)
