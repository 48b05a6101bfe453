"""``parsebank evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from trainer.commands.shared import (
    Langs,
    ParserOption,
    quiet_transformers,
    require_training,
)
from trainer.metrics.answers import Rules

if TYPE_CHECKING:
    from featurestore import FeatureStore


def evaluate(
    run: Annotated[
        Path, typer.Argument(help="Output folder of a run, or a folder of runs by seed.")
    ],
    store: Where = DEFAULT_STORE,
    split: Annotated[str, typer.Option(help="Split to score on.")] = "test",
    lang: Langs = None,
    parser: ParserOption = None,
    any_parser: Annotated[
        bool, typer.Option("--any-parser", help="Accept trees of other parsers than in training.")
    ] = False,
    dataset: Annotated[
        str | None,
        typer.Option(help="Another dataset of the same kind, such as xquad for a squad run."),
    ] = None,
    rules: Annotated[
        Rules | None,
        typer.Option(
            help="Whose rules compare answers; by default the dataset's own scorer's: MLQA's for "
            "mlqa, else SQuAD 1.1's, or 2.0's where questions may have no answer."
        ),
    ] = None,
    crossed: Annotated[
        bool,
        typer.Option(
            "--crossed",
            help="Score all ordered pairs of languages: the first text in one, the others in "
            "another. Writes a heat map.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score a trained model on stored languages, and keep what it predicts of each example."""
    require_training()
    from trainer.seeds import runs_of

    quiet_transformers()
    score = _crossed if crossed else _by_language
    options = {"any_parser": any_parser, "dataset": dataset, "rules": rules, "parser": parser}
    folders = runs_of(run).values()
    found = []
    with open_there(store) as opened:
        for folder in folders:
            scored = score(folder, opened, split, lang or [], **options)
            found.append(scored.content)
            if not as_json:
                print_table(scored.header, scored.rows, title=scored.title)
                typer.echo(scored.files, err=True)
    if as_json:
        print_json(found)


@dataclass(frozen=True)
class _Scored:
    """Scores of one run: as a table, as plain JSON, and a word on where they are."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    content: dict[str, Any]
    files: str


def _by_language(
    folder: Path, store: FeatureStore, split: str, langs: Sequence[str], **options: Any
) -> _Scored:
    from trainer.evaluation.transfer import evaluate_run, write_transfer

    scored = evaluate_run(folder, store, split, langs, **options)
    return _Scored(
        f"{scored.dataset}, {split}",
        scored.header(),
        scored.rows(),
        scored.to_json(),
        f"Every number is in {write_transfer(scored, folder)}, predictions beside it",
    )


def _crossed(
    folder: Path, store: FeatureStore, split: str, langs: Sequence[str], **options: Any
) -> _Scored:
    from trainer.evaluation.pictures import draw_crossed, require_matplotlib
    from trainer.evaluation.transfer import evaluate_crossed, write_crossed

    require_matplotlib()
    scored = evaluate_crossed(folder, store, split, langs, **options)
    path = write_crossed(scored, folder)
    draw_crossed(scored, path.with_suffix(".svg"))
    return _Scored(
        f"{scored.dataset}, {split}: {scored.metric}",
        (f"{scored.fields[0]} / others", *scored.langs),
        scored.rows(),
        scored.to_json(),
        f"Every number is in {path}, the heat map in {path.with_suffix('.svg')}",
    )
