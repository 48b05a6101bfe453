from __future__ import annotations

import threading
import time

import pytest

from featurestore.tables.buffer import WriteBuffer
from syntax.errors import StoreError


class Disk:
    """Takes commits; fails while it is full."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.full = False
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, records) -> None:
        self.gate.wait(5)
        if self.full:
            raise StoreError("no space left on device")
        self.commits.append([record.key for record in records])

    @property
    def keys(self) -> list[str]:
        return [key for commit in self.commits for key in commit]


@pytest.fixture
def disk() -> Disk:
    return Disk()


def test_rows_make_a_commit_due(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=4, seconds=60)
    for record in records[:3]:
        buffer.put(record)
    assert disk.commits == []
    buffer.put(records[3], durable=True)
    assert disk.commits == [[record.key for record in records[:4]]]
    buffer.close()


def test_age_makes_a_commit_due(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=1000, seconds=0.05)
    buffer.put(records[0], durable=True)
    assert disk.keys == [records[0].key]
    buffer.close()


def test_buffered_records_can_be_read_before_and_during_their_commit(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=1, seconds=60)
    disk.gate.clear()
    buffer.put(records[0])
    buffer.put(records[1])
    keys = [record.key for record in records[:3]]
    assert set(buffer.get_many(keys)) == set(keys[:2])
    disk.gate.set()
    buffer.flush()
    assert buffer.get_many(keys) == {}
    buffer.close()


def test_a_failed_commit_is_reported_and_tried_again(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=1, seconds=60)
    disk.full = True
    with pytest.raises(StoreError, match="no space left"):
        buffer.put(records[0], durable=True)
    assert buffer.get_many([records[0].key])
    assert "no space left" in str(buffer.failure)
    disk.full = False
    buffer.flush()
    assert disk.keys == [records[0].key]
    assert buffer.failure is None
    buffer.close()


def test_failed_commit_is_retried_by_itself(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=1, seconds=0.01)
    disk.full = True
    with pytest.raises(StoreError):
        buffer.put(records[0], durable=True)
    disk.full = False
    deadline = time.monotonic() + 10
    while not disk.keys and time.monotonic() < deadline:
        time.sleep(0.02)
    assert disk.keys == [records[0].key]
    buffer.close()


def test_close_reports_lost_records(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=100, seconds=60)
    buffer.put(records[0])
    disk.full = True
    with pytest.raises(StoreError, match="no space left"):
        buffer.close()
    buffer.close()


def test_closed_buffer_refuses_records(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=1, seconds=60)
    buffer.close()
    with pytest.raises(StoreError, match="closed"):
        buffer.put(records[0])


def test_a_full_buffer_on_a_failing_disk_refuses_records(disk, make_record, parses) -> None:
    buffer = WriteBuffer(disk.commit, rows=1, seconds=60)
    disk.full = True
    with pytest.raises(StoreError):
        buffer.put(make_record(parses[0]), durable=True)
    for number in range(1, 40):
        buffer.put(make_record(parses[0], number))
    with pytest.raises(StoreError, match=r"40 parses wait .* no space left"):
        buffer.put(make_record(parses[0], 40))
    disk.full = False
    buffer.close()
    assert len(disk.keys) == 40


def test_many_threads_lose_nothing(disk, make_record, parses) -> None:
    buffer = WriteBuffer(disk.commit, rows=16, seconds=0.01)
    batches = [[make_record(parses[0], 100 * t + n) for n in range(100)] for t in range(4)]

    def write(batch) -> None:
        for number, record in enumerate(batch):
            buffer.put(record, durable=number % 25 == 0)

    threads = [threading.Thread(target=write, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    buffer.close()
    assert sorted(disk.keys) == sorted(record.key for batch in batches for record in batch)
    assert len(disk.commits) < 200


def test_an_offer_is_refused_where_a_put_would_wait(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=100, seconds=60, room=2)
    assert [buffer.offer(record) for record in records[:3]] == [True, True, False]
    buffer.flush()
    assert disk.keys == [record.key for record in records[:2]]
    assert buffer.offer(records[2])
    buffer.close()
    assert not buffer.offer(records[3])
    assert len(disk.keys) == 3


def test_buffer_is_bounded_by_the_weight_of_records(disk, records) -> None:
    buffer = WriteBuffer(
        disk.commit, rows=100, seconds=60, weigh=lambda record: record.parse.word_count, room=60
    )
    taken = [record for record in records if buffer.offer(record)]
    words = [record.parse.word_count for record in taken]
    assert 60 <= sum(words) < 60 + max(words)
    assert buffer.offer(taken[0]) is False
    buffer.close()
    assert disk.keys == [record.key for record in taken]


def test_a_record_that_comes_again_takes_no_more_room(disk, records) -> None:
    buffer = WriteBuffer(disk.commit, rows=100, seconds=60, room=2)
    assert all(buffer.offer(records[0]) for _ in range(5))
    buffer.close()
    assert disk.keys == [records[0].key]


def test_a_failed_commit_takes_its_room_again(disk, records) -> None:
    disk.full = True
    buffer = WriteBuffer(disk.commit, rows=100, seconds=60, kind="rows", room=2)
    assert buffer.offer(records[0])
    with pytest.raises(StoreError):
        buffer.flush()
    assert [buffer.offer(record) for record in records[1:3]] == [True, False]
    with pytest.raises(StoreError, match="2 rows wait to be written"):
        buffer.put(records[3])
    disk.full = False
    buffer.close()
    assert disk.keys == [record.key for record in records[:2]]


def test_a_full_disk_is_warned_of_once_and_its_end_told(disk, records, caplog) -> None:
    buffer = WriteBuffer(disk.commit, rows=1000, seconds=60)
    disk.full = True
    buffer.put(records[0])
    for _ in range(3):
        with pytest.raises(StoreError):
            buffer.flush()
    disk.full = False
    buffer.flush()
    buffer.close()
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 2, warned
    assert "no space left" in warned[0]
    assert warned[1] == "parses are committed again"
