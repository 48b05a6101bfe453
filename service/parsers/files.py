"""Regular files of a models folder: a pipe would never end."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syntax.errors import ModelLoadError
from syntax.strict_json import parse_json


def regular_file(path: Path) -> os.stat_result:
    try:
        status = path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise ModelLoadError(
            f"{path} is not a regular file, but a {_kind(status.st_mode)}; remove it from its "
            "folder",
            path=str(path),
        )
    return status


def read_file(path: Path) -> str | None:
    """Text of a file; ``None`` if there is nothing under the name."""
    if not os.path.lexists(path):
        return None
    regular_file(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(path, error) from None


def read_object(path: Path) -> dict[str, Any]:
    try:
        text = read_file(path)
        content = {} if text is None else parse_json(text)
    except UnicodeDecodeError as error:
        raise ModelLoadError(f"{path} is not UTF-8: {error}", path=str(path)) from None
    except ValueError as error:
        raise ModelLoadError(f"{path} is not JSON: {error}", path=str(path)) from None
    if not isinstance(content, dict):
        raise ModelLoadError(f"{path} is not a JSON object", path=str(path))
    return content


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock as long as the process lives; without ``wait``, a `BlockingIOError`."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def unreadable(path: Path, error: OSError) -> ModelLoadError:
    if isinstance(error, FileNotFoundError):
        what = "points to nothing" if path.is_symlink() else "is missing"
        return ModelLoadError(f"the model file {path} {what}; fetch it again", path=str(path))
    return ModelLoadError(
        f"the model file {path} cannot be read ({error.strerror}); see to it that the service's "
        "user may, or remove it",
        path=str(path),
    )


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "folder", stat.S_ISFIFO: "pipe", stat.S_ISSOCK: "socket"}
    return next((kind for is_one, kind in kinds.items() if is_one(mode)), "device")
