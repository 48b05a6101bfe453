"""``parsebank picture``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from trainer.commands.shared import (
    ParserOption,
    one_language,
    quiet_transformers,
)
from trainer.environment import require_training


def picture(
    run: Annotated[Path, typer.Argument(help="Folder of a run.")],
    example_id: Annotated[str, typer.Argument(help="Id of a stored example.")],
    store: Where = DEFAULT_STORE,
    split: Annotated[
        str | None,
        typer.Option(help="Split of the example. Default: the run's dev, usually `dev`."),
    ] = None,
    lang: Annotated[
        str | None, typer.Option(help="Language of the example. Default: the training language.")
    ] = None,
    parser: ParserOption = None,
    layer: Annotated[
        int | None, typer.Option(help="Layer, from 0. Default: the last.", min=0)
    ] = None,
    head: Annotated[
        int | None, typer.Option(help="Head, from 0. Default: the mean of all.", min=0)
    ] = None,
    matrix: Annotated[
        list[str] | None,
        typer.Option(
            help="Matrices to show, as distance,ancestor. Default: the distances and the matrices "
            "that the model reads."
        ),
    ] = None,
    sequence: Annotated[
        int, typer.Option(help="Number of the sequence, if the example has several.", min=0)
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="File of the picture (.svg, .png, .pdf). Default: in the run's folder."),
    ] = None,
    any_parser: Annotated[
        bool, typer.Option("--any-parser", help="Accept trees of other parsers than training's.")
    ] = False,
) -> None:
    """Draw attention and matrices of a stored example."""
    require_training()
    from syntax.lists import listed
    from trainer.evaluation.pictures import check_picture, draw_panels
    from trainer.results import recipe_of
    from trainer.stored import check_part

    if output is not None:
        check_picture(output)
    with open_there(store) as opened:
        chosen = split or recipe_of(run).data.dev_split
        check_part(opened, run, chosen, lang)
        from trainer.evaluation.inspection import inspect_example
        from trainer.evaluation.trained import load_run, open_languages
        from trainer.nn.stock import ATTENTION

        quiet_transformers()
        here = load_run(run, ATTENTION["eager"]).on(opened, parser=parser)
        asked = one_language(lang) if lang else next(iter(here.requirements.parsers))
        (source,) = open_languages(opened, here, chosen, [asked], any_parser=any_parser).values()
        names = list(listed(matrix)) or ["distance"]
        found = inspect_example(here, opened, source, example_id, names, sequence)
    shown = names if matrix else list(found.matrices)
    panels = [found.attention_panel(layer, head), *map(found.matrix_panel, shown)]
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in example_id)
    path = output or run / f"picture-{chosen}-{name}.svg"
    draw_panels(panels, found.labels, path)
    typer.echo(f"The picture is in {path}")
