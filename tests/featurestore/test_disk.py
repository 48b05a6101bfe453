"""A disk that is full or must not be written: named errors, a readable table, and then on."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurestore import FeatureStore, open_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.maintenance.validate import validate_store
from syntax.errors import StoreError

from .writer_process import HANDLE, example_of, record_of
from .writers import assert_kept, assert_kept_at

FULL = "No space left on device"
NOBODY = 65534


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"may not mount a small file system: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def crossable() -> Iterator[Path]:
    """A folder that other users may look into."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def fill(disk: Path, pages: int = 0) -> Path:
    """Take all of a disk but some pages."""
    state, ballast = os.statvfs(disk), disk / "ballast"
    ballast.write_bytes(bytes((state.f_bavail - pages) * state.f_bsize))
    return ballast


def records_of(name: str, count: int = 100) -> list:
    return [record_of(name, 0, row) for row in range(count)]


def keys_of(records: list) -> list[str]:
    return [record.key for record in records]


def test_a_full_disk_refuses_writers_and_serves_readers(small_disk) -> None:
    first, later = records_of("first"), records_of("later")
    with open_store(small_disk / "store") as store:
        store.parses.append(first[:50])
        store.parses.append(first[50:])
        store.features.append(HANDLE, [example_of(record, n) for n, record in enumerate(first)])
        ballast = fill(small_disk)
        with pytest.raises(StoreError, match=FULL):
            store.parses.append(later)
        with pytest.raises(StoreError, match=FULL):
            store.parses.put(later[0], durable=True)
        with pytest.raises(StoreError, match=FULL):
            store.compact()
        with pytest.raises(StoreError, match=FULL):
            store.describe("a" * 32, "parser", {"name": "one"})
        with pytest.raises(StoreError, match=FULL):
            store.dataset("written").pin("one")
        assert FULL in str(check(store))
        assert_kept_at(small_disk / "store", keys_of(first))
        assert validate_store(store).problem_count == 0
        ballast.unlink()
        store.flush()
        store.parses.append(later[1:])
        store.compact()
        assert check(store) is None
        assert_kept(store, keys_of(first + later))
        assert store.sql("select count(*) from examples").fetchall() == [(100,)]


def check(store: FeatureStore) -> StoreError | None:
    """What a health check says."""
    try:
        store.parses.check()
    except StoreError as error:
        return error
    return None


@pytest.mark.slow
def test_a_disk_that_fills_in_mid_commit_leaves_no_half_commit(small_disk) -> None:
    kept = records_of("kept")
    with open_store(small_disk / "store") as store:
        store.parses.append(kept)
        refused = 0
        for pages in range(12):
            more = records_of(f"with {pages} pages")
            ballast = fill(small_disk, pages)
            try:
                store.parses.append(more)
                kept += more
            except StoreError as error:
                assert FULL in str(error)  # noqa: PT017
                refused += 1
            assert_kept_at(small_disk / "store", keys_of(kept))
            ballast.unlink()
        assert 1 < refused < 12
        assert_kept(store, keys_of(kept))
        vacuum_store(store, older_than_hours=0)
        store.compact()
        assert_kept(store, keys_of(kept))


def test_a_store_cannot_begin_on_a_full_disk(small_disk) -> None:
    records = records_of("first")
    ballast = fill(small_disk)
    with open_store(small_disk / "store") as store:
        with pytest.raises(StoreError, match=FULL):
            store.parses.append(records)
        assert list((small_disk / "store").iterdir()) == []
        ballast.unlink()
        store.parses.append(records)
        assert_kept(store, keys_of(records))


def test_a_limit_on_files_is_named(tmp_path, writers) -> None:
    first = writers.start("append", tmp_path, "first", 1, 20)
    kept = first.finish()
    cramped = writers.start("append", tmp_path, "second", 2, 20, largest_file=3000)
    assert cramped.finish() == []
    assert "File too large" in cramped.errors
    kept += writers.start("append", tmp_path, "second", 2, 20).finish()
    assert len(kept) == 60
    assert_kept_at(tmp_path, kept)


@pytest.mark.slow
def test_a_folder_that_must_not_be_written_is_named_and_read(crossable, writers) -> None:
    store = crossable / "store"
    user = NOBODY if os.geteuid() == 0 else None
    first = writers.start("append", store, "first", 2, 20).finish()
    writers.start("compact", store).finish()  # leaves files to vacuum
    first += writers.start("append", store, "last", 1, 20).finish()
    permit(store, writing=False)
    for mode in ("append", "compact", "vacuum"):
        refused = writers.start(mode, store, "second", 1, 20, user=user)
        assert refused.finish() == []
        assert "Permission denied" in refused.errors, mode
        assert f"{store}" in refused.errors, mode
    assert sorted(writers.start("read", store, user=user).finish()) == sorted(first)
    permit(store, writing=True)
    second = writers.start("append", store, "second", 1, 20, user=user).finish()
    assert len(second) == 20
    assert_kept_at(store, first + second)


def permit(store: Path, writing: bool) -> None:
    """Let everybody write to a store, or nobody."""
    for path in [store, *store.rglob("*")]:
        if path.is_dir():
            path.chmod(0o777 if writing else 0o555)
