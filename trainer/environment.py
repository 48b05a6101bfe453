"""What this process is, and which libraries it has; nothing here imports torch."""

from __future__ import annotations

import os
from importlib.util import find_spec

from syntax.extras import missing_extra


def require_training() -> None:
    """Check that the libraries that train are installed."""
    missing = [name for name in ("torch", "accelerate") if find_spec(name) is None]
    if missing:
        raise missing_extra(f"training needs {' and '.join(missing)}", "train")


def is_first_process() -> bool:
    """True if this process writes and shows the results of a run; torchrun numbers processes."""
    return os.environ.get("RANK", "0") == "0"
