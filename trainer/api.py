"""Train, evaluate and predict from Python.

The commands ``parsebank train``, ``evaluate`` and ``predict`` call these functions, so both write
and read the same files. Importing this module is quick; its functions import torch.

Example:
    >>> from trainer.api import evaluate, predict, train                     # doctest: +SKIP
    >>> run = train("sample", "./parsebank-data", settings={"max_steps": 100})  # doctest: +SKIP
    >>> run.metric, run.score, run.folder                                    # doctest: +SKIP
    >>> evaluate(run, split="dev").scores["en"].headline                     # doctest: +SKIP
    >>> predict(run, [("It rains.", "It is wet.")])[0].predicted             # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from featurestore import DEFAULT_STORE
from syntax.errors import SpecError
from syntax.lists import listed
from trainer.environment import is_first_process, require_training
from trainer.options.settings import setting_of, with_settings
from trainer.recipes import RECIPES
from trainer.results import RESULT, FinishedRun, is_result_of, recipe_of, write_result

if TYPE_CHECKING:
    from clients import Client
    from featurestore import FeatureStore
    from trainer.evaluation.predict import FailedExample, RawExample
    from trainer.evaluation.predictions import Prediction
    from trainer.evaluation.trained import TrainedRun
    from trainer.evaluation.transfer import CrossedTable, Scoring, TransferTable
    from trainer.metrics.answers import Rules
    from trainer.options import Recipe
    from trainer.progress import Observer
    from trainer.seeds import SeedSummary

    Store = FeatureStore | str | Path
    Settings = Mapping[str, Any] | Iterable[str]
    Observers = Callable[[Recipe, Path], AbstractContextManager[Sequence[Observer]]]
    Item = str | Sequence[str] | Mapping[str, Any] | RawExample

RUNS: Final = Path("runs")
"""Folder of the output folders of runs that name none."""


def train(
    recipe: Recipe | str | Path,
    store: Store = DEFAULT_STORE,
    output: Path | str | None = None,
    *,
    settings: Settings = (),
    seed: int | None = None,
    max_steps: int | None = None,
    resume: bool = False,
    observers: Sequence[Observer] | Observers = (),
) -> FinishedRun:
    """Train a recipe's model, and write ``result.json`` and ``result.md``.

    Args:
        recipe: A recipe; the name of one; or a run to repeat, its folder or ``result.json``.
        store: The store of the data.
        output: Folder for model, checkpoint and result; ``runs/RECIPE-seedN`` by default.
        settings: Changes of the recipe: ``{"batch_size": 8}`` or ``["batch_size=8"]``.
        seed: Short for the setting ``training.seed``.
        max_steps: Short for the setting ``training.max_steps``.
        resume: Continue from the checkpoint in ``output``.
        observers: Called with each report and evaluation. Or a function of recipe and folder that
            returns a context manager of such observers.
    """
    require_training()
    from trainer.stored import check_recipe

    chosen = chosen_recipe(recipe, settings, seed=seed, max_steps=max_steps)
    folder = RUNS / f"{chosen.name}-seed{chosen.training.seed}" if output is None else Path(output)
    if not resume and (folder / RESULT).exists():
        raise SpecError(
            f"{folder} already holds the result of a run; name another folder, as "
            f"`output={folder}-2`, or `resume=True`"
        )
    observing = observers(chosen, folder) if callable(observers) else nullcontext(observers)
    with _opened(store) as opened:
        check_recipe(opened, chosen)
        from trainer.loop import train as run_recipe
        from trainer.report import result_of

        with observing as told:
            run = run_recipe(chosen, opened, folder, resume=resume, observers=told)
            result = result_of(run)
            if is_first_process():  # before observers or store can fail as they close
                write_result(result, folder)
    return FinishedRun(folder, result)


def train_seeds(
    recipe: Recipe | str | Path,
    seeds: Iterable[int],
    store: Store = DEFAULT_STORE,
    output: Path | str | None = None,
    *,
    settings: Settings = (),
    max_steps: int | None = None,
    resume: bool = False,
    observers: Sequence[Observer] | Observers = (),
    on_seed: Callable[[int, Path, bool], None] = lambda *_: None,
) -> SeedSummary | None:
    """Train once for each seed, and write mean and deviation to ``seeds.json`` and ``seeds.md``.

    A seed whose folder holds the result of the same recipe is not trained again. ``output`` gets a
    folder ``seedN`` for each, and is ``runs/RECIPE`` by default; ``on_seed`` is called with each
    seed, its folder, and True if it is done already; `train` describes the other arguments. In
    processes other than the first of several the summary is None.
    """
    require_training()
    from trainer.seeds import summarise_seeds, write_summary
    from trainer.stored import check_recipe

    chosen = chosen_recipe(recipe, settings, max_steps=max_steps)
    with _opened(store) as opened:
        check_recipe(opened, chosen)
    from trainer.checkpoint import has_checkpoint
    from trainer.loop import CHECKPOINT

    top = RUNS / chosen.name if output is None else Path(output)
    runs = {seed: top / f"seed{seed}" for seed in dict.fromkeys(seeds)}
    for seed, folder in runs.items():
        one = with_settings(chosen, [f"training.seed={seed}"])
        is_done = (folder / RESULT).exists() and is_result_of(folder, one)
        on_seed(seed, folder, is_done)
        if not is_done:
            # After a crash, the later seeds have no checkpoint yet.
            goes_on = resume and has_checkpoint(folder / CHECKPOINT)
            train(one, store, folder, resume=goes_on, observers=observers)
    if not is_first_process():
        return None
    summary = summarise_seeds(runs)
    write_summary(summary, top)
    return summary


def evaluate(
    run: FinishedRun | Path | str,
    store: Store = DEFAULT_STORE,
    split: str = "test",
    langs: str | Sequence[str] = (),
    *,
    dataset: str | None = None,
    parser: str | Iterable[str] | None = None,
    any_parser: bool = False,
    rules: Rules | None = None,
) -> TransferTable:
    """Score a run on stored languages.

    Scores are written to ``evaluation-SPLIT.json`` and ``.md`` in the run's folder, and predictions
    to ``predictions-SPLIT-LANG.jsonl``.

    Args:
        run: A finished run or its folder.
        store: The store of the data.
        split: Name of the split.
        langs: Such as ``["en", "fr"]`` or ``"en,fr"``; all languages of the split by default.
        dataset: Another dataset of the same fields and classes than the run's.
        parser: Name or fingerprint of the parser of the trees; the model's own by default.
        any_parser: Accept other parsers than in training.
        rules: Rules that compare answers; the dataset's own by default.
    """
    require_training()
    from trainer.evaluation.transfer import evaluate_run, write_table

    folder = _folder(run)
    how: Scoring = {"any_parser": any_parser, "dataset": dataset, "rules": rules, "parser": parser}
    with _opened(store) as opened:
        scored = evaluate_run(folder, opened, split, listed(langs), **how)
    write_table(scored, folder)
    return scored


def evaluate_crossed(
    run: FinishedRun | Path | str,
    store: Store = DEFAULT_STORE,
    split: str = "test",
    langs: str | Sequence[str] = (),
    *,
    dataset: str | None = None,
    parser: str | Iterable[str] | None = None,
    any_parser: bool = False,
    rules: Rules | None = None,
) -> CrossedTable:
    """Score a run on all ordered pairs of languages; arguments as of `evaluate`.

    Scores are written to ``crossed-SPLIT.json`` and ``.md`` in the run's folder, and a heat map to
    ``crossed-SPLIT.svg``.
    """
    require_training()
    from trainer.evaluation.pictures import draw_crossed, require_matplotlib
    from trainer.evaluation.transfer import evaluate_crossed as crossed_run
    from trainer.evaluation.transfer import write_table

    require_matplotlib()
    folder = _folder(run)
    how: Scoring = {"any_parser": any_parser, "dataset": dataset, "rules": rules, "parser": parser}
    with _opened(store) as opened:
        scored = crossed_run(folder, opened, split, listed(langs), **how)
    draw_crossed(scored, write_table(scored, folder).with_suffix(".svg"))
    return scored


def load_run(run: FinishedRun | Path | str) -> TrainedRun:
    """A run with its model, for several calls of `predict`."""
    require_training()
    from trainer.evaluation.trained import load_run as load

    return load(_folder(run))


def predict(
    run: TrainedRun | FinishedRun | Path | str,
    texts: Sequence[Item],
    lang: str | None = None,
    *,
    client: Client | str | None = None,
    store: Path | str | None = None,
    parser: str | None = None,
    any_parser: bool = False,
) -> list[Prediction | FailedExample]:
    """Predict for texts; an example that cannot be parsed fails alone.

    Args:
        run: A loaded run (`load_run`), a finished one, or its folder.
        texts: Each is a text; the texts of a pair, of a question and its passage, ...; a mapping
            from the names of the fields to a text or a list of tokens, which may also give
            ``example_id`` and what the task is given; or a `RawExample`.
        lang: The first language that the model was trained on by default.
        client: An open client, or an address; by default a service in this process.
        store: Store of the service in this process, whose parses are used again.
        parser: Name of the parser; by default the model's own, or the service's choice.
        any_parser: Accept another parser than in training.

    Returns:
        In the order of the examples. An example that became several sequences has a prediction for
        each, unless its task joins them.
    """
    require_training()
    from trainer.evaluation.predict import examples_of
    from trainer.evaluation.predict import predict as predict_texts
    from trainer.evaluation.trained import TrainedRun

    trained = run if isinstance(run, TrainedRun) else load_run(run)
    examples = examples_of(texts, trained)
    chosen = lang or next(iter(trained.requirements.parsers))
    with _connected(client, store) as service:
        return predict_texts(
            trained, service, examples, chosen, parser=parser, any_parser=any_parser
        )


def predict_stored(
    run: TrainedRun | FinishedRun | Path | str,
    store: Store = DEFAULT_STORE,
    split: str = "test",
    lang: str | None = None,
    *,
    dataset: str | None = None,
    parser: str | Iterable[str] | None = None,
    any_parser: bool = False,
) -> list[Prediction | FailedExample]:
    """Predict for a stored split, with labels or without; arguments are as of `evaluate`.

    ``lang`` is by default the first language that the model was trained on. Predictions are in the
    order in which the file was backfilled; the examples that were dropped there follow.
    """
    require_training()
    from trainer.evaluation.submission import predict_stored as predict_split
    from trainer.evaluation.trained import TrainedRun

    trained = run if isinstance(run, TrainedRun) else load_run(run)
    chosen = lang or next(iter(trained.requirements.parsers))
    options: dict[str, Any] = {"dataset": dataset, "parser": parser, "any_parser": any_parser}
    with _opened(store) as opened:
        return predict_split(trained, opened, split, chosen, **options)


def chosen_recipe(recipe: Recipe | str | Path, settings: Settings = (), **short: Any) -> Recipe:
    """A recipe, by name or from a run, with its settings; None in ``short`` changes nothing."""
    found = recipe
    if isinstance(found, str | Path):
        name = str(found)
        is_run = name not in RECIPES and (name.endswith(".json") or Path(name).is_dir())
        found = recipe_of(Path(name)) if is_run else RECIPES[name]()
    pairs = settings.items() if isinstance(settings, Mapping) else ()
    given = [setting_of(key, value) for key, value in pairs] or list(settings)
    given += [f"training.{key}={value}" for key, value in short.items() if value is not None]
    return with_settings(found, given)


def _folder(run: FinishedRun | Path | str) -> Path:
    return run.folder if isinstance(run, FinishedRun) else FinishedRun.read(run).folder


@contextmanager
def _opened(store: Store) -> Iterator[FeatureStore]:
    """A store; one that the caller opened stays open."""
    from featurestore.commands import open_there

    if not isinstance(store, str | Path):
        yield store
        return
    with open_there(str(store)) as opened:
        yield opened


@contextmanager
def _connected(client: Client | str | None, store: Path | str | None) -> Iterator[Client]:
    """A service that parses; a client that the caller opened stays open."""
    from clients.commands.connect import connect

    if isinstance(client, str) and store is not None:
        raise SpecError(
            f"`client={client}` is a service at an address, and `store={store}` is for one in "
            "this process; give one of the two"
        )
    if client is None or isinstance(client, str):
        with connect(client, None if store is None else str(store)) as opened:
            yield opened
    else:
        yield client
