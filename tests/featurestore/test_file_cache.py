"""Copies of remote files on this machine: whole or not at all, bounded, shared by processes."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from featurestore.tables.file_cache import DEFAULT_BYTES, FileCache, file_cache
from syntax.errors import SpecError

PROGRAM = Path(__file__).parent / "file_cache_process.py"
CHUNK = 1000


class Files:
    """Files in a folder, as a store would open them, counting the bytes that are read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[str] = []

    def add(self, name: str, size: int) -> bytes:
        content = bytes(ord(name[0]) ^ (at * 7 % 251) for at in range(size))
        (self.folder / name).write_bytes(content)
        return content

    def open(self, name: str) -> Callable[[], pa.NativeFile]:
        def opened() -> pa.NativeFile:
            self.opened.append(name)
            return pa.OSFile(str(self.folder / name))

        return opened


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "store").mkdir()
    return Files(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "copies"


def content_of(cache: FileCache, name: str) -> bytes | None:
    file = cache.open(name)
    if file is None:
        return None
    with file:
        return bytes(file.read())


def copies(folder: Path) -> dict[str, int]:
    """Bytes of every copy, by its name: the bytes it should have."""
    found = (path for place in folder.iterdir() if place.is_dir() for path in place.iterdir())
    return {path.name: path.stat().st_size for path in found}


@pytest.mark.parametrize("size", [0, 1, CHUNK, 2500, 3 * CHUNK])
def test_a_file_is_fetched_once_and_whole(files, folder, size) -> None:
    content, cache = files.add("a", size), FileCache(folder, 10_000, CHUNK)
    assert cache.open("a") is None
    assert not folder.exists()
    for _ in range(2):
        assert cache.fetch("a", files.open("a"))
        assert content_of(cache, "a") == content
    assert files.opened == ["a"]
    assert copies(folder) == {str(size): size}


def test_least_recently_used_copy_is_removed(files, folder) -> None:
    cache = FileCache(folder, 3000, CHUNK)
    contents = {name: files.add(name, 1000 + at) for at, name in enumerate("abcd")}
    for at, name in enumerate("ab"):
        cache.fetch(name, files.open(name))
        _age(folder, 1000 + at)
    assert content_of(cache, "a") == contents["a"]  # b is now the oldest
    cache.fetch("c", files.open("c"))
    assert {name: content_of(cache, name) is not None for name in "abc"} == {
        "a": True,
        "b": False,
        "c": True,
    }
    assert cache.fetch("b", files.open("b"))
    assert content_of(cache, "b") == contents["b"]
    assert sum(copies(folder).values()) <= 3000


def _age(folder: Path, size: int) -> None:
    """Make the copy of a size one hour old and more, the larger the younger."""
    path = next(folder.glob(f"*/{size}"))
    os.utime(path, (size, size))


def test_a_copy_in_use_stays(files, folder, caplog) -> None:
    cache = FileCache(folder, 2000, CHUNK)
    content = files.add("a", 1500)
    files.add("b", 1500)
    cache.fetch("a", files.open("a"))
    with cache.open("a") as reading:
        with caplog.at_level(logging.WARNING):
            assert not cache.fetch("b", files.open("b"))
        assert reading.read() == content
    assert "read directly: its 1500 bytes find no room in 2000" in caplog.text
    assert cache.fetch("b", files.open("b"))
    assert copies(folder) == {"1500": 1500}
    assert content_of(cache, "a") is None


def test_a_bound_below_one_file_copies_nothing_and_says_so_once(files, folder, caplog) -> None:
    cache = FileCache(folder, 100, CHUNK)
    files.add("a", 101)
    with caplog.at_level(logging.WARNING):
        assert not cache.fetch("a", files.open("a"))
        assert not cache.fetch("a", files.open("a"))
    assert caplog.text.count("PARSEBANK_CACHE_BYTES") == 1
    assert copies(folder) == {}


def test_a_folder_that_cannot_be_made_leaves_files_to_be_read_directly(files, folder, caplog):
    folder.write_text("a file")
    cache = FileCache(folder / "copies", 10_000, CHUNK)
    files.add("a", 10)
    with caplog.at_level(logging.WARNING):
        assert not cache.fetch("a", files.open("a"))
    assert "read directly" in caplog.text
    assert cache.open("a") is None


def test_a_copy_that_lost_its_end_is_fetched_again(files, folder) -> None:
    content, cache = files.add("a", 2500), FileCache(folder, 10_000, CHUNK)
    cache.fetch("a", files.open("a"))
    (copy,) = folder.glob("*/2500")
    copy.write_bytes(content[:2000])
    assert cache.open("a") is None
    assert cache.fetch("a", files.open("a"))
    assert content_of(cache, "a") == content


def test_a_store_that_ends_too_early_leaves_no_copy(files, folder) -> None:
    cache = FileCache(folder, 10_000, CHUNK)
    files.add("a", 2500)

    class Short(pa.PythonFile):
        def size(self) -> int:
            return 2600

    with pytest.raises(OSError, match="ended after 2500 of 2600"):
        cache.fetch("a", lambda: Short((files.folder / "a").open("rb"), "r"))
    assert content_of(cache, "a") is None


def test_stopped_fetch_is_continued_by_the_next(files, folder) -> None:
    content, cache = files.add("a", 5 * CHUNK), FileCache(folder, 10_000, CHUNK)
    answers = iter([True] * 5)
    assert not cache.fetch("a", files.open("a"), lambda: next(answers, False))
    assert copies(folder) == {"5000.part": 3 * CHUNK}
    assert content_of(cache, "a") is None
    assert cache.fetch("a", files.open("a"))
    assert content_of(cache, "a") == content


def test_threads_fetch_a_file_once(files, folder) -> None:
    content, cache = files.add("a", 50 * CHUNK), FileCache(folder, 100_000, CHUNK)
    reads: list[int] = []

    class Counted(pa.PythonFile):
        def read(self, size: int) -> bytes:
            reads.append(size)
            return super().read(size)

    def fetch(_: int) -> bool:
        return cache.fetch("a", lambda: Counted((files.folder / "a").open("rb"), "r"))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(fetch, range(8)))
    assert content_of(cache, "a") == content
    assert reads == [CHUNK] * 50


