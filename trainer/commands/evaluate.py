"""``parsebank evaluate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from trainer.commands.shared import (
    Langs,
    ParserOption,
    quiet_transformers,
    require_training,
    show_table,
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
) -> None:
    """Score a trained model on stored languages, and keep what it predicts of each example."""
    require_training()
    from trainer.seeds import runs_of

    quiet_transformers()
    score = _crossed if crossed else _by_language
    options = {"any_parser": any_parser, "dataset": dataset, "rules": rules, "parser": parser}
    folders = runs_of(run).values()
    with open_there(store) as opened:
        for folder in folders:
            score(folder, opened, split, lang or [], **options)


def _by_language(
    folder: Path, store: FeatureStore, split: str, langs: Sequence[str], **options: Any
) -> None:
    from trainer.transfer import evaluate_run, write_transfer

    scored = evaluate_run(folder, store, split, langs, **options)
    header = ("language", "examples", scored.metric)
    show_table(f"{scored.dataset}, {split}", header, scored.rows())
    typer.echo(f"Every number is in {write_transfer(scored, folder)}, predictions beside it")


def _crossed(
    folder: Path, store: FeatureStore, split: str, langs: Sequence[str], **options: Any
) -> None:
    from trainer.crossed import evaluate_crossed, write_crossed
    from trainer.pictures import draw_crossed, require_matplotlib

    require_matplotlib()
    scored = evaluate_crossed(folder, store, split, langs, **options)
    header = (f"{scored.fields[0]} \\ others", *scored.langs)
    show_table(f"{scored.dataset}, {split}: {scored.metric}", header, scored.rows())
    path = write_crossed(scored, folder)
    draw_crossed(scored, path.with_suffix(".svg"))
    typer.echo(f"Every number is in {path}, the heat map in {path.with_suffix('.svg')}")
