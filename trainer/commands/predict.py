"""``parsebank predict``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clients.commands.connect import StoreOption, UrlOption
from clients.spelling import spelled
from featurestore import DEFAULT_STORE
from syntax.commands.tables import print_table
from trainer.commands.shared import (
    one_language,
    quiet_transformers,
)
from trainer.environment import require_training
from trainer.evaluation.predictions import Submission

if TYPE_CHECKING:
    from trainer.evaluation.predict import RawExample
    from trainer.evaluation.trained import TrainedRun


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT...",
            help="Texts. For a model of pairs, give the two texts of each pair after each other.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File of examples, one JSON object per line with the dataset's fields, such as "
            '{"premise": "...", "hypothesis": "..."}; `-` reads standard input. A text may be a '
            "list of tokens. Given mentions and tags, as for relations: "
            '"subject": [{"start_char": 0, "end_char": 4, "label": "PER"}], "ner": ["B-PER", "O"].',
        ),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(help="Language of the texts. Default: the training language."),
    ] = None,
    url: UrlOption = None,
    store: StoreOption = None,
    parser: Annotated[
        str | None,
        typer.Option(
            help="Parser of the texts. Default: the model's, or the service's. With --split: "
            "parser whose trees to read, if several are stored and none is the model's."
        ),
    ] = None,
    any_parser: Annotated[
        bool, typer.Option("--any-parser", help="Accept another parser than training's.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line instead of a table.")
    ] = False,
    split: Annotated[
        str | None,
        typer.Option(help="Predict a split of the --store instead of texts, such as a blind test."),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="With --split: another dataset of the same kind."),
    ] = None,
    submission: Annotated[
        Submission | None,
        typer.Option(
            help="With --split: print what leaderboards take, in the order of the file. `lines`: "
            "one class per line, or one tag per line and an empty line after each example. "
            "`glue`: numbers and classes. `squad`: a JSON object of answers."
        ),
    ] = None,
) -> None:
    """Predict labels of texts, or of stored examples with --split.

    A service parses the texts: the one at --url, or one in this process.
    """
    from clients.commands.connect import connect
    from trainer import api

    _check_options(texts, file, url, split, dataset, submission)
    require_training()
    chosen = one_language(lang) if lang else None
    _check_run(run, file, store, split, chosen, dataset)
    quiet_transformers()
    trained = api.load_run(run)
    options: dict[str, Any] = {"parser": parser, "any_parser": any_parser}
    if split is None:
        examples = _examples(texts or [], file, trained)
        with connect(url, store) as client:
            found = api.predict(trained, examples, chosen, client=client, **options)
    else:
        where = store or DEFAULT_STORE
        found = api.predict_stored(trained, where, split, chosen, dataset=dataset, **options)
    if submission is not None:
        from trainer.evaluation.submission import submission as submission_lines

        spreads = trained.recipe.data.spreads
        lines = list(submission_lines(found, submission, spreads=spreads))
        typer.echo("\n".join(lines))
        return
    if as_json:
        for one in found:
            typer.echo(json.dumps(_as_json(one), ensure_ascii=False))
    else:
        _show(found)
    if any(_is_error(one) for one in found):
        raise typer.Exit(1)


def _check_options(
    texts: list[str] | None,
    file: Path | None,
    url: str | None,
    split: str | None,
    dataset: str | None,
    submission: str | None,
) -> None:
    from syntax.errors import SpecError

    if split is not None and (texts or file or url):
        raise SpecError("--split reads stored examples; leave out texts, --file and --url")
    if split is None and (dataset or submission):
        raise SpecError("--dataset and --submission are about stored examples; give --split")
    if split is None and bool(texts) == bool(file):
        raise SpecError("give texts or --file, one of the two")


def _check_run(
    run: Path,
    file: Path | None,
    store: str | None,
    split: str | None,
    lang: str | None,
    dataset: str | None,
) -> None:
    from clients.files import open_file
    from featurestore.commands import open_there
    from trainer.results import FinishedRun
    from trainer.stored import check_part

    FinishedRun.read(run)
    if file is not None and str(file) != "-":
        open_file(file).close()
    if split is not None:
        with open_there(store or DEFAULT_STORE) as opened:
            check_part(opened, run, split, lang, dataset)


def _examples(texts: list[str], file: Path | None, run: TrainedRun) -> list[RawExample]:
    from clients.files import open_file
    from syntax.errors import SpecError
    from trainer.evaluation.predict import examples_of_lines, examples_of_texts, given_labels

    fields, given = run.requirements.fields, given_labels(run)
    if file is None and given:
        names = ", ".join(label.name for label in given)
        raise SpecError(f"an example comes with its {names}; give examples with --file")
    if file is None:
        return examples_of_texts(texts, fields)
    if str(file) == "-":
        return examples_of_lines(sys.stdin, fields, given)
    with TextIOWrapper(open_file(file), "utf-8") as lines:
        return examples_of_lines(lines, fields, given)


def _as_json(one: Any) -> dict[str, Any]:
    if _is_error(one):
        error = {"error_type": one.error_type, "message": one.message}
        return {"example_id": one.example_id, "error": error}
    content = asdict(one)
    return {name: content[name] for name in ("example_id", "predicted", "probability")}


def _show(found: Sequence[Any]) -> None:
    rows = []
    for one in found:
        if _is_error(one):
            rows.append((one.example_id, f"{one.error_type}: {spelled(one.message)}", ""))
        else:
            share = "" if one.probability is None else f"{one.probability:.1%}"
            rows.append((one.example_id, _readable(one.predicted), share))
    print_table(("example", "prediction", "probability"), rows)


def _is_error(one: Any) -> bool:
    return hasattr(one, "error_type")


def _readable(predicted: Any) -> str:
    if isinstance(predicted, list):
        return " ".join(map(str, predicted))
    return predicted if isinstance(predicted, str) else json.dumps(predicted, ensure_ascii=False)
