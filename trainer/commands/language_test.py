"""``parsebank language-test``."""

from __future__ import annotations

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
    train: Annotated[str, typer.Option(help="Split that the classifier learns from.")] = "train",
    held_out: Annotated[str, typer.Option(help="Split that it is scored on.")] = "dev",
    dataset: Annotated[str | None, typer.Option(help="Another dataset than the run's.")] = None,
    parser: Annotated[
        str | None, typer.Option(help="Parser, needed where a language has several.")
    ] = None,
    sentences: Annotated[
        int, typer.Option(help="Sentences of each language and split at most.")
    ] = 1000,
    epochs: Annotated[int, typer.Option(help="Passes of the classifier.")] = 50,
    seed: Annotated[int, typer.Option(help="Of the classifier.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Test how well the states of a run's encoder, which stays as it is, tell the language."""
    require_training()
    quiet_transformers()
    from trainer.evaluation.language_test import LanguageTestOptions
    from trainer.evaluation.language_test import language_test as tell_languages

    chosen = LanguageTestOptions(train, held_out, sentences, epochs, seed=seed)
    with open_there(store) as opened:
        found = tell_languages(run, opened, listed(langs), chosen, dataset=dataset, parser=parser)
    if as_json:
        print_json(found)
        return
    shares = {**found["per_language"], "all": found["accuracy"], "majority": found["majority"]}
    print_table(["language", "accuracy"], [[name, f"{of:.4f}"] for name, of in shares.items()])
