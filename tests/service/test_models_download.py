"""Downloads from a real HTTP server that breaks off, ignores ranges, errs and lies."""

from __future__ import annotations

import hashlib
import json
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Order:
    """What to fetch as ``model`` into a folder, and the way to do it."""

    file: RecordedFile
    sources: tuple[str, ...]
    folder: Path

    @property
    def target(self) -> Path:
        return self.folder / self.file.path

    def left_over(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def sha256(self) -> str:
        return hashlib.sha256(self.target.read_bytes()).hexdigest()


@pytest.fixture
def wanted(server: FileServer, tmp_path: Path) -> Callable[..., Order]:
    def want(*sources: str, **checksums: str) -> Order:
        file = RecordedFile("model", **checksums)
        return Order(file, sources or (f"{server.url}/model",), tmp_path)

    return want


def fetch(downloader: Downloader, order: Order) -> str:
    return downloader.fetch(order.file, order.sources, order.folder)


def test_download_is_complete_and_checked(server: FileServer, wanted: Callable[..., Order]) -> None:
    reports: list[tuple[str, int, int | None]] = []
    with open_client(timeout=10.0) as client:
        order = wanted(sha256=SHA256.upper(), md5=hashlib.md5(CONTENT).hexdigest())
        source = fetch(Downloader(client, lambda *report: reports.append(report)), order)
    assert order.target.read_bytes() == CONTENT
    assert source == order.sources[0]
    assert reports[-1] == ("model", len(CONTENT), len(CONTENT))
    assert order.left_over() == ["model"]


def test_a_broken_transfer_goes_on_where_it_stopped(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.faults["/model"] = ["break:600000"]
    order = wanted(sha256=SHA256)
    fetch(downloader, order)
    assert order.target.read_bytes() == CONTENT
    (_, first), (_, second) = server.asked
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").removesuffix("-")) <= 600_000


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.faults["/model"] = ["break:600000"] + ["status:503"] * 3
    order = wanted(sha256=SHA256)
    with pytest.raises(DownloadError, match="what has come is kept"):
        fetch(downloader, order)
    assert order.left_over() == ["model.part", "model.part.json"]
    kept = (order.target.parent / "model.part").stat().st_size
    server.asked.clear()
    fetch(downloader, order)
    assert server.asked == [("/model", f"bytes={kept}-")]
    assert order.target.read_bytes() == CONTENT
    assert order.left_over() == ["model"]


def test_a_server_that_ignores_ranges_is_read_from_the_start(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.ranges = False
    server.faults["/model"] = ["break:600000"]
    order = wanted(sha256=SHA256)
    fetch(downloader, order)
    assert order.target.read_bytes() == CONTENT


def test_a_file_that_changed_in_between_is_fetched_anew(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.files["/model"] = b"an older file, quite another one" * 20_000
    server.faults["/model"] = ["break:400000"] + ["status:503"] * 3
    with pytest.raises(DownloadError):
        fetch(downloader, wanted())
    server.files["/model"] = CONTENT
    order = wanted()
    fetch(downloader, order)
    assert order.sha256() == SHA256


def test_without_a_validator_nothing_is_put_together(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.validators = False
    server.faults["/model"] = ["break:600000"]
    fetch(downloader, wanted(sha256=SHA256))
    assert [given for _, given in server.asked] == [None, None]


def test_two_halves_that_do_not_fit_are_fetched_once_more(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    order = wanted(sha256=SHA256)
    etag = f'"{hashlib.md5(CONTENT).hexdigest()}"'
    (order.target.parent / "model.part").write_bytes(b"x" * 500_000)
    note = {"url": order.sources[0], "validator": etag}
    (order.target.parent / "model.part.json").write_text(json.dumps(note))
    fetch(downloader, order)
    assert [given for _, given in server.asked] == ["bytes=500000-", None]
    assert order.target.read_bytes() == CONTENT


def test_a_part_that_is_the_whole_file_is_enough(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    order = wanted(sha256=SHA256)
    note = {"url": order.sources[0], "validator": f'"{hashlib.md5(CONTENT).hexdigest()}"'}
    (order.target.parent / "model.part").write_bytes(CONTENT)
    (order.target.parent / "model.part.json").write_text(json.dumps(note))
    fetch(downloader, order)
    assert order.target.read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_a_part_longer_than_the_file_is_thrown_away(
    downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    order = wanted(sha256=SHA256)
    note = {"url": order.sources[0], "validator": f'"{hashlib.md5(CONTENT).hexdigest()}"'}
    (order.target.parent / "model.part").write_bytes(CONTENT + b"more")
    (order.target.parent / "model.part.json").write_text(json.dumps(note))
    fetch(downloader, order)
    assert order.target.read_bytes() == CONTENT


def test_another_part_than_asked_for_is_not_taken(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.faults["/model"] = ["break:600000"]
    server.lies = {"Content-Range": "bytes 0-999999/1000000"}
    order = wanted(sha256=SHA256)
    fetch(downloader, order)
    assert order.target.read_bytes() == CONTENT


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_wrong_checksum_leaves_nothing(
    downloader: Downloader, wanted: Callable[..., Order], kind: str
) -> None:
    order = wanted(**{kind: "0" * 32})
    with pytest.raises(DownloadError, match=r"but 0{32} was expected; nothing was kept"):
        fetch(downloader, order)
    assert order.left_over() == []


def test_a_missing_file_is_not_asked_for_twice(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    with pytest.raises(NotThereError, match="404 Not Found; check the name and the source"):
        fetch(downloader, wanted(f"{server.url}/nothing"))
    assert len(server.asked) == 1
    assert downloader.fetch_text(f"{server.url}/nothing") is None


def test_download_retries_server_errors(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.faults["/model"] = ["status:500", "status:429", "status:503"]
    order = wanted()
    fetch(downloader, order)
    assert order.sha256() == SHA256
    server.faults["/model"] = ["status:500"] * 4
    with pytest.raises(DownloadError, match=r"4 tries \(the server answered 500"):
        fetch(downloader, wanted())


def test_a_web_page_in_place_of_a_file_is_refused_and_the_next_source_tried(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.faults["/model"] = ["page"]
    with pytest.raises(DownloadError, match="a web page, not a file"):
        fetch(downloader, wanted())
    server.faults["/moved"] = ["page"]
    urls = (f"{server.url}/moved", f"{server.url}/model")
    assert fetch(downloader, wanted(*urls, sha256=SHA256)) == urls[1]


def test_all_sources_are_named_when_none_has_the_file(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    urls = (f"{server.url}/one", f"{server.url}/two")
    with pytest.raises(DownloadError, match=r"/one was answered with 404.*; .*/two was answered"):
        fetch(downloader, wanted(*urls))


def test_a_server_that_is_silent_or_absent_is_a_named_error(
    server: FileServer, wanted: Callable[..., Order]
) -> None:
    server.faults["/model"] = ["hang"] * 4
    with open_client(timeout=0.05) as client:
        impatient = Downloader(client, wait=0.01)
        with pytest.raises(DownloadError, match=r"ReadTimeout.*Without a network, fetch from a"):
            fetch(impatient, wanted())
        with pytest.raises(DownloadError, match="ConnectError"):
            fetch(impatient, wanted(f"http://127.0.0.1:{free_port()}/x"))
        with pytest.raises(DownloadError, match="no URL to fetch"):
            fetch(impatient, wanted("gopher://127.0.0.1/x"))


def test_a_file_larger_than_the_disk_is_refused_before_it_comes(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.lies = {"Content-Length": str(10**15)}
    with pytest.raises(NoSpaceError, match=r"1,000,000,000.0 MB are needed and .* MB free"):
        fetch(downloader, wanted())


def test_a_disk_that_fills_up_is_a_named_error(
    downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    order = wanted()
    (order.target.parent / "model.part").symlink_to("/dev/full")
    with pytest.raises(NoSpaceError, match="No space left on device"):
        fetch(downloader, order)


def test_a_full_disk_does_not_vouch_for_the_part_of_an_older_file(
    server: FileServer, downloader: Downloader, wanted: Callable[..., Order]
) -> None:
    server.files["/model"] = b"an older file, quite another one" * 20_000
    server.faults["/model"] = ["break:400000"] + ["status:503"] * 3
    order = wanted()
    with pytest.raises(DownloadError):
        fetch(downloader, order)
    server.files["/model"] = CONTENT
    server.lies = {"Content-Length": str(10**15)}
    with pytest.raises(NoSpaceError):
        fetch(downloader, order)
    server.lies = {}
    fetch(downloader, order)
    assert order.sha256() == SHA256


def test_a_folder_is_a_source_like_any_other(
    downloader: Downloader, wanted: Callable[..., Order], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    order = wanted(str(source), sha256=SHA256)
    (tmp_path / "model.part").write_bytes(b"what came from elsewhere")
    assert fetch(downloader, order) == str(source)
    assert order.sha256() == SHA256
    with pytest.raises(NotThereError, match="there is no file"):
        fetch(downloader, wanted(str(tmp_path / "absent")))
    source.write_bytes(b"\xff")
    with pytest.raises(DownloadError, match="no text in UTF-8"):
        downloader.fetch_text(str(source))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
