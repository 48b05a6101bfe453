"""Files of the user, packed or not, as streams of their content.

gzip, bzip2, xz, zstd and zip are recognised by their first bytes, not by name, and unpacked while
they are read. A file may hold several gzip, bzip2, xz or zstd frames; zeros after a frame are
padding. A zip file must hold exactly one file; folders and the additions of macOS do not count.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from syntax.errors import InputError

ENDINGS: Final = (".bz2", ".gz", ".xz", ".zip", ".zst")

_PACKED: Final = 256
"""Packed bytes per step: few, because they may unpack to thousands of times as many."""
_CHUNK: Final = 16 * 1024
_BUFFER: Final = 128 * 1024
_WIDE_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZIP_MARKS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_MARK: Final = (b"ustar", 257)


def plain_path(path: Path) -> Path:
    """Path without the ending of a packed file.

    >>> plain_path(Path("xnli/test-en.tsv.gz")).name
    'test-en.tsv'
    """
    return path.with_suffix("") if path.suffix in ENDINGS else path


def open_file(path: Path) -> io.BufferedReader[Any]:
    """Content of a file, unpacked as far as it is read.

    Raises:
        DamagedFileError: The file is damaged or truncated; raised when reading reaches that place.
        InputError: The file is a tar archive, packed twice, UTF-16, or a zip archive without
            exactly one file.
    """
    kind, content = _opened(path)
    try:
        _refuse_other(content.peek(_CHUNK), kind, path)
    except BaseException:
        content.close()
        raise
    return content


def is_tar(path: Path) -> bool:
    _, content = _opened(path)
    with content:
        return _is_tar(content.peek(_CHUNK))


def tar_files(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Path and content of each regular file in a tar archive, packed or not, in its order.

    A content can be read until the next one is asked for; only what is read is in memory.
    """
    _, content = _opened(path)
    with content:
        try:
            # A stream: an archive that is packed cannot go back.
            with tarfile.open(fileobj=content, mode="r|") as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.isreg() else None
                    if file is not None:
                        yield member.name, file
        except tarfile.TarError as error:
            raise DamagedFileError(
                f"{path} is a damaged tar archive: {error}; fetch or pack it again", path=str(path)
            ) from error


def _opened(path: Path) -> tuple[str, io.BufferedReader[Any]]:
    file = path.open("rb")
    try:
        kind, chunks = _unpacked(file, path)
    except BaseException:
        file.close()
        raise
    return kind, file if chunks is None else io.BufferedReader(_Chunks(file, chunks), _BUFFER)


def _unpacked(file: io.BufferedReader[Any], path: Path) -> tuple[str, Iterator[bytes] | None]:
    start = file.peek(_CHUNK)
    if start.startswith(_ZIP_MARKS):
        return "zip", _named_faults(_member(file, path), "zip", path)
    for mark, (kind, decoder) in _FRAMES.items():
        if start.startswith(mark):
            return kind, _named_faults(_frames(file, decoder), kind, path)
    return "", None


def _frames(file: IO[bytes], new: Callable[[], Any]) -> Iterator[bytes]:
    """Content of frames.

    Python's own file objects ignore damage after a complete xz frame, and those of `zstandard`
    end silently at a truncated frame.
    """
    decoder = None
    for data in iter(partial(file.read, _PACKED), b""):
        rest = data
        while rest := rest if decoder else rest.lstrip(b"\0"):
            decoder = decoder or new()
            yield from _unpacked_steps(decoder, rest)
            rest, decoder = (decoder.unused_data, None) if decoder.eof else (b"", decoder)
    if decoder is not None:
        raise EOFError("it breaks off")


def _unpacked_steps(decoder: Any, data: bytes) -> Iterator[bytes]:
    """Unpack in steps if the decoder has them: bzip2 has large blocks."""
    if not hasattr(decoder, "needs_input"):
        yield decoder.decompress(data)
        return
    yield decoder.decompress(data, _BUFFER)
    while not (decoder.needs_input or decoder.eof):
        yield decoder.decompress(b"", _BUFFER)


def _member(file: IO[bytes], path: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(file) as archive:
        names = [each.filename for each in archive.infolist() if not each.is_dir()]
        names = [name for name in names if not name.startswith("__MACOSX/")]
        if len(names) != 1:
            more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
            raise InputError(
                f"{path} is a zip archive of {len(names)} files ({', '.join(names[:5])}{more}); "
                "expected one: unpack it, and give the folder",
                path=str(path),
            )
        with archive.open(names[0]) as member:
            yield from iter(partial(member.read, _CHUNK), b"")


def _named_faults(chunks: Iterator[bytes], kind: str, path: Path) -> Iterator[bytes]:
    try:
        yield from chunks
    except InputError:
        raise
    except Exception as error:  # the libraries raise various errors for a damaged file
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault; bzip2 raises an OSError without a number for damage
        raise DamagedFileError(
            f"{path} is a damaged {kind} file: {error}; fetch or pack it again", path=str(path)
        ) from error


def _is_tar(start: bytes) -> bool:
    mark, at = _TAR_MARK
    return start.startswith(mark, at)


def _refuse_other(start: bytes, kind: str, path: Path) -> None:
    if _is_tar(start):
        raise InputError(f"{path} is a tar archive; unpack it first", path=str(path))
    if kind and start.startswith((*_FRAMES, *_ZIP_MARKS)):
        raise InputError(f"{path} is packed twice; unpack it first", path=str(path))
    if start.startswith(_WIDE_MARKS):
        raise InputError(f"{path} is UTF-16; convert it to UTF-8 first", path=str(path))


class DamagedFileError(InputError):
    """A packed file that is damaged or breaks off."""


class _Chunks(io.RawIOBase):
    def __init__(self, file: IO[bytes], chunks: Iterator[bytes]) -> None:
        self._file, self._chunks, self._rest = file, chunks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        self._chunks = iter(())  # a decoder may hold megabytes
        with closing(self._file):
            super().close()


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


_FRAMES: Final[Mapping[bytes, tuple[str, Callable[[], Any]]]] = {
    b"\x1f\x8b": ("gzip", partial(zlib.decompressobj, wbits=31)),
    b"\xfd7zXZ\x00": ("xz", partial(lzma.LZMADecompressor, lzma.FORMAT_XZ)),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
    # Three letters could begin a text, so the mark of the first block, or of the end, counts too.
    **{
        b"BZh%d" % size + mark: ("bzip2", bz2.BZ2Decompressor)
        for size in range(1, 10)
        for mark in (b"1AY&SY", b"\x17rE8P\x90")
    },
}
