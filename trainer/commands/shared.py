"""What the commands of this package share; nothing here imports torch."""

from __future__ import annotations

import os
from importlib.util import find_spec


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


def quiet_transformers() -> None:
    """Leave the terminal to us: no bars for loading weights."""
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()


def is_first_process() -> bool:
    """Whether this one writes and shows what all processes of a run did; torchrun says so."""
    return os.environ.get("RANK", "0") == "0"
