from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest

from featurestore import OrderPolicy, ParsedDataset, open_store
from featurestore.maintenance.vacuum import vacuum_store
from featurestore.stream import batches
from featurestore.stream.prefetch import Prefetched
from featurestore.tables import pins
from featurestore.tables.files import FileGoneError
from syntax.batches import (
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    Template,
    assemble_batch,
)
from syntax.errors import InputError, SpecError

from .streams import (
    CHOICES,
    SENTENCES,
    WINDOWS,
    assert_all_same,
    assert_same,
    ids,
    keywords,
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_length": 24},
        {"max_length": None, "policy": "chain"},
        {"joint_root": False, "separator_edge": "none"},
        {"separator_edge": "last_piece", "truncation": "only_second", "max_length": 64},
        {"matrices": ()},
        {"matrices": ("depth",), "pad_to_multiple_of": 8},
        *(WINDOWS, SENTENCES, CHOICES),
        {**WINDOWS, **CHOICES, "template": "hypothesis premise", "truncation_side": "left"},
        {"truncation_side": ["left", "right"], "max_length": 20, "first_pieces": True},
    ],
)
def test_batches_are_those_of_the_rows_that_were_stored(
    data, rows, special_tokens, options
) -> None:
    template = options.get("template", ())
    template = (template,) if isinstance(template, str) else template
    made = Template.of(data.card.fields, *template) if template else None
    spec = AssemblySpec(**{"max_length": 128, **options, "template": made})
    stream = data.stream(batch_size=16, shuffle=False, **keywords(**options))
    for number, batch in enumerate(stream):
        part = rows[16 * number :][:16]
        flat = FlatExamples.from_segments([row.segments for row in part])
        expected = assemble_batch(flat, special_tokens, spec)
        of = expected.get("example_index", np.arange(len(part)))
        assert batch.pop("example_id") == [part[at].example_id for at in of]
        assert batch.pop("note") == [part[at].labels["note"] for at in of]
        assert batch.pop("score").tolist() == [part[at].labels["score"] for at in of]
        assert batch.pop("label").tolist() == [part[at].seq % 3 for at in of]
        assert_same(batch, expected)


def test_labels_have_fixed_dtypes_and_missing_ones_have_a_value(store, handle, rows) -> None:
    store.features.append(handle, [replace(rows[0], labels={}), rows[1]])
    batch = next(store.dataset("pairs").stream(shuffle=False))
    assert batch["label"].dtype == np.int64
    assert batch["label"].tolist() == [-1, 1]
    assert batch["score"].dtype == np.float32
    assert np.isnan(batch["score"][0])
    assert batch["note"] == [None, "note 1"]


STREAMED = """
import sys
from featurestore import open_store

with open_store(sys.argv[1]) as store:
    next(store.dataset("pairs").stream(batch_size=4))
assert "pandas" not in sys.modules
"""


@pytest.mark.slow
def test_a_stream_does_not_wait_for_pandas(filled) -> None:
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", STREAMED, filled.uri], check=True)


@pytest.mark.parametrize("options", [{}, {"drop_last": True}, {"shuffle": False}])
@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_length_is_the_number_of_batches_of_each_rank(data, world, options) -> None:
    streams = [
        data.stream(batch_size=7, rank=rank, world_size=world, **keywords(**options))
        for rank in range(world)
    ]
    lengths = {len(stream) for stream in streams}
    assert {len(list(stream)) for stream in streams} == lengths
    assert {stream.remaining for stream in streams} == {0}
    assert len(lengths) == 1


def test_seed_epoch_and_nothing_else_choose_the_order(data) -> None:
    def order(**options) -> list[str]:
        return ids(data.stream(batch_size=8, **options))

    assert order(seed=1) == order(seed=1) == order(seed=1, matrices=(), buffers="ring")
    assert order(seed=1) == order(seed=1, prefetch=2, policy="none")
    assert len({tuple(order(seed=s, epoch=e)) for s in range(2) for e in range(3)}) == 6


@pytest.mark.parametrize("prefetch", [0, 1, 3])
@pytest.mark.parametrize("taken", [0, 1, 4, 13])
def test_a_restored_stream_goes_on_with_the_next_batch(data, taken, prefetch) -> None:
    options = {"batch_size": 8, "seed": 4, "epoch": 2}
    whole = list(data.stream(**options))
    first = data.stream(prefetch=prefetch, **options)
    for expected, batch in zip(whole, islice(first, taken), strict=False):
        assert_same(batch, expected)
    state = json.loads(json.dumps(first.state_dict()))
    first.close()
    second = data.stream(prefetch=prefetch, **options)
    second.load_state_dict(state)
    assert second.remaining == len(whole) - taken
    rest = list(second)
    assert len(rest) == len(whole) - taken
    assert_all_same(whole[taken:], rest)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (4, 2), (2, 3)])
