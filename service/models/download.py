"""Fetch one file over HTTP, or from a folder: resumed, checked, and never half there.

``<file>.part.json`` beside the downloaded ``<file>.part`` keeps the ETag or the date with which
the rest is requested.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from service.parsers.records import RecordedFile
from syntax.errors import DownloadError
from syntax.strict_json import parse_json

_BLOCK: Final = 1 << 18
_TRIES: Final = 4
_CONNECT_SECONDS: Final = 10.0
_RETRIED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_MISSING: Final = frozenset({404, 410})

Report = Callable[[str, int, int | None], None]
"""Called as a file grows, with its name, its bytes so far, and its total size, if known."""


class NoSpaceError(DownloadError):
    """The disk is full."""


class NotThereError(DownloadError):
    """The source answers, but has no such file."""


class _BrokenOffError(Exception):
    """A transfer ended early; the rest may come with the next try."""


@contextmanager
def open_client(timeout: float) -> Iterator[httpx.Client]:
    """Client for downloads; proxies are those of the environment."""
    # What is fetched is compressed already, and a compressed transfer could not be resumed.
    headers = {"Accept-Encoding": "identity", "User-Agent": "parsebank"}
    timeouts = httpx.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
    with httpx.Client(timeout=timeouts, follow_redirects=True, headers=headers) as client:
        yield client


def is_url(source: str) -> bool:
    return "://" in source


def matches(path: Path, file: RecordedFile) -> bool:
    return file.has_checksum and path.is_file() and _mismatch(path, file) is None


class Downloader:
    """Fetches files; ``wait`` are the seconds before the second try, and double with each."""

    def __init__(
        self, client: httpx.Client, report: Report = lambda *_: None, wait: float = 1.0
    ) -> None:
        self._client = client
        self._report = report
        self._wait = wait

    def fetch(self, file: RecordedFile, sources: Sequence[str], folder: Path) -> str:
        """Fetch a file into a folder, continuing an earlier try; returns the source that had it.

        The sources are URLs or paths of the same file, tried in turn.
        """
        target, failures = folder / file.path, []
        for source in sources:
            try:
                self._fetch_from(source, file, target)
            except DownloadError as error:
                failures.append(error)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise NoSpaceError(
                    f"no room in {target.parent}: {error.strerror}. Make room and try again: what "
                    "has come is kept",
                    path=str(target.parent),
                ) from None
            else:
                return source
        if len(failures) == 1:
            raise failures[0]
        raise DownloadError("; ".join(error.message for error in failures), sources=list(sources))

    def fetch_text(self, source: str) -> str | None:
        with tempfile.TemporaryDirectory(prefix="parsebank-") as folder:
            try:
                self.fetch(RecordedFile("text"), [source], Path(folder))
                return Path(folder, "text").read_text(encoding="utf-8")
            except NotThereError:
                return None
            except UnicodeDecodeError:
                raise DownloadError(f"{source} is no text in UTF-8", source=source) from None

    def _fetch_from(self, source: str, file: RecordedFile, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        if not is_url(source):
            self._copy(Path(source), part)
        elif self._download(source, part) and _mismatch(part, file):
            # The first half may have been another file's: once more, from the start.
            _forget(part)
            self._download(source, part)
        wrong = _mismatch(part, file)
        if wrong is None:
            part.replace(target)
        _forget(part)
        if wrong is not None:
            kind, found, expected = wrong
            raise DownloadError(
                f"{source} has {kind} {found}, but {expected} was expected; nothing was kept. Try "
                "again, or another source (--from)",
                source=source,
                found=found,
                expected=expected,
            )

    def _copy(self, source: Path, part: Path) -> None:
        try:
            with source.open("rb") as file:
                _forget(part)
                self._append(part, iter(partial(file.read, _BLOCK), b""), source.stat().st_size)
        except (FileNotFoundError, IsADirectoryError):
            raise NotThereError(
                f"there is no file {source}; check the folder to fetch from", path=str(source)
            ) from None

    def _download(self, url: str, part: Path) -> bool:
        """True if the file was put together from several requests."""
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
        start, validator = _so_far(part, url)
        headers = {"Range": f"bytes={start}-", "If-Range": validator} if start else {}
        try:
            with self._client.stream("GET", url, headers=headers) as response:
                sent = response.headers.get("content-range", "")
                is_past_end = response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE
                goes_on = response.status_code == httpx.codes.PARTIAL_CONTENT
                if is_past_end and sent == f"bytes */{start}":
                    return True  # nothing is missing
                if is_past_end or (goes_on and not sent.startswith(f"bytes {start}-")):
                    _forget(part)
                    raise _BrokenOffError("the server sent another part than asked for")
                _check_answer(response, url)
                if not goes_on:
                    # Emptied first: the note is about what is in the part.
                    part.write_bytes(b"")
                    _write_note(part, url, response)
                start = _size(part)
                length = response.headers.get("content-length", "")
                total = start + int(length) if length.isdecimal() else None
                done = self._append(part, response.iter_raw(_BLOCK), total)
                if total not in (None, done):
                    raise _BrokenOffError(f"{done:,} of {total:,} bytes came")
                return goes_on
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise DownloadError(f"{url} is no URL to fetch: {error}", url=url) from None
        except httpx.HTTPError as error:
            text = f"{type(error).__name__}: {error}".removesuffix(": ")
            raise _BrokenOffError(text) from None

    def _append(self, part: Path, blocks: Iterable[bytes], total: int | None) -> int:
        done, free = _size(part), shutil.disk_usage(part.parent).free
        if total is not None and total - done > free:
            needed = f"{(total - done) / 1e6:,.1f} MB are needed and {free / 1e6:,.1f} MB free"
            raise OSError(errno.ENOSPC, needed)
        with part.open("ab") as file:
            for block in blocks:
                file.write(block)
                done += len(block)
                self._report(part.stem, done, total)
        return done


def _check_answer(response: httpx.Response, url: str) -> None:
    status = f"{response.status_code} {response.reason_phrase}"
    if response.status_code in _RETRIED:
        raise _BrokenOffError(f"the server answered {status}")
    if not response.is_success:
        kind = NotThereError if response.status_code in _MISSING else DownloadError
        raise kind(
            f"{url} was answered with {status}; check the name and the source (--from, models_url)",
            url=url,
            status=response.status_code,
        )
    if response.headers.get("content-type", "").startswith("text/html"):
        raise DownloadError(
            f"{url} was answered with a web page, not a file; the archive may have moved: give "
            "another source (--from, models_url)",
            url=url,
        )


def _mismatch(path: Path, file: RecordedFile) -> tuple[str, str, str] | None:
    """Kind, found and expected value of the first checksum that a file does not have."""
    for kind, expected in (("SHA-256", file.sha256), ("MD5", file.md5)):
        if expected is not None:
            # Stanza's list of models gives no better checksum than MD5.
            digest: Any = partial(hashlib.new, kind.replace("-", ""), usedforsecurity=False)
            with path.open("rb") as content:
                found = hashlib.file_digest(content, digest).hexdigest()
            if found != expected.lower():
                return kind, found, expected
    return None


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _write_note(part: Path, url: str, response: httpx.Response) -> None:
    """Note the validator; a weak ETag does not suffice to resume (RFC 9110)."""
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
