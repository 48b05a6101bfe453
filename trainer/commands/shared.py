"""What the commands of this package share; nothing here imports torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec


def require_training() -> None:
    """Refuse to go on without the libraries that train.

    Raises:
        MissingExtraError: With the line that installs them.
    """
    from syntax.extras import missing_extra

    missing = [name for name in ("torch", "accelerate") if find_spec(name) is None]
    if missing:
        raise missing_extra(f"training needs {' and '.join(missing)}", "train")


def quiet_transformers() -> None:
    """Leave the terminal to us: no bars for loading weights."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def is_first_process() -> bool:
    """Whether this one writes and shows what all processes of a run did; torchrun says so."""
    return os.environ.get("RANK", "0") == "0"


def show_table(title: str | None, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, its cells as they are."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for row in rows:
        table.add_row(*map(Text, row))
    Console(markup=False, emoji=False).print(table)
