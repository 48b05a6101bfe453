"""Downloads from a real HTTP server that breaks off, ignores ranges, errs and lies."""

from __future__ import annotations

import hashlib
import json
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.models.download import (
    Downloader,
    NoSpaceError,
    NotThereError,
    open_client,
)
from service.parsers.records import RecordedFile
from syntax.errors import DownloadError

from .file_server import FileServer, file_server

CONTENT = random.Random(3).randbytes(1_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as files:
        files.files["/model"] = CONTENT
        yield files


@pytest.fixture
def downloader() -> Iterator[Downloader]:
    with open_client(timeout=10.0) as client:
        yield Downloader(client, wait=0.01)


Fetch = Callable[..., str]


@pytest.fixture
def fetch(server: FileServer, downloader: Downloader, tmp_path: Path) -> Fetch:
    """Fetch ``model`` into ``tmp_path``, from the server unless other sources are given."""

    def run(*sources: str, **checksums: str) -> str:
        file = RecordedFile("model", **checksums)
        return downloader.fetch(file, sources or (f"{server.url}/model",), tmp_path)

    return run


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def put_part(folder: Path, server: FileServer, content: bytes) -> None:
    """The part that an earlier run left, with the validator of the present file."""
    (folder / "model.part").write_bytes(content)
    validator = f'"{hashlib.md5(CONTENT).hexdigest()}"'
    note = {"url": f"{server.url}/model", "validator": validator}
    (folder / "model.part.json").write_text(json.dumps(note))


def test_download_is_complete_and_checked(server: FileServer, tmp_path: Path) -> None:
    reports: list[tuple[str, int, int | None]] = []
    file = RecordedFile("model", sha256=SHA256.upper(), md5=hashlib.md5(CONTENT).hexdigest())
    url = f"{server.url}/model"
    with open_client(timeout=10.0) as client:
        downloader = Downloader(client, lambda *report: reports.append(report))
        assert downloader.fetch(file, (url,), tmp_path) == url
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert reports[-1] == ("model", len(CONTENT), len(CONTENT))
    assert left_over(tmp_path) == ["model"]


def test_a_broken_transfer_goes_on_where_it_stopped(
    server: FileServer, fetch: Fetch, tmp_path: Path
) -> None:
    server.faults["/model"] = ["break:600000"]
    fetch(sha256=SHA256)
    assert (tmp_path / "model").read_bytes() == CONTENT
    (_, first), (_, second) = server.asked
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= 600_000


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(
    server: FileServer, fetch: Fetch, tmp_path: Path
) -> None:
    server.faults["/model"] = ["break:600000"] + ["status:503"] * 3
    with pytest.raises(DownloadError, match="what has come is kept"):
        fetch(sha256=SHA256)
    assert left_over(tmp_path) == ["model.part", "model.part.json"]
    kept = (tmp_path / "model.part").stat().st_size
    server.asked.clear()
    fetch(sha256=SHA256)
    assert server.asked == [("/model", f"bytes={kept}-")]
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert left_over(tmp_path) == ["model"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ranges": False}, id="ignores-ranges"),
        pytest.param({"validators": False}, id="names-no-version"),
        pytest.param(
            {"lies": {"Content-Range": "bytes 0-999999/1000000"}}, id="sends-another-part"
        ),
    ],
)
def test_a_broken_transfer_that_cannot_go_on_begins_anew(
    server: FileServer, fetch: Fetch, tmp_path: Path, change: dict[str, Any]
) -> None:
    server.faults["/model"] = ["break:600000"]
    for name, value in change.items():
        setattr(server, name, value)
    fetch(sha256=SHA256)
    assert (tmp_path / "model").read_bytes() == CONTENT
    if "validators" in change:  # nothing tells whether two parts are of one file
        assert [given for _, given in server.asked] == [None, None]


