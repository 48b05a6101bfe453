"""``parsebank language-test``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from syntax.lists import listed
from trainer.commands.shared import quiet_transformers
from trainer.environment import require_training


def language_test(
    run: Annotated[Path, typer.Argument(help="Output folder of the run whose encoder is tested.")],
    langs: Annotated[str, typer.Option("--lang", help="Languages to tell apart, as en,de,fr.")],
    store: Where = DEFAULT_STORE,
    as_released: Annotated[
        bool,
        typer.Option(
            "--as-released",
            help="As the authors' code: two linear maps, the pass that is best on dev, scored on "
            "test, up to 10,000 sentences.",
        ),
    ] = False,
    train: Annotated[str, typer.Option(help="Split that the classifier learns from.")] = "train",
    held_out: Annotated[
        str | None, typer.Option(help="Split that it is scored on. Default: dev; released: test.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Another dataset than the run's.")] = None,
    parser: Annotated[
        str | None, typer.Option(help="Parser, needed where a language has several.")
    ] = None,
    sentences: Annotated[
        int | None,
        typer.Option(
            help="Sentences of each language and split at most. Default: 1000; released: 10000."
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes of the classifier.")] = 50,
    seed: Annotated[int, typer.Option(help="Of the classifier.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Test how well the states of a run's encoder, which stays as it is, tell the language."""
    require_training()
    quiet_transformers()
    from trainer.evaluation.language_test import RELEASED, LanguageTestOptions
    from trainer.evaluation.language_test import language_test as tell_languages

    usual = RELEASED if as_released else LanguageTestOptions()
    chosen = replace(
        usual,
        train=train,
        held_out=held_out or usual.held_out,
        sentences=usual.sentences if sentences is None else sentences,
        epochs=epochs,
        seed=seed,
    )
    with open_there(store) as opened:
        found = tell_languages(run, opened, listed(langs), chosen, dataset=dataset, parser=parser)
    if as_json:
        print_json(found)
        return
    shares = {**found["per_language"], "all": found["accuracy"], "majority": found["majority"]}
    print_table(["language", "accuracy"], [[name, f"{of:.4f}"] for name, of in shares.items()])
