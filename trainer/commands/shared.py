"""Options and checks that commands share; nothing here imports torch."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Annotated

import typer

Langs = Annotated[
    list[str] | None,
    typer.Option("--lang", help="Languages to score on, as en,fr. All of the split by default."),
]
ParserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--parser",
        help="Whose parses to read, by name or fingerprint; of each language its own as "
        "en:NAME,fr:NAME. Needed where several are stored and none is the model's own.",
    ),
]


def require_training() -> None:
    """Check that the libraries that train are installed.

    Raises:
        MissingExtraError: One is missing; the message has the line that installs them.
    """
    from syntax.extras import missing_extra

    missing = [name for name in ("torch", "accelerate") if find_spec(name) is None]
    if missing:
        raise missing_extra(f"training needs {' and '.join(missing)}", "train")


def quiet_transformers() -> None:
    """Turn off the progress bars of loading weights."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def one_language(lang: str) -> str:
    """The language of a command that reads one.

    Raises:
        SpecError: Several are named.
    """
    from syntax.errors import SpecError
    from syntax.lists import listed

    langs = listed(lang)
    if len(langs) > 1:
        raise SpecError(f"`lang={lang}` names {len(langs)} languages; give one at a time")
    return langs[0]


def is_first_process() -> bool:
    """Whether this process writes and shows the results of a run of several, by torchrun's rank."""
    return os.environ.get("RANK", "0") == "0"
