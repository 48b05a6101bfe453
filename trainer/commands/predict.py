"""``parsebank predict``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clients.commands.connect import StoreOption, UrlOption
from syntax.commands.tables import print_table
from trainer.commands.shared import quiet_transformers, require_training

if TYPE_CHECKING:
    from trainer.predict import FailedExample, RawExample
    from trainer.predictions import Prediction
    from trainer.trained import TrainedRun


def predict(
    run: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT...",
            help="Texts; of a model of pairs, the two of the first pair, of the second, and so on.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Examples as JSON lines, such as "
            '{"premise": "...", "hypothesis": "..."}, by the names of the fields; - for stdin. '
            "A list of tokens may stand for a text. Where mentions or tags are given, as for "
            'relations: "subject": [{"start_char": 0, "end_char": 4, "label": "PER"}], '
            '"ner": ["B-PER", "O"].',
        ),
    ] = None,
    lang: Annotated[
        str | None,
        typer.Option(help="Language of the texts; the one trained on by default."),
    ] = None,
    url: UrlOption = None,
    store: StoreOption = None,
    parser: Annotated[
        str | None, typer.Option(help="Parser; the model's own, or the service's choice.")
    ] = None,
    any_parser: Annotated[
        bool, typer.Option("--any-parser", help="Accept another parser than in training.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line instead of a table.")
    ] = False,
) -> None:
    """Predict for texts, which a service parses: a running one, or one in this process."""
    require_training()
    from clients.commands.connect import connect
    from trainer.predict import predict as predict_texts
    from trainer.trained import load_run

    quiet_transformers()
    trained = load_run(run)
    examples = _examples(texts or [], file, trained)
    chosen = lang or next(iter(trained.requirements.parsers))
    with connect(url, store) as client:
        found = predict_texts(
            trained, client, examples, chosen, parser=parser, any_parser=any_parser
        )
    show = _show_json if as_json else _show
    show(found)
    if any(_is_error(one) for one in found):
        raise typer.Exit(1)


def _examples(texts: list[str], file: Path | None, run: TrainedRun) -> list[RawExample]:
    from syntax.errors import SpecError
    from trainer.predict import examples_of_lines, examples_of_texts, given_labels

    fields, given = run.requirements.fields, given_labels(run)
    if bool(texts) == bool(file):
        raise SpecError("give texts or --file, one of the two")
    if file is None and given:
        names = ", ".join(label.name for label in given)
        raise SpecError(f"an example comes with its {names}; give examples with --file")
    if file is None:
        return examples_of_texts(texts, fields)
    if str(file) == "-":
        return examples_of_lines(sys.stdin, fields, given)
    with file.open(encoding="utf-8") as lines:
        return examples_of_lines(lines, fields, given)


def _show_json(found: Sequence[Prediction | FailedExample]) -> None:
    for one in found:
        typer.echo(json.dumps(_as_json(one), ensure_ascii=False))


def _as_json(one: Any) -> dict[str, Any]:
    if _is_error(one):
        error = {"error_type": one.error_type, "message": one.message}
        return {"example_id": one.example_id, "error": error}
    content = asdict(one)
    return {name: content[name] for name in ("example_id", "predicted", "probability")}


def _show(found: Sequence[Any]) -> None:
    rows = [
        (one.example_id, f"{one.error_type}: {one.message}", "")
        if _is_error(one)
        else (one.example_id, _readable(one.predicted), _percent(one.probability))
        for one in found
    ]
    print_table(("example", "prediction", "probability"), rows)


def _is_error(one: Any) -> bool:
    return hasattr(one, "error_type")


def _readable(predicted: Any) -> str:
    if isinstance(predicted, list):
        return " ".join(map(str, predicted))
    return predicted if isinstance(predicted, str) else json.dumps(predicted, ensure_ascii=False)


def _percent(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.1%}"
