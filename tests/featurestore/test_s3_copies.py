"""Streams over an object store read copies of its files on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurestore import FeatureDataset, FeatureStore, OrderPolicy, open_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.tables.files import FileGoneError

from .s3 import S3
from .streams import ids
from .writers import wait_for

pytestmark = pytest.mark.slow

Open = Callable[..., FeatureStore]


@pytest.fixture
def uri(s3: S3, handle, rows) -> str:
    """A store with two files of the dataset ``pairs``."""
    uri = s3.location()
    with open_store(uri, storage_options=s3.options) as store:
        for start in (0, 50):
            store.features.append(handle, rows[start : start + 50])
    return uri


@pytest.fixture
def reopen(s3: S3, uri: str, tmp_path: Path) -> Iterator[Open]:
    """Opens the store anew, with an empty folder for copies."""
    opened: list[FeatureStore] = []

    def reopen(**options: object) -> FeatureStore:
        settings = {"cache_dir": tmp_path / "copies", **options}
        opened.append(open_store(uri, storage_options=s3.options, **settings))  # type: ignore[arg-type]
        return opened[-1]

    yield reopen
    for store in opened:
        store.close()


def epoch(data: FeatureDataset, number: int, **options: object) -> list[str]:
    return sorted(ids(data.stream(seed=1, epoch=number, matrices=(), **options)))


def copies(folder: Path) -> list[Path]:
    return sorted(folder.glob("copies/*/*"))


NAMES = sorted(f"ex-{number}" for number in range(100))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_two_epochs_fetch_every_file_once(s3, uri, reopen, tmp_path, prefetch) -> None:
    data = reopen().dataset("pairs")
    opened = s3.sent(uri)
    assert not copies(tmp_path)
    assert epoch(data, 0, prefetch=prefetch) == NAMES
    once = s3.sent(uri)
    fetched = sorted(size - opened[path] for path, size in once.items() if size > opened[path])
    assert fetched == sorted(path.stat().st_size for path in copies(tmp_path))
    assert len(fetched) == 2
    assert epoch(data, 1, prefetch=prefetch) == NAMES
    assert s3.sent(uri) == once


def test_a_copy_that_changed_is_fetched_again(s3, reopen, tmp_path) -> None:
    data = reopen().dataset("pairs")
    assert epoch(data, 0) == NAMES
    before = {path: path.read_bytes() for path in copies(tmp_path)}
    for path, content in before.items():
        path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    assert epoch(data, 1) == NAMES
    assert epoch(data, 2) == NAMES
    assert {path: path.read_bytes() for path in copies(tmp_path)} == before


def test_the_next_pool_is_fetched_while_this_one_is_used(reopen, tmp_path) -> None:
    stream = (
        reopen()
        .dataset("pairs")
        .stream(batch_size=50, bucket=False, matrices=(), order=OrderPolicy(pool=1))
    )
    assert len(stream) == 2
    next(stream)
    wait_for(lambda: len(copies(tmp_path)) == 2 and not list(tmp_path.glob("copies/*/*.part")))
    next(stream)


def test_the_bound_holds_and_files_come_back(s3, uri, reopen, tmp_path) -> None:
    _, table = reopen().features.find("pairs")
    largest = max(file.size for file in table.snapshot().files)
    store = reopen(cache_bytes=largest)
    for number in range(3):
        assert epoch(store.dataset("pairs"), number) == NAMES
        assert sum(path.stat().st_size for path in copies(tmp_path)) <= largest
    sent = s3.sent(uri)
    assert all(sent[path] > 2 * largest for path in sent if "/datasets/" in path)


@pytest.mark.parametrize("cache_bytes", [0, 10])
def test_files_without_room_are_read_remotely(reopen, tmp_path, caplog, cache_bytes) -> None:
    assert epoch(reopen(cache_bytes=cache_bytes).dataset("pairs"), 0) == NAMES
    assert not copies(tmp_path)
    assert (tmp_path / "copies").exists() == bool(cache_bytes)
    assert ("read directly" in caplog.text) == bool(cache_bytes)


def test_lookups_fetch_no_whole_files(reopen, records, tmp_path) -> None:
    store = reopen()
    store.parses.append(records)
    assert len(reopen().parses.get_many([record.key for record in records])) == len(records)
    assert store.sql("select count(*) from examples").fetchall() == [(100,)]
    assert len(store.dataset("pairs").where(shortest=3)) > 0
    assert not copies(tmp_path)


def test_a_vacuumed_file_is_named_and_a_copy_outlives_it(reopen) -> None:
    store = reopen()
    copied, not_copied = store.dataset("pairs"), reopen(cache_bytes=0).dataset("pairs")
    assert epoch(copied, 0) == NAMES
    store.compact()
    time.sleep(0.01)
    vacuum_store(store, older_than_hours=0)
    assert len(list(copied.stream())) == 4
    with pytest.raises(FileGoneError, match="it was vacuumed"):
        next(not_copied.stream())
