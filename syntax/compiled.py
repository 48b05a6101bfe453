"""numba's ``njit`` and ``intrinsic``, imported at the first call, which takes a third of a second.

numba keeps compiled functions beside their source or in the user's cache folder, and fails if it
can write to neither; then the cache is a temporary folder.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from pkgutil import resolve_name
from threading import RLock
from types import FunctionType
from typing import Any, Final, TypeVar, cast

CACHE_DIR: Final = "NUMBA_CACHE_DIR"

_LOCK: Final = RLock()

F = TypeVar("F", bound=Callable[..., Any])


def njit(*, cache: bool, nogil: bool) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        return cast(F, _Compiled(function, cache, nogil))

    return decorate


def intrinsic(function: Callable[..., Any]) -> Callable[..., None]:
    """An instruction for compiled functions: gives its signature, and what writes it for LLVM."""
    return _Intrinsic(function, False, False)


class _Compiled:
    """A function compiled at its first call; its attributes are the dispatcher's."""

    def __init__(self, function: Any, cache: bool, nogil: bool) -> None:
        update_wrapper(self, function)
        self._function: FunctionType = function
        self._options = (cache, nogil)
        self._dispatcher: Any = None

    def __call__(self, *args: Any, **named: Any) -> Any:
        return (self._dispatcher or self.dispatcher())(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dispatcher(), name)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle by name, as other functions."""
        return resolve_name, (f"{self._function.__module__}:{self._function.__qualname__}",)

    def dispatcher(self) -> Any:
        """Dispatcher of the function; the functions it calls are replaced by their own, too."""
        with _LOCK:  # another thread must not call it before its names are those that numba knows
            if self._dispatcher is None:
                names = self._function.__globals__
                made = self._made()
                for name in self._function.__code__.co_names:
                    if isinstance(called := names.get(name), _Compiled):
                        names[name] = called.dispatcher()
                self._dispatcher = made
            return self._dispatcher

    def _made(self) -> Any:
        return _dispatcher(self._function, *self._options)


class _Intrinsic(_Compiled):
    def _made(self) -> Any:
        from numba.extending import intrinsic as made

        return made(self._function)


def _dispatcher(function: FunctionType, cache: bool, nogil: bool) -> Any:
    import numba

    try:
        return numba.njit(cache=cache, nogil=nogil)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
    folder = _temporary_cache()
    if folder is not None:
        # Child processes read the environment, and so does numba when it reloads its settings.
        os.environ[CACHE_DIR] = str(folder)
        setattr(numba.config, "CACHE_DIR", str(folder))  # noqa: B010 - made when it is read
    return numba.njit(cache=folder is not None, nogil=nogil)(function)


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
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return private and found.st_uid == os.getuid() and os.access(folder, os.W_OK)
