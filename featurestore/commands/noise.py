"""``parsebank store noise``: a dataset with noisy parses."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from featurestore import DEFAULT_STORE
from featurestore.commands.printing import Langs, Parsers, Where, open_there
from syntax.commands.tables import AsJson, print_rows


def noise(
    dataset: Annotated[str, typer.Argument(help="Dataset to copy with noise.")],
    share: Annotated[
        float, typer.Option(help="Share of words whose head or relation is replaced, 0 to 1.")
    ],
    name: Annotated[str, typer.Option(help="Name of the new dataset.")],
    heads: Annotated[bool, typer.Option("--heads/--no-heads", help="Replace heads.")] = True,
    labels: Annotated[bool, typer.Option("--labels", help="Replace relations as well.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random choice.")] = 0,
    split: Annotated[str | None, typer.Option(help="Split, if there are several.")] = None,
    lang: Langs = None,
    tokenizer: Annotated[str | None, typer.Option(help="Tokenizer, if there are several.")] = None,
    parser: Parsers = None,
    store: Where = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Copy a dataset with a share of its heads or relations replaced at random."""
    from featurestore.reports.noise import add_noise
    from syntax.trees.noise import Noise

    chosen = (("heads", heads), ("labels", labels))
    wanted = Noise(share, tuple(kind for kind, asked in chosen if asked), seed)  # type: ignore[misc]
    with open_there(store) as opened:
        data = opened.dataset(dataset, tokenizer, split, lang, parser=parser)
        report = asdict(add_noise(opened, data, wanted, name))
    print_rows([{"dataset": name, **report}], as_json)
