from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from featurestore import open_store
from featurestore.tables.encode.packed import unpack_record
from syntax.errors import InvalidCharacterError, SpecError, StoreError

from .damages import empty, spoil, tear


def keys_of(records) -> list[str]:
    return [record.key for record in records]


def test_appended_records_come_back_in_the_order_asked(store, records) -> None:
    assert store.parses.get_many(["0" * 32]) == store.parses.get_many([]) == {}
    assert store.parses.append(records)
    asked = [*keys_of(reversed(records)), "0" * 32]
    assert list(store.parses.get_many(asked).items()) == [(r.key, r) for r in reversed(records)]
    assert store.parses.contains(asked).tolist() == [True] * 40 + [False]


def test_packed_records_come_from_table_and_buffer(tmp_path, records) -> None:
    with open_store(tmp_path, buffer_seconds=60) as store:
        store.parses.append(records[2:])
        store.parses.put(records[0])
        asked = [records[3].key, "0" * 32, records[0].key, records[2].key, records[3].key]
        found = store.parses.get_packed(asked)
        assert list(found) == [records[at].key for at in (3, 0, 2)]
        assert [unpack_record(*one) for one in found.items()] == [records[at] for at in (3, 0, 2)]
        assert store.parses.get_packed([]) == {}
        counts = {records[at].key: records[at].parse.word_count for at in (0, 2, 3)}
        assert store.parses.word_counts(asked) == counts


def test_threads_that_miss_a_key_together_all_find_it(tmp_path, make_record, parses) -> None:
    with (
        open_store(tmp_path) as writer,
        open_store(tmp_path) as reader,
        ThreadPoolExecutor(4) as threads,
    ):
        for number in range(20):
            record = make_record(parses[0], number)
            writer.parses.append([record])
            together = threading.Barrier(4)

            def found(one: bool, record=record, together=together) -> bool:
                together.wait()
                if one:
                    return list(reader.parses.get_many([record.key])) == [record.key]
                return bool(reader.parses.contains([record.key])[0])

            assert all(threads.map(found, (True, False, True, False)))


def test_missing_keys_are_looked_for_in_the_newest_version(tmp_path, records) -> None:
    with open_store(tmp_path) as writer, open_store(tmp_path, refresh_seconds=60) as reader:
        keys = [records[0].key, "0" * 32, records[0].key]
        assert reader.parses.missing(keys) == keys[:2]
        writer.parses.append(records[:1])
        assert not reader.parses.contains(keys).any()
        assert reader.parses.missing(keys) == ["0" * 32]


def test_refresh_seconds_limits_refreshes(tmp_path, records) -> None:
    with open_store(tmp_path) as writer, open_store(tmp_path, refresh_seconds=60) as reader:
        assert not reader.parses.contains([records[0].key])[0]
        writer.parses.append([records[0]])
        assert not reader.parses.contains([records[0].key])[0]
        reader.parses.append([records[1]])
        assert reader.parses.contains([records[0].key, records[1].key]).all()


def test_buffered_records_are_read_at_once_and_kept(tmp_path: Path, records) -> None:
    with open_store(tmp_path, buffer_seconds=60) as store:
        for record in records:
            store.parses.put(record)
        assert store.parses.get_many(keys_of(records)) == {r.key: r for r in records}
        assert store.parses.contains(keys_of(records)).all()
        assert store.parses.table.open() is None
    with open_store(tmp_path) as again:
        assert again.parses.get_many(keys_of(records)) == {r.key: r for r in records}
        assert again.parses.table.open().version() == 1


def test_lookups_survive_a_compaction(store, records) -> None:
    for record in records[:6]:
        store.parses.append([record])
    with open_store(store.uri) as other:
        assert other.parses.contains(keys_of(records[:6])).all()
        store.compact()
        assert len(store.parses.table.snapshot().files) == 1
        store.parses.append([records[6]])
        assert other.parses.get_many(keys_of(records[:7])) == {r.key: r for r in records[:7]}


def test_reading_goes_on_while_a_compaction_runs(store, records) -> None:
    for record in records[:10]:
        store.parses.append([record])
    compaction = threading.Thread(target=store.compact)
    compaction.start()
    while compaction.is_alive():
        with open_store(store.uri) as fresh:
            assert len(fresh.parses.get_many(keys_of(records[:10]))) == 10
    compaction.join()