def test_another_world_size_takes_over(data, before, after) -> None:
    options = {"batch_size": 4, "seed": 9}
    seen, states = [], []
    for rank in range(before):
        stream = data.stream(rank=rank, world_size=before, **options)
        seen += ids(islice(stream, 3))
        states.append(stream.state_dict())
    assert all(state == states[0] for state in states)
    lengths = set()
    for rank in range(after):
        stream = data.stream(rank=rank, world_size=after, **options)
        stream.load_state_dict(states[0])
        lengths.add(stream.remaining)
        seen += ids(stream)
    assert sorted(seen) == sorted(ids(data.stream(**options)))
    assert len(lengths) == 1


def test_a_stream_can_go_back(data) -> None:
    stream = data.stream(batch_size=8)
    first, state = next(stream), stream.state_dict()
    second = next(stream)
    stream.load_state_dict(state)
    assert_same(next(stream), second)
    assert first["example_id"] != second["example_id"]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"seed": 1}, "seed was 1 and is 0"),
        ({"epoch": 3}, "epoch was 3"),
        ({"batch_size": 16}, "batch_size"),
        ({"max_length": 64}, "max_length"),
        ({"bucket": False}, "bucket"),
    ],
)
def test_a_state_of_another_order_is_refused(data, other, named) -> None:
    state = data.stream(**{"batch_size": 8, **other}).state_dict()
    with pytest.raises(SpecError, match=named):
        data.stream(batch_size=8).load_state_dict(state)


def test_a_state_of_another_version_is_refused(filled, handle, make_row, records) -> None:
    state = filled.dataset("pairs").stream().state_dict()
    filled.features.append(handle, [make_row(500, records[:2])])
    with pytest.raises(SpecError, match="over version 4: examples was"):
        filled.dataset("pairs").stream().load_state_dict(state)


def test_state_loads_after_a_compaction(filled) -> None:
    stream = filled.dataset("pairs").stream(batch_size=8)
    next(stream)
    state, rest = stream.state_dict(), ids(stream)
    filled.compact()
    resumed = filled.dataset("pairs").stream(batch_size=8)
    resumed.load_state_dict(state)
    assert ids(resumed) == rest


def test_a_state_of_buckets_survives_json(filled, records) -> None:
    filled.parses.append(records)
    data = ParsedDataset(filled, filled.dataset("pairs"))
    order = OrderPolicy(buckets=(20, 60, 400))
    stream = data.stream(batch_size=8, order=order)
    next(stream)
    resumed = data.stream(batch_size=8, order=order)
    resumed.load_state_dict(json.loads(json.dumps(stream.state_dict())))
    assert ids(resumed) == ids(stream)
    with pytest.raises(SpecError, match="buckets was"):
        data.stream(batch_size=8).load_state_dict(stream.state_dict())


@pytest.fixture
def looking(monkeypatch) -> None:
    """Streams read little at a time, and look at their files before each batch."""
    monkeypatch.setattr(batches, "READ_PIECES", 400)
    monkeypatch.setattr(pins, "LOOK_SECONDS", 0.0)


@pytest.mark.parametrize("prefetch", [0, 1])
@pytest.mark.usefixtures("looking")
def test_streams_go_on_through_compaction_and_vacuum(filled, prefetch) -> None:
    data = filled.dataset("pairs")

    def stream(rank: int):
        return data.stream(batch_size=8, rank=rank, world_size=2, prefetch=prefetch)

    whole = [ids(stream(rank)) for rank in range(2)]
    assert filled.pins.all() == {}  # what is not replaced needs no lease
    streams = [copy.copy(stream(0)), pickle.loads(pickle.dumps(stream(1)))]
    begun = [next(one)["example_id"] for one in streams]
    with open_store(filled.uri) as other:
        other.compact()
        begun += [next(one)["example_id"] for one in streams for _ in range(1 + 2 * prefetch)]
        (kept,) = other.pins.all().values()  # one for both ranks
        assert (kept.table, kept.version, kept.by) == (data.card.path, data.version, "streams")
        assert other.pins.table.snapshot().files[0].rows == 1
        vacuum_store(other, older_than_hours=0)
    given = [*chain(*begun), *chain(*map(ids, streams))]
    assert sorted(given) == sorted(chain(*whole))
    assert ids(filled.dataset("pairs", version=data.version).stream())


