"""numba's ``njit`` with a cache that can always be written.

numba keeps compiled functions beside their source or in the user's cache folder, and fails if it
can write to neither, as in services and containers that run as another user without a home. Then
the cache is a temporary folder.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba

CACHE_DIR: Final = "NUMBA_CACHE_DIR"

F = TypeVar("F", bound=Callable[..., Any])


def njit(*, cache: bool, nogil: bool) -> Callable[[F], F]:
    """`numba.njit` with a temporary folder as the last place for the cache.

    Args:
        cache: Keep the compiled function on disk.
        nogil: Release the GIL while the function runs.
    """

    def decorate(function: F) -> F:
        try:
            return cast(F, numba.njit(cache=cache, nogil=nogil)(function))
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
        folder = _temporary_cache()
        if folder is not None:
            # Child processes read the environment, and so does numba when it reloads its settings.
            os.environ[CACHE_DIR] = str(folder)
            setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010 - made when it is read
        return cast(F, numba.njit(cache=folder is not None, nogil=nogil)(function))

    return decorate


def _temporary_cache() -> Path | None:
    """A folder that only this user can write to, since its files are executed; else ``None``."""
    why = "neither the installation nor the home folder can be written"
    try:
        folder = Path(tempfile.gettempdir(), f"parsebank-numba-{os.getuid()}")
        if not _is_ours(folder):
            folder = Path(tempfile.mkdtemp(prefix="parsebank-numba-"))
    except OSError as error:
        warnings.warn(
            f"{why}, nor a temporary folder ({error}): compiled functions are not kept, and each "
            f"start takes longer. Set {CACHE_DIR} to a folder that can be written",
            RuntimeWarning,
            stacklevel=4,
        )
        return None
    warnings.warn(
        f"{why}: compiled functions are kept in {folder}. Set {CACHE_DIR} to keep them elsewhere",
        RuntimeWarning,
        stacklevel=4,
    )
    return folder


def _is_ours(folder: Path) -> bool:
    """Make the folder if necessary; whether only this user can write to it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return private and found.st_uid == os.getuid() and os.access(folder, os.W_OK)
