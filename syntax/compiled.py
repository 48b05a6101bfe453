"""numba's ``njit`` with a cache that can always be written.

numba keeps compiled functions beside their source, or in the user's cache folder, and refuses to
define a function where it can write to neither: an installation of another user's and no home, as
services and containers have it. A folder for temporary files then takes the cache.
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
    """As `numba.njit`; a function that can be cached nowhere else is cached in a temporary folder.

    Args:
        cache: Keep the compiled function on disk.
        nogil: Let other threads run meanwhile.
    """

    def decorate(function: F) -> F:
        try:
            return cast(F, numba.njit(cache=cache, nogil=nogil)(function))
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
        folder = _temporary_cache()
        if folder is not None:
            # The environment tells child processes, and numba itself when it reads it again.
            os.environ[CACHE_DIR] = str(folder)
            setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010 - made when it is read
        return cast(F, numba.njit(cache=folder is not None, nogil=nogil)(function))

    return decorate


def _temporary_cache() -> Path | None:
    """A folder that nobody else can write to, for its files are executed; ``None`` without one."""
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
    """Make the folder, or see whether what is there belongs to this user alone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return private and found.st_uid == os.getuid() and os.access(folder, os.W_OK)
