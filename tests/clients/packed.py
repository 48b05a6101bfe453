"""What packs files, by the ending of the name that they get."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import zstandard


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip archive of these files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return archive.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".bz2": bz2.compress,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zip": lambda content: zipped({"folder/": b"", "folder/file": content, "__MACOSX/._f": b"x"}),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def pack_folder(folder: Path, to: Path, ending: str) -> None:
    """Copy a folder, each of its files packed."""
    for path in folder.rglob("*"):
        target = to / path.relative_to(folder)
        if path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            packed = PACKERS[ending](path.read_bytes())
            target.with_name(target.name + ending).write_bytes(packed)
