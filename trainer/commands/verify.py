"""``parsebank verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands import Where, open_there
from syntax.commands.tables import AsJson, print_json, print_table
from trainer.commands.shared import Langs, ParserOption, quiet_transformers
from trainer.environment import require_training


def verify(
    run: Annotated[Path, typer.Argument(help="Folder of a run that answers questions.")],
    verifier: Annotated[
        Path, typer.Argument(help="Folder of a run that predicts whether there is an answer.")
    ],
    store: Where = DEFAULT_STORE,
    split: Annotated[str, typer.Option(help="Split to score on.")] = "dev",
    lang: Langs = None,
    parser: ParserOption = None,
    tune_on: Annotated[
        str, typer.Option(help="Split on which the threshold of no answer is tuned.")
    ] = "dev",
    weights: Annotated[tuple[float, float], typer.Option(help="Weights of the two runs.")] = (
        0.5,
        0.5,
    ),
    as_json: AsJson = False,
) -> None:
    """Score answers with a second model that may reject them (SG-Net's answer verifier)."""
    require_training()
    from dataclasses import asdict

    from trainer.results import write_json
    from trainer.stored import check_part

    with open_there(store) as opened:
        for folder, name in ((run, split), (run, tune_on), (verifier, split)):
            check_part(opened, folder, name, lang if name == split else None)
        from trainer.evaluation.verifier import Weights, verify_run

        quiet_transformers()
        found = verify_run(
            run,
            verifier,
            opened,
            split,
            lang or [],
            tune_on=tune_on,
            weights=Weights(*weights),
            parser=parser,
        )
    path = run / f"verified-{split}.json"
    content = {"verifier": str(verifier), "weights": weights, "languages": {}}
    content["languages"] = {name: asdict(one) for name, one in found.items()}
    write_json(path, content)
    if as_json:
        print_json(content)
        return
    rows = [
        (lang, one.examples, f"{one.exact_match:.4f}", f"{one.f1:.4f}", f"{one.threshold:.4f}")
        for lang, one in found.items()
    ]
    print_table(("language", "questions", "exact_match", "f1", "threshold"), rows, title=split)
    typer.echo(f"Every number is in {path}", err=True)
