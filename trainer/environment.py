"""Processes and libraries; nothing here imports torch."""

from __future__ import annotations

import os
from importlib.util import find_spec

from syntax.extras import missing_extra


def require_training() -> None:
    missing = [name for name in ("torch", "accelerate") if find_spec(name) is None]
    if missing:
        raise missing_extra(f"training needs {' and '.join(missing)}", "train")


def is_first_process() -> bool:
    return os.environ.get("RANK", "0") == "0"
