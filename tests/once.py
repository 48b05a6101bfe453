"""Folders that the processes of a test run share: the first of them makes each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock


def made_once(path: Path, make: Callable[[], object]) -> Path:
    """A path in the common folder: the first process makes it, the others wait."""
    made = path.with_name(f"{path.name}.made")
    path.parent.mkdir(exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        if not made.exists():
            make()
            made.touch()
    return path
