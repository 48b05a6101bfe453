"""The most recently used tokenizers, and the check of their names."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from service.settings import Settings
from service.tokenizers import (
    LoadedTokenizer,
    bundled_tokenizers,
    find_folder,
    is_hub_name,
    lasting_name,
    read_tokenizer,
    unknown_tokenizer,
)
from syntax.errors import UnknownTokenizerError

ANYWHERE: Final = Path("/")
"""Value of `tokenizers_dir` that allows every folder of this machine."""

_WAYS: Final = (
    "Give the path of a folder below tokenizers_dir (a setting: PARSEBANK_TOKENIZERS_DIR), or a "
    "name that is in the Hugging Face cache or reachable on the hub."
)

Stamps = tuple[tuple[str, int, int], ...]
"""Name, time of the last change and size of each file of a folder."""


class TokenizerCache:
    """Loads tokenizers by name and keeps the most recently used ones. Safe for threads.

    A folder's files are looked at each time (50 µs), so that a tokenizer may be replaced. With
    ``anywhere`` all folders may be named: for jobs, whose tokenizers were checked when they were
    accepted.
    """

    def __init__(self, settings: Settings, *, anywhere: bool = False) -> None:
        self._settings = settings
        self._root = ANYWHERE if anywhere else settings.tokenizers_dir
        self._kept: OrderedDict[str, tuple[Stamps, LoadedTokenizer]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> LoadedTokenizer:
        folder = self.folder(name)
        stamps = _stamps(folder)
        found = self._find(name, stamps)
        if found is not None:
            return found
        # Stamps first: a file that changes while it is read is then read again.
        settings = self._settings
        loaded = read_tokenizer(
            name, folder, settings.hub_timeout_seconds, offline=settings.offline
        )
        with self._lock:
            self._kept[name] = stamps, loaded
            while len(self._kept) > settings.max_loaded_tokenizers:
                self._kept.popitem(last=False)
        return loaded

    def cached(self, name: str) -> LoadedTokenizer | None:
        """Use a kept tokenizer; ``None`` if its files have changed."""
        if name not in self._kept:
            return None
        try:
            return self._find(name, _stamps(self.folder(name)))
        except UnknownTokenizerError:
            return None

    def lasting_name(self, name: str) -> str:
        """`LoadedTokenizer.lasting_name` of a name that may be used; nothing is loaded."""
        folder = None if name in bundled_tokenizers() else self.folder(name)
        return lasting_name(name, folder)

    def folder(self, name: str) -> Path | None:
        """The folder of a name; ``None`` for a name on the hub.

        Nothing is told of folders that may not be named.
        """
        if name in bundled_tokenizers():
            return bundled_tokenizers()[name]
        if self._root == ANYWHERE or name == self._settings.tokenizer:
            return find_folder(name)
        folder = _below(self._root, name)
        try:
            if folder is not None and folder.is_dir():
                return folder
        except OSError as error:  # such as a name that is too long
            reason = f"it is no folder that can be used ({error.strerror})"
            raise unknown_tokenizer(name, reason, _WAYS) from None
        if not is_hub_name(name):
            raise unknown_tokenizer(
                name, "it is neither a name nor a folder below the service's tokenizers_dir", _WAYS
            )
        return None

    def _find(self, name: str, stamps: Stamps) -> LoadedTokenizer | None:
        with self._lock:
            kept = self._kept.get(name)
            if kept is None or kept[0] != stamps:
                return None
            self._kept.move_to_end(name)
            return kept[1]


def _below(root: Path | None, name: str) -> Path | None:
    if root is None or "\0" in name:
        return None
    top = os.path.abspath(root)  # noqa: PTH100 - links stay as they are, `..` goes
    path = os.path.abspath(os.path.join(top, name))  # noqa: PTH100, PTH118
    return Path(path) if path.startswith(os.path.join(top, "")) else None  # noqa: PTH118


def _stamps(folder: Path | None) -> Stamps:
    if folder is None:
        return ()
    try:
        with os.scandir(folder) as entries:
            stats = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    except OSError:
        return ()
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))
