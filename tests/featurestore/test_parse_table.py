from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from featurestore import Transaction, open_store
from featurestore.tables.encode.packed import unpack_record
from syntax.errors import InvalidCharacterError, SpecError, StoreError


def keys_of(records) -> list[str]:
    return [record.key for record in records]


def test_appended_records_come_back_in_the_order_asked(store, records) -> None:
    assert store.parses.append(records)
    asked = keys_of(reversed(records))
    found = store.parses.get_many(asked)
    assert list(found) == asked
    assert [found[record.key] for record in records] == records


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


def test_unknown_keys_are_left_out(store, records) -> None:
    store.parses.append(records[:2])
    found = store.parses.get_many([records[0].key, "0" * 32, records[1].key])
    assert list(found) == keys_of(records[:2])
    assert store.parses.contains([records[0].key, "0" * 32]).tolist() == [True, False]


def test_an_empty_store_has_nothing(store) -> None:
    assert store.parses.get_many(["0" * 32]) == {}
    assert store.parses.contains(["0" * 32]).tolist() == [False]
    assert store.parses.get_many([]) == {}


def test_another_store_sees_later_appends(tmp_path, records) -> None:
    with open_store(tmp_path) as writer, open_store(tmp_path) as reader:
        for record in records[:3]:
            assert reader.parses.get_many([record.key]) == {}
            writer.parses.append([record])
            assert reader.parses.get_many([record.key]) == {record.key: record}


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


def test_durable_records_are_in_the_table_on_return(store, tmp_path, records) -> None:
    store.parses.put(records[0], durable=True)
    with open_store(store.uri) as other:
        assert other.parses.contains([records[0].key])[0]


def test_a_transaction_appends_once(store, records) -> None:
    shard = Transaction("shard")
    assert store.parses.append(records, shard)
    assert not store.parses.append(records, shard)
    assert store.sql("select count(*) from parses").fetchall() == [(len(records),)]


def test_rows_that_racing_writers_wrote_twice_are_seen_once(store, records) -> None:
    store.parses.append(records[:5])
    store.parses.append(records[3:8])
    assert store.sql("select count(*), count(distinct key) from parses").fetchall() == [(8, 8)]
    assert store.parses.get_many(keys_of(records[:8])) == {r.key: r for r in records[:8]}


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


def test_the_memory_of_decoded_records_is_bounded(tmp_path, records) -> None:
    with open_store(tmp_path, cache_items=3) as store:
        store.parses.append(records)
        store.parses.get_many(keys_of(records))
        assert len(store.parses._cache) == 3
        assert store.parses.get_many(keys_of(records)) == {r.key: r for r in records}


def test_bad_record_does_not_affect_others(store, records) -> None:
    parse = records[1].parse
    bad = replace(records[1], parse=replace(parse, text=parse.text + "\udfff"))
    store.parses.put(records[0])
    with pytest.raises(InvalidCharacterError):
        store.parses.put(bad)
    store.flush()
    assert store.parses.contains([records[0].key, bad.key]).tolist() == [True, False]


@pytest.mark.parametrize("key", ["", "x" * 32, "0" * 31 + " "])
def test_a_malformed_key_is_named(store, key) -> None:
    with pytest.raises(SpecError, match="is not a key"):
        store.parses.get_many([key])


def remove(file: Path) -> None:
    file.unlink()


def tear(file: Path) -> None:
    os.truncate(file, 100)


def empty(file: Path) -> None:
    os.truncate(file, 0)


def flip(file: Path) -> None:
    """Damage the packed records; footer and keys stay readable."""
    place = pq.ParquetFile(file).metadata.row_group(0)
    column = next(
        place.column(n)
        for n in range(place.num_columns)
        if place.column(n).path_in_schema == "record"
    )
    with file.open("r+b") as opened:
        opened.seek(column.data_page_offset + 40)
        opened.write(b"\xff" * 40)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("damage", [remove, tear, empty, flip])
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


def test_a_damaged_parse_file_leaves_sql_to_the_others(store, records) -> None:
    store.parses.append(records[:5])
    (file,) = Path(store.uri, "parses").glob("*.parquet")
    store.parses.append(records[5:])
    tear(file)
    with open_store(store.uri) as reader:
        assert reader.sql("select 1").fetchall() == [(1,)]
        count = reader.sql("select count(*) from parses").fetchall()
        assert count == [(len(records) - 5,)]


def test_threads_share_a_store(tmp_path, make_record, parses) -> None:
    with open_store(tmp_path, buffer_rows=8, buffer_seconds=0.01, cache_items=20) as store:
        groups = [[make_record(parses[n % 40], 50 * t + n) for n in range(50)] for t in range(4)]
        wrong: list[str] = []

        def work(group) -> None:
            for number, record in enumerate(group):
                store.parses.put(record)
                found = store.parses.get_many(keys_of(group[: number + 1]))
                wrong.extend(r.key for r in group[: number + 1] if found.get(r.key) != r)

        run_all(work, groups)
        assert wrong == []
    assert_all_stored(tmp_path, groups)


def run_all(work, groups) -> None:
    threads = [threading.Thread(target=work, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def assert_all_stored(path, groups) -> None:
    with open_store(path) as store:
        everything = [record for group in groups for record in group]
        assert store.parses.get_many(keys_of(everything)) == {r.key: r for r in everything}


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


def test_an_offered_record_is_checked_like_any_other(store, records) -> None:
    record = records[0]
    broken = replace(record, parse=replace(record.parse, text="\ud800" + record.parse.text[1:]))
    with pytest.raises(InvalidCharacterError):
        store.parses.offer(broken)
    assert store.parses.offer(record)
    assert store.parses.get_many([record.key]) == {record.key: record}