def test_threads_that_evict_each_others_files_read_them_whole(files, folder) -> None:
    cache = FileCache(folder, 12 * CHUNK, CHUNK)
    contents = {name: files.add(name, 3 * CHUNK + at) for at, name in enumerate("abcdefgh")}

    def read(at: int) -> bool:
        name = "abcdefgh"[at % 8]
        cache.fetch(name, files.open(name))
        return content_of(cache, name) in (None, contents[name])

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(read, range(200)))
    assert sum(copies(folder).values()) <= 12 * CHUNK


@pytest.fixture
def fetching(files, folder) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that fetch the file ``a``, waiting after some chunks."""
    started: list[subprocess.Popen[str]] = []

    def start(stop: int, bound: int = 100_000) -> subprocess.Popen[str]:
        arguments = [folder, bound, "a", files.folder / "a", CHUNK, stop]
        started.append(
            subprocess.Popen(
                [sys.executable, str(PROGRAM), *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], chunk: int) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line == f"reads {chunk * CHUNK}\n":
            return
    raise AssertionError("it ended before")


def test_a_fetch_that_was_killed_is_continued(files, folder, fetching) -> None:
    content = files.add("a", 9 * CHUNK + 5)
    killed = fetching(stop=6)
    read_until(killed, 6)
    killed.kill()
    killed.wait()
    cache = FileCache(folder, 100_000, CHUNK)
    assert cache.open("a") is None
    assert copies(folder) == {"9005.part": 6 * CHUNK}
    output, _ = fetching(stop=-1).communicate()
    assert output.split()[1::2] == ["5000", "6000", "7000", "8000", "9000"]
    assert output.split()[-1] == "fetched"
    assert content_of(cache, "a") == content


def test_draft_of_a_killed_fetch_can_be_removed(files, folder, fetching) -> None:
    files.add("a", 9 * CHUNK)
    content = files.add("b", 5 * CHUNK)
    cache = FileCache(folder, 10 * CHUNK, CHUNK)
    killed = fetching(stop=2, bound=10 * CHUNK)
    read_until(killed, 2)
    assert not cache.fetch("b", files.open("b"))  # its whole size counts while it is fetched
    killed.kill()
    killed.wait()
    assert cache.fetch("b", files.open("b"))
    assert content_of(cache, "b") == content
    assert copies(folder) == {str(5 * CHUNK): 5 * CHUNK}


def test_racing_processes_fetch_a_file_once(files, folder, fetching) -> None:
    content = files.add("a", 5 * CHUNK)
    first = fetching(stop=2)
    read_until(first, 2)
    second = fetching(stop=-1)
    output, _ = first.communicate("go on\n")
    assert output.split()[-1] == "fetched"
    assert second.communicate()[0] == "fetched\n"
    assert content_of(FileCache(folder, 100_000), "a") == content


def test_no_copy_changes_its_name_while_copies_are_counted(files, folder, fetching) -> None:
    files.add("a", 5 * CHUNK)
    process = fetching(stop=2)
    read_until(process, 2)
    with (folder / "lock").open("a") as counting:
        fcntl.flock(counting, fcntl.LOCK_EX)
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
        read_until(process, 4)
        time.sleep(0.2)
        assert list(copies(folder)) == ["5000.part"]
    assert process.communicate()[0].split()[-1] == "fetched"
    assert copies(folder) == {"5000": 5 * CHUNK}


def test_arguments_override_the_environment(monkeypatch, tmp_path) -> None:
    for name in ("PARSEBANK_CACHE_DIR", "PARSEBANK_CACHE_BYTES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = file_cache(None, None)
    assert (cache.folder, cache.max_bytes) == (tmp_path / "parsebank" / "shards", DEFAULT_BYTES)
    monkeypatch.setenv("PARSEBANK_CACHE_DIR", str(tmp_path / "a"))
    monkeypatch.setenv("PARSEBANK_CACHE_BYTES", "0")
    assert file_cache(None, None) is None
    cache = file_cache(tmp_path / "b", 7)
    assert (cache.folder, cache.max_bytes) == (tmp_path / "b", 7)


@pytest.mark.parametrize("bound", ["-1", "10GB"])
def test_cache_bound_must_be_a_number(monkeypatch, bound) -> None:
    monkeypatch.setenv("PARSEBANK_CACHE_BYTES", bound)
    with pytest.raises(SpecError, match=f"PARSEBANK_CACHE_BYTES is {bound}"):
        file_cache(None, None)
    with pytest.raises(SpecError, match="cache_bytes is -1"):
        file_cache(None, -1)
