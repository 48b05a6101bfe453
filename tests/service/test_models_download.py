"""Downloads from a real HTTP server that breaks off, ignores ranges, errs and lies."""

from __future__ import annotations

import hashlib
import json
import random
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.models.download import (
    Downloader,
    NoSpaceError,
    NotThereError,
    Wanted,
    open_client,
)
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


@pytest.fixture
def wanted(server: FileServer, tmp_path: Path) -> Callable[..., Wanted]:
    def want(path: str = "/model", **checksums: str) -> Wanted:
        return Wanted(tmp_path / "model", (f"{server.url}{path}",), **checksums)

    return want


def left_over(wanted: Wanted) -> list[str]:
    return sorted(path.name for path in wanted.target.parent.iterdir())


def test_download_is_complete_and_checked(
    server: FileServer, wanted: Callable[..., Wanted]
) -> None:
    reports: list[tuple[str, int, int | None]] = []
    with open_client(timeout=10.0) as client:
        order = wanted(sha256=SHA256.upper(), md5=hashlib.md5(CONTENT).hexdigest())
        fetched = Downloader(client, lambda *report: reports.append(report)).fetch(order)
    assert order.target.read_bytes() == CONTENT
    assert (fetched.sha256, fetched.size, fetched.checked) == (SHA256, len(CONTENT), True)
    assert reports[-1] == ("model", len(CONTENT), len(CONTENT))
    assert left_over(order) == ["model"]


