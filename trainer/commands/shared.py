"""What the commands of this package share; nothing here imports torch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

Store = Annotated[
    str, typer.Option("--store", envvar="PARSEBANK_STORE", help="Folder or URL of the store.")
]


def require_training() -> None:
    """Refuse to go on without the libraries that train.

    Raises:
        MissingExtraError: With the line that installs them.
    """
    from syntax.errors import MissingExtraError

    missing = [name for name in ("torch", "accelerate") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f'training needs {" and ".join(missing)}; run: pip install "parsebank[train]"',
            missing=missing,
        )
