"""Fetch one file over HTTP, or from a folder: resumed, checked, and never half there.

The downloaded part lies in ``<file>.part``; beside it, ``<file>.part.json`` keeps the ETag or the
date with which the rest is requested.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx

from syntax.errors import DownloadError
from syntax.fingerprint import file_sha256
from syntax.strict_json import parse_json

_BLOCK: Final = 1 << 18
_TRIES: Final = 4
_CONNECT_SECONDS: Final = 10.0
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_MISSING: Final = frozenset({404, 410})

Report = Callable[[str, int, int | None], None]
"""Told as a file grows: its name, bytes that are there, bytes there will be (if known)."""


class NoSpaceError(DownloadError):
    """The disk is full."""


class NotThereError(DownloadError):
    """The source answers, and has no such file."""


@dataclass(frozen=True)
class Wanted:
    """A file to fetch.

    Attributes:
        target: Where it is to lie.
        sources: URLs or paths of the same file, tried in turn.
        sha256: Checksum that it must have, if known.
        md5: Another one, for sources that give no SHA-256.
    """

    target: Path
    sources: tuple[str, ...]
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True)
class Fetched:
    """A downloaded file.

    Attributes:
        source: URL or path.
        checked: Whether there was a checksum to compare.
    """

    source: str
    sha256: str
    size: int
    checked: bool


@contextmanager
def open_client(timeout: float) -> Iterator[httpx.Client]:
    """A client for downloads; proxies are those of the environment."""
    # What is fetched is compressed already, and a compressed transfer could not be resumed.
    headers = {"Accept-Encoding": "identity", "User-Agent": "parsebank"}
    timeouts = httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
    with httpx.Client(timeout=timeouts, follow_redirects=True, headers=headers) as client:
        yield client


def is_url(source: str) -> bool:
    """Whether a source is on the network, and not a path."""
    return "://" in source


class Downloader:
    """Fetches files; one after the other.

    Args:
        client: For sources on the network.
        report: Told how a file grows.
        wait: Seconds before the second try; each further one waits twice as long.
    """

    def __init__(
        self, client: httpx.Client, report: Report = lambda *_: None, wait: float = 1.0
    ) -> None:
        self._client = client
        self._report = report
        self._wait = wait

    def fetch(self, wanted: Wanted) -> Fetched:
        """Fetch a file, going on where an earlier try broke off.

        Raises:
            DownloadError: It cannot be had, is not the one expected, or the disk is full.
        """
        failures = []
        for source in wanted.sources:
            try:
                return self._fetch_from(source, wanted)
            except NoSpaceError:
                raise
            except DownloadError as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise DownloadError(
            "; ".join(failure.message for failure in failures), sources=list(wanted.sources)
        )

    def fetch_text(self, source: str) -> str | None:
        """A small text file; `None` if the source has no such file.

        Raises:
            DownloadError: The source cannot be reached, or sends something else.
        """
        with tempfile.TemporaryDirectory(prefix="parsebank-") as folder:
            target = Path(folder) / "text"
            try:
                self.fetch(Wanted(target, (source,)))
                return target.read_text(encoding="utf-8")
            except NotThereError:
                return None
            except UnicodeDecodeError:
                raise DownloadError(f"{source} is no text in UTF-8", source=source) from None

    def _fetch_from(self, source: str, wanted: Wanted) -> Fetched:
        part = wanted.target.with_name(wanted.target.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        with _disk_errors(part):
            if not is_url(source):
                self._copy(Path(source), part)
            elif self._download(source, part):
                try:
                    return _finish(part, source, wanted)
                except DownloadError:
                    # The first half may have been another file's: once more, from the start.
                    self._download(source, part)
            return _finish(part, source, wanted)

    def _download(self, url: str, part: Path) -> bool:
        """Bring the whole file; says whether it was put together from several requests."""
        resumed, failed, wait = False, 0, self._wait
        while True:
            before = _size(part)
            try:
                return self._request(url, part) or resumed
            except _BrokenOffError as error:
                failed = failed + 1 if _size(part) <= before else 1
                if failed >= _TRIES:
                    raise DownloadError(
                        f"{url} could not be fetched in {_TRIES} tries ({error}); check the "
                        "network and the proxy settings and try again: what has come is kept. "
                        "Without a network, fetch from a folder (--from)",
                        url=url,
                    ) from None
                resumed = True
                time.sleep(wait)
                wait = min(wait * 2, 30.0)

    def _request(self, url: str, part: Path) -> bool:
        """One request for what is missing; says whether it went on with an earlier one."""
        start, validator = _so_far(part, url)
        headers = {"Range": f"bytes={start}-", "If-Range": validator} if start else {}
        try:
            with self._client.stream("GET", url, headers=headers) as response:
                answered = response.headers.get("content-range", "")
                is_past_end = response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE
                goes_on = response.status_code == httpx.codes.PARTIAL_CONTENT
                if is_past_end and answered == f"bytes */{start}":
                    return True  # nothing is missing
                if is_past_end or (goes_on and not answered.startswith(f"bytes {start}-")):
                    _forget(part)
                    raise _BrokenOffError("the server sent another part than asked for")
                _check_status(response, url)
                start = start if goes_on else 0
                length = response.headers.get("content-length", "")
                total = start + int(length) if length.isdecimal() else None
                _note(part, url, response)
                done = self._write(response.iter_raw(_BLOCK), part, start, total)
                if total not in (None, done):
                    raise _BrokenOffError(f"{done:,} of {total:,} bytes came")
                return goes_on
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise DownloadError(f"{url} is no URL to fetch: {error}", url=url) from None
        except httpx.HTTPError as error:
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise _BrokenOffError(text) from None

    def _copy(self, source: Path, part: Path) -> None:
        try:
            with source.open("rb") as file:
                blocks = iter(partial(file.read, _BLOCK), b"")
                self._write(blocks, part, 0, source.stat().st_size)
        except (FileNotFoundError, IsADirectoryError):
            _forget(part)
            raise NotThereError(
                f"there is no file {source}; check the folder to fetch from", path=str(source)
            ) from None

    def _write(self, blocks: Iterable[bytes], part: Path, start: int, total: int | None) -> int:
        """Append to a part from ``start`` on; returns its size."""
        free = shutil.disk_usage(part.parent).free
        if total is not None and total - start > free:
            needed = f"{(total - start) / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB free"
            raise OSError(errno.ENOSPC, needed)
        done = start
        with part.open("ab" if start else "wb") as file:
            for block in blocks:
                file.write(block)
                done += len(block)
                self._report(part.stem, done, total)
        return done


class _BrokenOffError(Exception):
    """A transfer ended early; the rest may come with the next try."""


def _check_status(response: httpx.Response, url: str) -> None:
    status = response.status_code
    if status in _RETRIED:
        raise _BrokenOffError(f"the server answered {status} {response.reason_phrase}")
    if not response.is_success:
        kind = NotThereError if status in _MISSING else DownloadError
        raise kind(
            f"{url} was answered with {status} {response.reason_phrase}; check the name and the "
            "source (--from, models_url)",
            url=url,
            status=status,
        )
    if response.headers.get("content-type", "").startswith("text/html"):
        raise DownloadError(
            f"{url} was answered with a web page, not a file; the archive may have moved: give "
            "another source (--from, models_url)",
            url=url,
        )


def _note_of(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _note(part: Path, url: str, response: httpx.Response) -> None:
    """Keep by what the server can recognise the file; a weak ETag does not do (RFC 9110)."""
    etag = response.headers.get("etag", "")
    validator = etag if etag.startswith('"') else response.headers.get("last-modified", "")
    note = json.dumps({"url": url, "validator": validator})
    _note_of(part).write_text(note, encoding="utf-8")


def _so_far(part: Path, url: str) -> tuple[int, str]:
    """Number of bytes already downloaded, and the validator of the rest."""
    try:
        note = parse_json(_note_of(part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0, ""
    validator = note.get("validator") if isinstance(note, dict) else None
    if not validator or note.get("url") != url:
        return 0, ""
    return _size(part), validator


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note_of(part).unlink(missing_ok=True)


def _finish(part: Path, source: str, wanted: Wanted) -> Fetched:
    """Put the whole file in its place, if it is the one expected."""
    try:
        sha256, size = file_sha256(part), part.stat().st_size
        if wanted.sha256 is not None:
            _compare(source, "SHA-256", sha256, wanted.sha256)
        if wanted.md5 is not None:
            _compare(source, "MD5", file_md5(part), wanted.md5)
        part.replace(wanted.target)
    finally:
        _forget(part)
    return Fetched(source, sha256, size, checked=bool(wanted.sha256 or wanted.md5))


def _compare(source: str, kind: str, found: str, expected: str) -> None:
    if found != expected.lower():
        raise DownloadError(
            f"{source} has {kind} {found}, but {expected} was expected; nothing was kept. Try "
            "again, or another source (--from)",
            source=source,
            found=found,
            expected=expected,
        )


def file_md5(path: Path) -> str:
    """MD5 of a file's bytes: Stanza's list of models gives no better checksum."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


@contextmanager
def _disk_errors(part: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise NoSpaceError(
            f"no room in {part.parent}: {error.strerror}. Make room and try again: what has come "
            "is kept",
            path=str(part.parent),
        ) from None