def test_without_a_checksum_to_compare_it_says_so(
    downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    fetched = downloader.fetch(wanted())
    assert (fetched.sha256, fetched.checked) == (SHA256, False)


def test_a_broken_transfer_goes_on_where_it_stopped(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.faults["/model"] = ["break:600000"]
    order = wanted(sha256=SHA256)
    downloader.fetch(order)
    assert order.target.read_bytes() == CONTENT
    (_, first), (_, second) = server.asked
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= 600_000


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.faults["/model"] = ["break:600000"] + ["status:503"] * 3
    order = wanted(sha256=SHA256)
    with pytest.raises(DownloadError, match="what has come is kept"):
        downloader.fetch(order)
    assert left_over(order) == ["model.part", "model.part.json"]
    kept = (order.target.parent / "model.part").stat().st_size
    server.asked.clear()
    downloader.fetch(order)
    assert server.asked == [("/model", f"bytes={kept}-")]
    assert order.target.read_bytes() == CONTENT
    assert left_over(order) == ["model"]


def test_a_server_that_ignores_ranges_is_read_from_the_start(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.ranges = False
    server.faults["/model"] = ["break:600000"]
    order = wanted(sha256=SHA256)
    downloader.fetch(order)
    assert order.target.read_bytes() == CONTENT


def test_a_file_that_changed_in_between_is_fetched_anew(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.files["/model"] = b"an older file, quite another one" * 20_000
    server.faults["/model"] = ["break:400000"] + ["status:503"] * 3
    with pytest.raises(DownloadError):
        downloader.fetch(wanted())
    server.files["/model"] = CONTENT
    assert downloader.fetch(wanted()).sha256 == SHA256


def test_without_a_validator_nothing_is_put_together(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.validators = False
    server.faults["/model"] = ["break:600000"]
    downloader.fetch(wanted(sha256=SHA256))
    assert [given for _, given in server.asked] == [None, None]


def test_two_halves_that_do_not_fit_are_fetched_once_more(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    order = wanted(sha256=SHA256)
    etag = f'"{hashlib.md5(CONTENT).hexdigest()}"'
    (order.target.parent / "model.part").write_bytes(b"x" * 500_000)
    note = {"url": order.sources[0], "validator": etag}
    (order.target.parent / "model.part.json").write_text(json.dumps(note))
    downloader.fetch(order)
    assert [given for _, given in server.asked] == ["bytes=500000-", None]
    assert order.target.read_bytes() == CONTENT


def test_a_part_that_is_the_whole_file_is_enough(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    order = wanted(sha256=SHA256)
    note = {"url": order.sources[0], "validator": f'"{hashlib.md5(CONTENT).hexdigest()}"'}
    (order.target.parent / "model.part").write_bytes(CONTENT)
    (order.target.parent / "model.part.json").write_text(json.dumps(note))
    downloader.fetch(order)
    assert order.target.read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_a_part_longer_than_the_file_is_thrown_away(
    downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    order = wanted(sha256=SHA256)
    note = {"url": order.sources[0], "validator": f'"{hashlib.md5(CONTENT).hexdigest()}"'}
    (order.target.parent / "model.part").write_bytes(CONTENT + b"more")
    (order.target.parent / "model.part.json").write_text(json.dumps(note))
    downloader.fetch(order)
    assert order.target.read_bytes() == CONTENT


def test_another_part_than_asked_for_is_not_taken(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.faults["/model"] = ["break:600000"]
    server.lies = {"Content-Range": "bytes 0-999999/1000000"}
    order = wanted(sha256=SHA256)
    downloader.fetch(order)
    assert order.target.read_bytes() == CONTENT


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_wrong_checksum_leaves_nothing(
    downloader: Downloader, wanted: Callable[..., Wanted], kind: str
) -> None:
    order = wanted(**{kind: "0" * 32})
    with pytest.raises(DownloadError, match=r"but 0{32} was expected; nothing was kept"):
        downloader.fetch(order)
    assert left_over(order) == []


def test_a_missing_file_is_not_asked_for_twice(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    with pytest.raises(NotThereError, match="404 Not Found; check the name and the source"):
        downloader.fetch(wanted("/nothing"))
    assert len(server.asked) == 1
    assert downloader.fetch_text(f"{server.url}/nothing") is None


def test_download_retries_server_errors(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.faults["/model"] = ["status:500", "status:429", "status:503"]
    assert downloader.fetch(wanted()).sha256 == SHA256
    server.faults["/model"] = ["status:500"] * 4
    with pytest.raises(DownloadError, match=r"4 tries \(the server answered 500"):
        downloader.fetch(wanted())


def test_a_web_page_in_place_of_a_file_is_refused_and_the_next_source_tried(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted], tmp_path: Path
) -> None:
    server.faults["/model"] = ["page"]
    with pytest.raises(DownloadError, match="a web page, not a file"):
        downloader.fetch(wanted())
    server.faults["/moved"] = ["page"]
    urls = (f"{server.url}/moved", f"{server.url}/model")
    fetched = downloader.fetch(Wanted(tmp_path / "model", urls, SHA256))
    assert fetched.source == urls[1]


def test_all_sources_are_named_when_none_has_the_file(
    server: FileServer, downloader: Downloader, tmp_path: Path
) -> None:
    urls = (f"{server.url}/one", f"{server.url}/two")
    with pytest.raises(DownloadError, match=r"/one was answered with 404.*; .*/two was answered"):
        downloader.fetch(Wanted(tmp_path / "model", urls))


def test_a_server_that_is_silent_or_absent_is_a_named_error(
    server: FileServer, wanted: Callable[..., Wanted], tmp_path: Path
) -> None:
    server.faults["/model"] = ["hang"] * 4
    with open_client(timeout=0.05) as client:
        impatient = Downloader(client, wait=0.01)
        with pytest.raises(DownloadError, match=r"ReadTimeout.*Without a network, fetch from a"):
            impatient.fetch(wanted())
        with pytest.raises(DownloadError, match="ConnectError"):
            impatient.fetch(Wanted(tmp_path / "model", (f"http://127.0.0.1:{free_port()}/x",)))
        with pytest.raises(DownloadError, match="no URL to fetch"):
            impatient.fetch(Wanted(tmp_path / "model", ("gopher://127.0.0.1/x",)))


def test_a_file_larger_than_the_disk_is_refused_before_it_comes(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    server.lies = {"Content-Length": str(10**15)}
    with pytest.raises(NoSpaceError, match=r"1,000,000,000.0 MB are needed and .* MB free"):
        downloader.fetch(wanted())


def test_a_disk_that_fills_up_is_a_named_error(
    downloader: Downloader, wanted: Callable[..., Wanted]
) -> None:
    order = wanted()
    (order.target.parent / "model.part").symlink_to("/dev/full")
    with pytest.raises(NoSpaceError, match="No space left on device"):
        downloader.fetch(order)


def test_a_folder_is_a_source_like_any_other(downloader: Downloader, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(CONTENT)
    order = Wanted(tmp_path / "model", (str(tmp_path / "source"),), SHA256)
    assert downloader.fetch(order).checked
    with pytest.raises(NotThereError, match="there is no file"):
        downloader.fetch(Wanted(tmp_path / "model", (str(tmp_path / "absent"),)))
    (tmp_path / "source").write_bytes(b"\xff")
    with pytest.raises(DownloadError, match="no text in UTF-8"):
        downloader.fetch_text(str(tmp_path / "source"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