@pytest.mark.usefixtures("looking")
def test_a_lease_is_renewed_and_ends_by_itself(filled, monkeypatch) -> None:
    data = filled.dataset("pairs")
    stream = data.stream(batch_size=8)
    next(stream)
    filled.compact()
    next(stream)
    (first,) = filled.pins.all().values()
    next(stream)
    assert list(filled.pins.all().values()) == [first]
    monkeypatch.setattr(pins, "LEASE_HOURS", 100.0)
    next(stream)
    (second,) = filled.pins.all().values()
    assert (second.name, second.version) == (first.name, first.version)
    assert second.until > first.until
    data.pin("paper")
    filled.pins.remove(second.name)
    next(stream)
    assert list(filled.pins.all()) == ["paper"]
    filled.pins.remove("paper")
    monkeypatch.setattr(pins, "LEASE_HOURS", 0.0)  # its process dies, and time goes by
    next(stream)
    assert filled.pins.all() == {}
    vacuum_store(filled, older_than_hours=0)
    with pytest.raises(FileGoneError):
        ids(stream)


@pytest.mark.usefixtures("looking")
def test_a_store_that_cannot_be_written_is_streamed_without_a_lease(filled, caplog) -> None:
    data = filled.dataset("pairs")
    stream = data.stream(batch_size=8)
    next(stream)
    filled.compact()
    Path(filled.uri, "pins").write_text("no folder")
    assert len(ids(stream)) == 92
    (warning,) = [record.message for record in caplog.records if "vacuum" in record.message]
    assert f"version {data.version} of {data.card.path} has been replaced" in warning


@pytest.mark.parametrize("prefetch", [0, 1, 2])
def test_ring_batches_hold_until_the_next(data, prefetch) -> None:
    ring = data.stream(batch_size=8, buffers="ring", prefetch=prefetch)
    assert_all_same(ring, data.stream(batch_size=8))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_length": 20},
        {"joint_root": False},
        {"separator_edge": "none"},
        {"joint_root": False, "max_length": 20, "truncation": "longest_first"},
        {"pad_to_multiple_of": 8, "max_length": 30, "batch_size": 3},
        *(
            {"max_length": 20, "truncation_side": side, "segment_limits": (7, None)}
            for side in ("left", ("left", "right"), ("right", "left"))
        ),
    ],
)
def test_stored_matrices_equal_derived_ones(data, options) -> None:
    options = keywords(**{"batch_size": 8, **options})
    stored = data.stream(matrices="stored", **options)
    assert_all_same(stored, data.stream(**options))


@pytest.mark.parametrize("side", ["left", "right", ("left", "right"), ("right", "left")])
def test_stored_matrices_of_an_empty_last_text_are_the_derived_ones(
    store, handle, rows, side
) -> None:
    column = np.zeros(0, np.int32)
    byte = np.zeros(0, np.uint8)
    nothing = SegmentFeatures(
        column, column, column, byte, byte, column, np.zeros((0, 2), np.int32)
    )
    first = replace(rows[0], texts=(rows[0].texts[0], ""), segments=(rows[0].segments[0], nothing))
    store.features.append(handle, [first, rows[1]])
    data, options = store.dataset("pairs"), keywords(truncation_side=side, max_length=12)
    for size in (1, 2):
        stored = data.stream(batch_size=size, matrices="stored", **options)
        assert_all_same(stored, data.stream(batch_size=size, **options))


def test_missing_stored_matrices_are_reported_by_name(store, handle, rows) -> None:
    store.features.append(replace(handle, matrices=False), rows[:4])
    with pytest.raises(SpecError, match="'ex-0' was stored without matrices"):
        next(store.dataset("pairs").stream(matrices="stored", shuffle=False))


def test_many_pools_and_row_groups_give_every_example_once(store, handle, rows) -> None:
    big = replace(handle, matrices=False)
    copies = [
        replace(
            row,
            seq=100 * n + row.seq,
            example_id=f"{n}-{row.seq}",
            example_key=f"{n:016x}{row.seq:016x}",
        )
        for n in range(300)
        for row in rows
    ]
    for start in range(0, len(copies), 7000):
        store.features.append(big, copies[start : start + 7000])
    data = store.dataset("pairs")
    stream = data.stream(batch_size=64, matrices=(), order=OrderPolicy(pool=1))
    assert sorted(ids(stream)) == sorted(row.example_id for row in copies)
    assert len(stream._batches.order.pool_ends) >= 3


class Sizes:
    """A reader that notes the pieces of what it reads."""

    def __init__(self, data) -> None:
        self._data, self._reader, self.pieces = data, data.open_reader(False), []

    def fetch(self, examples, is_wanted) -> None:
        self._reader.fetch(examples, is_wanted)

    def read(self, examples):
        self.pieces.append(int(self._data.rows.pieces[examples].sum()))
        return self._reader.read(examples)


