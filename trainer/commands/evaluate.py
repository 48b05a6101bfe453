"""``parsebank evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from trainer.commands.shared import Store, require_training


def evaluate(
    run: Annotated[Path, typer.Argument(help="Output folder of a run.")],
    store: Store = "./parsebank-data",
    split: Annotated[str, typer.Option(help="Split to score on.")] = "test",
    lang: Annotated[
        list[str] | None,
        typer.Option(help="Language to score on; may be repeated. All of the split by default."),
    ] = None,
    any_parser: Annotated[
        bool, typer.Option("--any-parser", help="Accept trees of other parsers than in training.")
    ] = False,
) -> None:
    """Score a trained model on stored languages: accuracy by language, and the transfer gap."""
    require_training()
    from rich.console import Console
    from rich.table import Table
    from transformers.utils.logging import disable_progress_bar

    from featurestore import open_store
    from trainer.transfer import evaluate_run

    disable_progress_bar()
    with open_store(store) as opened:
        scored = evaluate_run(run, opened, split, lang or [], any_parser=any_parser)
    table = Table("language", "examples", scored.metric, title=f"{scored.dataset}, {split}")
    for row in scored.rows():
        table.add_row(*row)
    Console().print(table)
    path = run / f"evaluation-{split}.json"
    path.write_text(json.dumps(scored.to_json(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    typer.echo(f"Every number is in {path}")