@pytest.mark.parametrize("key", ["", "x" * 32, "0" * 31 + " "])
def test_a_malformed_key_is_named(store, key) -> None:
    with pytest.raises(SpecError, match="is not a key"):
        store.parses.get_many([key])


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("damage", [Path.unlink, tear, empty, partial(spoil, column="record")])
def test_keys_of_a_damaged_file_count_as_missing(
    store, records, caplog, damage, is_known: bool
) -> None:
    store.parses.append(records[:5])
    (file,) = Path(store.uri, "parses").glob("*.parquet")
    store.parses.append(records[5:])
    with open_store(store.uri, cache_items=0) as reader:
        if is_known:
            assert reader.parses.contains(keys_of(records)).all()
        damage(file)
        assert list(reader.parses.get_many(keys_of(records))) == keys_of(records[5:])
        assert reader.parses.get_many([records[0].key]) == {}
        assert reader.parses.missing(keys_of(records)) == keys_of(records[:5])
        assert list(reader.parses.get_packed(keys_of(records))) == keys_of(records[5:])
        assert reader.parses.unreadable == {file.name}
        reader.parses.append(records[:5])
        assert list(reader.parses.get_many(keys_of(records))) == keys_of(records)
    (message,) = caplog.messages
    assert file.name in message
    assert "parsebank store repair" in message


def test_a_file_that_cannot_be_read_now_is_an_error(store, records) -> None:
    store.parses.append(records)
    (file,) = Path(store.uri, "parses").glob("*.parquet")
    file.rename(file.with_suffix(".away"))
    file.mkdir()  # reading it fails, and nothing says that the rows are lost
    with (
        open_store(store.uri) as reader,
        pytest.raises(StoreError, match=f"cannot read {file.name}"),
    ):
        reader.parses.get_many(keys_of(records))


def test_threads_share_a_store(tmp_path, make_record, parses) -> None:
    groups = [[make_record(parses[n % 40], 50 * t + n) for n in range(50)] for t in range(4)]
    with (
        open_store(tmp_path, buffer_rows=8, buffer_seconds=0.01, cache_items=20) as store,
        ThreadPoolExecutor(4) as threads,
    ):

        def work(group) -> None:
            for number, record in enumerate(group):
                store.parses.put(record)
                there = {r.key: r for r in group[: number + 1]}
                assert store.parses.get_many(list(there)) == there

        list(threads.map(work, groups))
    with open_store(tmp_path) as store:
        everything = {record.key: record for group in groups for record in group}
        assert store.parses.get_many(list(everything)) == everything


@pytest.mark.parametrize("method", ["put", "offer"])
def test_bad_record_does_not_affect_others(store, records, method) -> None:
    parse = records[1].parse
    bad = replace(records[1], parse=replace(parse, text=parse.text + "\udfff"))
    getattr(store.parses, method)(records[0])
    with pytest.raises(InvalidCharacterError):
        getattr(store.parses, method)(bad)
    store.flush()
    assert store.parses.contains([records[0].key, bad.key]).tolist() == [True, False]


def test_get_many_cached_answers_only_if_it_is_sure(tmp_path: Path, records) -> None:
    first, second, third = records[:3]
    with open_store(tmp_path) as store:
        store.parses.append([first])
    with open_store(tmp_path, refresh_seconds=60) as store:
        cached = store.parses.get_many_cached
        assert cached([first.key]) is None  # on the disk, for all that memory knows
        assert cached([second.key]) is None  # nobody has looked yet
        assert store.parses.get_many([first.key]) == {first.key: first}
        assert cached([first.key, second.key]) == {first.key: first}
        assert store.parses.offer(second)
        assert cached([second.key, third.key]) == {second.key: second}
        store.flush()  # looks anew, for the commit may have brought others' parses into sight
        assert cached([second.key, third.key]) == {second.key: second}
        store.parses.append([records[3]])
        assert cached([third.key]) is None
    with open_store(tmp_path) as store:
        assert store.parses.get_many([third.key]) == {}
        assert store.parses.get_many_cached([third.key]) is None  # every look is a new one