@pytest.mark.parametrize("has_room", [True, False])
def test_the_part_of_an_older_file_is_not_taken_for_one_of_the_new(
    server: FileServer, fetch: Fetch, tmp_path: Path, has_room: bool
) -> None:
    server.files["/model"] = b"an older file, quite another one" * 20_000
    server.faults["/model"] = ["break:400000"] + ["status:503"] * 3
    with pytest.raises(DownloadError):
        fetch()
    server.files["/model"] = CONTENT
    if not has_room:
        server.lies = {"Content-Length": str(10**15)}
        with pytest.raises(NoSpaceError):
            fetch()
        server.lies = {}
    fetch()
    assert (tmp_path / "model").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        pytest.param(b"x" * 500_000, ["bytes=500000-", None], id="does-not-fit"),
        pytest.param(CONTENT, ["bytes=1000000-"], id="is-the-whole-file"),
        pytest.param(CONTENT + b"more", ["bytes=1000004-", None], id="is-longer"),
    ],
)
def test_a_part_is_used_where_it_fits_and_else_thrown_away(
    server: FileServer, fetch: Fetch, tmp_path: Path, part: bytes, asked: list[str | None]
) -> None:
    put_part(tmp_path, server, part)
    fetch(sha256=SHA256)
    assert (tmp_path / "model").read_bytes() == CONTENT
    assert [given for _, given in server.asked] == asked


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_wrong_checksum_leaves_nothing(fetch: Fetch, tmp_path: Path, kind: str) -> None:
    with pytest.raises(DownloadError, match=r"but 0{32} was expected; nothing was kept"):
        fetch(**{kind: "0" * 32})
    assert left_over(tmp_path) == []


def test_a_missing_file_is_not_asked_for_twice(
    server: FileServer, downloader: Downloader, fetch: Fetch
) -> None:
    with pytest.raises(NotThereError, match="404 Not Found; check the name and the source"):
        fetch(f"{server.url}/nothing")
    assert len(server.asked) == 1
    assert downloader.fetch_text(f"{server.url}/nothing") is None


def test_download_retries_server_errors(server: FileServer, fetch: Fetch, tmp_path: Path) -> None:
    server.faults["/model"] = ["status:500", "status:429", "status:503"]
    fetch()
    assert (tmp_path / "model").read_bytes() == CONTENT
    server.faults["/model"] = ["status:500"] * 4
    with pytest.raises(DownloadError, match=r"4 tries \(the server answered 500"):
        fetch()


def test_a_web_page_in_place_of_a_file_is_refused_and_the_next_source_tried(
    server: FileServer, fetch: Fetch
) -> None:
    server.faults["/model"] = ["page"]
    with pytest.raises(DownloadError, match="a web page, not a file"):
        fetch()
    server.faults["/moved"] = ["page"]
    urls = (f"{server.url}/moved", f"{server.url}/model")
    assert fetch(*urls, sha256=SHA256) == urls[1]


def test_all_sources_are_named_when_none_has_the_file(server: FileServer, fetch: Fetch) -> None:
    with pytest.raises(DownloadError, match=r"/one was answered with 404.*; .*/two was answered"):
        fetch(f"{server.url}/one", f"{server.url}/two")


def test_a_server_that_is_silent_or_absent_is_a_named_error(
    server: FileServer, tmp_path: Path
) -> None:
    server.faults["/model"] = ["hang"] * 4
    with socket.socket() as closed, open_client(timeout=0.05) as client:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        for url, message in (
            (f"{server.url}/model", r"ReadTimeout.*Without a network, fetch from a"),
            (f"http://127.0.0.1:{closed.getsockname()[1]}/x", "ConnectError"),
            ("gopher://127.0.0.1/x", "no URL to fetch"),
        ):
            with pytest.raises(DownloadError, match=message):
                Downloader(client, wait=0.01).fetch(RecordedFile("model"), (url,), tmp_path)


def test_a_file_larger_than_the_disk_is_refused_before_it_comes(
    server: FileServer, fetch: Fetch
) -> None:
    server.lies = {"Content-Length": str(10**15)}
    with pytest.raises(NoSpaceError, match=r"1,000,000,000.0 MB are needed and .* MB free"):
        fetch()


def test_a_disk_that_fills_up_is_a_named_error(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "model.part").symlink_to("/dev/full")
    with pytest.raises(NoSpaceError, match="No space left on device"):
        fetch()


def test_a_folder_is_a_source_like_any_other(
    downloader: Downloader, fetch: Fetch, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    (tmp_path / "model.part").write_bytes(b"what came from elsewhere")
    assert fetch(str(source), sha256=SHA256) == str(source)
    assert (tmp_path / "model").read_bytes() == CONTENT
    with pytest.raises(NotThereError, match="there is no file"):
        fetch(str(tmp_path / "absent"))
    source.write_bytes(b"\xff")
    with pytest.raises(DownloadError, match="no text in UTF-8"):
        downloader.fetch_text(str(source))
