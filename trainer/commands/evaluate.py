"""``parsebank evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from syntax.errors import SpecError
from trainer.commands.shared import (
    Langs,
    ParserOption,
    quiet_transformers,
)
from trainer.environment import require_training
from trainer.metrics.answers import Rules


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run, or of runs by seed.")],
    store: Where = DEFAULT_STORE,
    split: Annotated[str, typer.Option(help="Split to score on.")] = "test",
    lang: Langs = None,
    parser: ParserOption = None,
    any_parser: Annotated[
        bool, typer.Option("--any-parser", help="Accept trees of other parsers than training's.")
    ] = False,
    dataset: Annotated[
        str | None,
        typer.Option(help="Another dataset of the same kind, such as xquad for a squad run."),
    ] = None,
    rules: Annotated[
        Rules | None,
        typer.Option(
            help="Rules that compare answers. Default: MLQA's for mlqa, SQuAD 2.0's if questions "
            "may have no answer, otherwise SQuAD 1.1's."
        ),
    ] = None,
    crossed: Annotated[
        bool,
        typer.Option(
            "--crossed",
            help="Score all ordered pairs of languages, with the first text in one and the others "
            "in another. Writes a heat map.",
        ),
    ] = False,
    word_order: Annotated[
        bool,
        typer.Option(
            "--word-order",
            help="Of a parser, show UAS and LAS beside the distance of each language's word order "
            "from that of the training data, and how distance and loss correlate.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score a trained model on stored data and write its predictions."""
    require_training()
    if crossed and word_order:
        raise SpecError("pairs of languages have no distance from one source; leave one option out")
    from trainer import api
    from trainer.seeds import runs_of
    from trainer.stored import check_part

    score = api.evaluate_crossed if crossed else api.evaluate
    folders, found = runs_of(run).values(), []
    with open_there(store) as opened:
        for folder in folders:
            check_part(opened, folder, split, lang, dataset)
        quiet_transformers()
        for folder in folders:
            scored: Any = score(
                *(folder, opened, split, lang or ()),
                dataset=dataset,
                parser=parser,
                any_parser=any_parser,
                rules=rules,
            )
            if word_order:
                typed = _with_word_order(folder, opened, scored)
                found.append({**scored.to_json(), "word_order": typed.to_json()})
            else:
                typed = scored
                found.append(scored.to_json())
            if not as_json:
                print_table(typed.header(), typed.rows(), title=typed.title())
                typer.echo(_files(folder, scored, crossed), err=True)
    if as_json:
        print_json(found)


def _with_word_order(folder: Path, store: Any, scored: Any) -> Any:
    from trainer.evaluation.word_order import word_order_table, write_word_order

    found = word_order_table(scored, store)
    write_word_order(found, folder)
    return found


def _files(folder: Path, scored: Any, crossed: bool) -> str:
    from trainer.results import part_name

    part = part_name(folder, scored.dataset, scored.split)
    if crossed:
        path = folder / f"crossed-{part}.json"
        return f"Every number is in {path}, the heat map in {path.with_suffix('.svg')}"
    return f"Every number is in {folder / f'evaluation-{part}.json'}, predictions beside it"
