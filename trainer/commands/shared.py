"""Options and checks that commands share; nothing here imports torch."""

from __future__ import annotations

from typing import Annotated

import typer

Langs = Annotated[
    list[str] | None,
    typer.Option("--lang", help="Languages to score, as en,fr. Default: all of the split."),
]
ParserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--parser",
        help="Parser whose trees to read, by name or fingerprint, or one per language, as "
        "en:NAME,fr:NAME. Needed if several are stored and none is the model's.",
    ),
]


def quiet_transformers() -> None:
    """Turn off the progress bars of loading weights."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def one_language(lang: str) -> str:
    from syntax.errors import SpecError
    from syntax.lists import listed

    langs = listed(lang)
    if len(langs) > 1:
        raise SpecError(f"`lang={lang}` names {len(langs)} languages; give one at a time")
    return langs[0]
