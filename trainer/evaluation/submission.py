"""Predictions for stored examples, in the order of their file, as leaderboards take them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from syntax.errors import SpecError
from trainer.evaluation.predict import FailedExample
from trainer.evaluation.predictions import Prediction, Submission
from trainer.evaluation.trained import TrainedRun, ask, open_languages

if TYPE_CHECKING:
    from featurestore import FeatureStore

_SHOWN: Final = 5

_OF_EXAMPLES: Final = (
    "the dataset holds them with other texts or labels, too; backfill the file under another --name"
)
_OF_SEQUENCES: Final = (
    "with data.stride, or data.level=sentence, an example may become several sequences, which the "
    "task does not join; take --json, or a run without the two"
)


def predict_stored(
    run: TrainedRun,
    store: FeatureStore,
    split: str,
    lang: str,
    *,
    dataset: str | None = None,
    parser: str | Iterable[str] | None = None,
    any_parser: bool = False,
) -> list[Prediction | FailedExample]:
    """The predictions of a model for a stored split, with labels or without.

    The newest version of the dataset, or of another one of the same fields and classes, is read.
    Predictions are in the order in which the file was backfilled; then come the examples that were
    dropped there.
    """
    here = run.on(store, dataset, parser)
    (source,) = open_languages(store, here, split, [lang], any_parser=any_parser).values()
    found: dict[str, list[Prediction]] = defaultdict(list)
    for one in ask(here, source).predictions:
        found[one.example_id].append(one)
    names = source.dataset.columns(["example_id"])["example_id"].to_pylist()
    dropped = {x.example_id: x for x in source.dataset.drops() if x.example_id not in found}
    return [
        *(one for name in dict.fromkeys(names) for one in found[name]),
        *(FailedExample(x.example_id, x.reason, x.message) for x in dropped.values()),
    ]


def submission(
    found: Sequence[Prediction | FailedExample], form: Submission, *, spreads: bool = False
) -> Iterator[str]:
    """The lines of a leaderboard's file.

    A run that ``spreads`` (`trainer.options.DataOptions.spreads`) gets another message about
    several predictions of an example.
    """
    predictions = [one for one in found if isinstance(one, Prediction)]
    _check_whole(found, predictions, spreads)
    if form == "squad":
        _check_kind(predictions, (str,), form)
        yield json.dumps({x.example_id: x.predicted for x in predictions}, ensure_ascii=False)
        return
    _check_kind(predictions, (str,) if form == "glue" else (str, list), form)
    yield from ["index\tprediction"] if form == "glue" else []
    for number, one in enumerate(predictions):
        if form == "glue":
            yield f"{number}\t{one.predicted}"
        else:
            yield from [*one.predicted, ""] if isinstance(one.predicted, list) else [one.predicted]


def _check_whole(
    found: Sequence[Prediction | FailedExample], predictions: Sequence[Prediction], spreads: bool
) -> None:
    failed = [one for one in found if isinstance(one, FailedExample)]
    if failed:
        raise SpecError(
            f"{len(failed)} examples of the file have no prediction, for the backfill dropped "
            f"them: {_listed([f'{one.example_id} ({one.error_type})' for one in failed])}; a "
            "submission needs all: backfill them (perhaps with --split-long), or add them to what "
            "--json gives"
        )
    twice = [name for name, n in Counter(one.example_id for one in predictions).items() if n > 1]
    if twice:
        raise SpecError(
            f"{len(twice)} ids have several predictions, such as {_listed(twice)}: "
            + (_OF_SEQUENCES if spreads else _OF_EXAMPLES)
        )


def _check_kind(predictions: Sequence[Prediction], kinds: tuple[type, ...], form: str) -> None:
    for one in predictions:
        if not isinstance(one.predicted, kinds):
            raise SpecError(
                f"the prediction for {one.example_id!r} is a {type(one.predicted).__name__}, which "
                f"the form {form!r} has no place for; take --json"
            )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