@pytest.mark.parametrize("most", [1, 400, 1500])
def test_no_more_is_read_together_than_the_bound(data, monkeypatch, most) -> None:
    def stream():
        return data.stream(batch_size=7, seed=2, matrices=(), order=OrderPolicy(pool=None))

    whole = ids(stream())
    monkeypatch.setattr(batches, "READ_PIECES", most)
    sizes = Sizes(data)
    monkeypatch.setattr(data, "open_reader", lambda *_: sizes)
    assert ids(stream()) == whole
    assert sum(sizes.pieces) == data.rows.pieces.sum()
    largest = max(int(data.rows.pieces[examples].sum()) for examples in batches_of(stream()))
    assert max(sizes.pieces) <= max(most, largest)
    assert len(sizes.pieces) > 1


def batches_of(stream) -> list[np.ndarray]:
    order = stream._batches.order
    return np.split(order.examples, order.batch_ends)


@pytest.mark.parametrize("rank", [0, 1])
def test_an_exact_shuffle_resumes_within_what_was_read_together(data, monkeypatch, rank) -> None:
    def stream():
        order = OrderPolicy(pool=None)
        return data.stream(batch_size=4, seed=5, rank=rank, world_size=2, matrices=(), order=order)

    whole = [batch["example_id"] for batch in stream()]
    monkeypatch.setattr(batches, "READ_PIECES", 700)
    first, later = stream(), stream()
    begun = [batch["example_id"] for batch in islice(first, 5)]
    later.load_state_dict(first.state_dict())
    assert begun + [batch["example_id"] for batch in later] == whole


@pytest.mark.parametrize("depth", [1, 3])
def test_prefetch_thread_ends_with_its_stream_or_if_the_loop_is_left(data, depth) -> None:
    before = set(threading.enumerate())
    closed = data.stream(batch_size=2, prefetch=depth)
    next(closed)
    closed.close()
    assert set(threading.enumerate()) == before
    for _ in range(3):
        for _batch in data.stream(batch_size=2, prefetch=depth):
            break
    started = [one for one in threading.enumerate() if one not in before]
    for thread in started:
        thread.join(timeout=240)
    assert [thread for thread in started if thread.is_alive()] == []


def test_an_error_names_its_example_by_id(data) -> None:
    stream = data.stream(
        batch_size=8, seed=2, max_length=8, assembly=AssemblySpec(truncation="only_second")
    )
    with pytest.raises(SpecError, match=r"^example 'ex-\d+' has \d+ pieces") as caught:
        list(stream)
    assert caught.value.detail["example_id"] in caught.value.message
    with pytest.raises(InputError, match=r"^example 'ex-7': no piece of segment 0 covers any of c"):
        list(data.stream(spans={"ex-7": [(0, 90_000, 90_001)]}))


def test_a_state_that_leaves_too_few_examples_is_refused_when_it_is_loaded(data) -> None:
    stream = data.stream(batch_size=8, matrices=())
    for _ in range(12):
        next(stream)
    later = data.stream(batch_size=8, matrices=(), world_size=5)
    with pytest.raises(SpecError, match="4 examples cannot be shared by 5 ranks"):
        later.load_state_dict(stream.state_dict())
    assert later.state_dict()["consumed"] == 0


@pytest.mark.parametrize("world", [2, 3, 8])
def test_a_token_budget_holds_on_every_rank(store, handle, records, make_row, world) -> None:
    lengths = sorted(records, key=lambda record: len(record.parse.text))
    short = [make_row(seq, (lengths[0], lengths[1])) for seq in range(61)]
    long = [make_row(61 + seq, (lengths[-1], lengths[-2])) for seq in range(9)]
    store.features.append(handle, [*short, *long])
    data = store.dataset("pairs")
    given = [
        batch
        for rank in range(world)
        for batch in data.stream(
            max_length=256,
            rank=rank,
            world_size=world,
            matrices=(),
            order=OrderPolicy(batch_tokens=512),
        )
    ]
    assert all(one["input_ids"].size <= 512 or len(one["example_id"]) == 1 for one in given)
    assert sorted(ids(given)) == sorted(f"ex-{seq}" for seq in range(70))


def test_errors_of_a_prefetched_iterator_arrive_in_their_place() -> None:
    def source():
        yield 1
        raise KeyError("broken")

    items = Prefetched(source(), 2)
    assert next(items) == 1
    with pytest.raises(KeyError, match="broken"):
        next(items)
    with pytest.raises(StopIteration):
        next(items)
    items.close()
