"""The place of a store: a local folder or a prefix of an object store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow.fs as pa_fs
from deltalake.fs import DeltaStorageHandler

from featurestore.tables.file_cache import FileCache
from syntax.errors import SpecError, StoreError

_UNUSABLE: Final = re.compile(r"[\[\]|^\\\x00-\x1f]")
"""Characters of a path that ``deltalake`` cannot turn into a URL."""


@dataclass(frozen=True)
class Location:
    """A folder, local or remote.

    Attributes:
        uri: Absolute path, or a URL such as ``s3://bucket/prefix``.
        options: Storage options of the object store, as ``deltalake`` takes them.
        copies: Cache of remote files on this machine, if any.
    """

    uri: str
    options: Mapping[str, str] = field(default_factory=dict)
    copies: FileCache | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        uri: str | Path,
        options: Mapping[str, str] | None = None,
        copies: FileCache | None = None,
    ) -> Location:
        """The location that a user's path or URL names; a local one has no copies."""
        text = str(uri)
        if "://" not in text:
            text, copies = str(Path(text).expanduser().absolute()), None
            bad = sorted(set(_UNUSABLE.findall(text)))
            if bad:
                raise StoreError(
                    f"a store cannot lie in {text!r}: rename what has {' '.join(bad)} in it"
                )
        else:
            # The library of the object store ends the thread at an address that is no URL.
            given = options or {}
            for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
                endpoint = given.get(name) or given.get(name.lower()) or os.environ.get(name, "")
                parts = urlsplit(endpoint)
                if endpoint and not (parts.scheme in ("http", "https") and parts.hostname):
                    raise SpecError(
                        f"{name} is {endpoint!r}, which is no address of an object store; "
                        "give one such as https://s3.example.org"
                    )
        return cls(text.rstrip("/"), dict(options or {}), copies)

    def __reduce__(self) -> tuple[type[Location], tuple[Any, ...]]:
        # Each process opens its own file systems.
        return Location, (self.uri, self.options, self.copies)

    @property
    def is_local(self) -> bool:
        return "://" not in self.uri

    def child(self, *names: str) -> Location:
        return Location("/".join((self.uri, *names)), self.options, self.copies)

    @cached_property
    def files(self) -> pa_fs.FileSystem:
        """A file system whose root is this folder."""
        if self.is_local:
            return pa_fs.SubTreeFileSystem(self.uri, pa_fs.LocalFileSystem())
        return pa_fs.PyFileSystem(self._handler)

    @cached_property
    def _handler(self) -> DeltaStorageHandler:
        return DeltaStorageHandler(self.uri, dict(self.options))

    def folders(self) -> list[str]:
        """Names of the folders directly below, sorted; none if this one does not exist."""
        selector = pa_fs.FileSelector("", allow_not_found=True)
        infos = self.files.get_file_info(selector)
        return sorted(info.base_name for info in infos if info.type == pa_fs.FileType.Directory)

    def read(self, name: str) -> bytes | None:
        try:
            with self.files.open_input_stream(name) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {name} in {self.uri}: {error}") from error

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all, with its folders if they are missing."""
        try:
            if self.is_local:
                self._write_local(name, content, Path.replace)
            else:
                self._put(name, content)
        except OSError as error:
            raise StoreError(f"cannot write {name} in {self.uri}: {error}") from error

    def write_new(self, name: str, content: bytes) -> bool:
        """As `write`, unless there is such a file; ``True`` if there was none."""
        try:
            if self.is_local:
                self._write_local(name, content, os.link)
            elif self.files.get_file_info([name])[0].is_file:
                return False
            else:
                self._put(name, content)
        except FileExistsError:
            return False
        except OSError as error:
            raise StoreError(f"cannot write {name} in {self.uri}: {error}") from error
        return True

    def _write_local(
        self, name: str, content: bytes, place: Callable[[Path, Path], object]
    ) -> None:
        path = Path(self.uri, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{uuid4().hex}")
        try:
            draft.write_bytes(content)
            place(draft, path)
        finally:
            draft.unlink(missing_ok=True)

    def _put(self, name: str, content: bytes) -> None:
        # Not through `files`: Arrow hands its streams buffers, and this library takes bytes only.
        stream = self._handler._handler.open_output_stream(name)
        stream.write(content)
        stream.close()  # type: ignore[attr-defined]  # it is there, the stub forgot it
