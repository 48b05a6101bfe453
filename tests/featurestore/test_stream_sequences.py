"""Streams whose examples become several sequences, and what they tell about pieces."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pytest

from featurestore import CrossedDataset
from syntax.batches import (
    INSIDE,
    AssemblySpec,
    FlatExamples,
    Template,
    assemble_batch,
    label_pieces,
    locate,
    spans_of_text,
)
from syntax.errors import SpecError, UnknownNameError

from .streams import keywords

WINDOWS = {
    "max_length": 40,
    "truncation": "only_second",
    "stride": 5,
    "segment_limits": (20, None),
    "offsets": True,
}
SENTENCES = {"max_length": 64, "truncation": "only_second", "level": "sentence", "offsets": True}
CHOICES = {"template": ("hypothesis premise", "premise+hypothesis"), "max_length": 30}


@pytest.fixture
def data(filled):
    return filled.dataset("pairs")


def assert_same(one, other) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.parametrize(
    "options",
    [
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
    side = options.get("truncation_side", "right")
    spec = AssemblySpec(
        **{
            "max_length": 128,
            **options,
            "template": Template.of(data.card.fields, *template) if template else None,
            "truncation_side": side if isinstance(side, str) else tuple(side),
        }
    )
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


@pytest.mark.parametrize("options", [WINDOWS, SENTENCES])
@pytest.mark.parametrize("world", [1, 3])
def test_no_piece_and_no_window_of_an_example_is_lost(data, rows, options, world) -> None:
    seen = {}
    for rank in range(world):
        for batch in data.stream(
            batch_size=7, seed=3, rank=rank, world_size=world, **keywords(**options)
        ):
            best = np.argwhere(batch["is_max_context"])
            for row, column in best.tolist():
                found = seen.setdefault(batch["example_id"][row], [])
                found.append((batch["segment_ids"][row, column], batch["piece_ids"][row, column]))
    limit = options.get("segment_limits", (None,))[0]
    assert seen.keys() == {row.example_id for row in rows}
    for row in rows:
        lengths = [len(row.segments[0].input_ids[:limit]), len(row.segments[1].input_ids)]
        wanted = [(at, n) for at, length in enumerate(lengths) for n in range(length)]
        assert sorted(seen[row.example_id]) == wanted


@pytest.mark.parametrize("options", [WINDOWS, SENTENCES, CHOICES])
def test_the_order_of_examples_is_that_without_windows(data, options) -> None:
    plain = data.stream(batch_size=7, seed=3, max_length=options["max_length"])
    stream = data.stream(batch_size=7, seed=3, **keywords(**options))
    for one, other in zip(stream, plain, strict=True):
        assert list(dict.fromkeys(one["example_id"])) == other["example_id"]


def test_predictions_of_windows_are_merged_by_their_widest_context(data, rows) -> None:
    by_id = {row.example_id: row for row in rows}
    merged = {row.example_id: np.zeros(len(row.segments[1].input_ids), np.int64) for row in rows}
    counts = []
    for batch in data.stream(batch_size=9, matrices=(), **keywords(**WINDOWS)):
        keep = batch["is_max_context"] & (batch["segment_ids"] == 1)
        for at, name in enumerate(batch["example_id"]):
            # A model that predicts the ids themselves.
            merged[name][batch["piece_ids"][at, keep[at]]] += batch["input_ids"][at, keep[at]]
        counts.append(int(batch["window_index"].max()))
    assert max(counts) >= 2
    for name, found in merged.items():
        assert found.tolist() == by_id[name].segments[1].input_ids.tolist()


@pytest.mark.parametrize("options", [WINDOWS, CHOICES])
def test_a_restored_stream_goes_on_with_the_next_batch(data, options) -> None:
    options = keywords(**{"batch_size": 8, "seed": 4, **options})
    whole = list(data.stream(**options))
    first = data.stream(**options, prefetch=1, buffers="ring")
    list(islice(first, 5))
    state = json.loads(json.dumps(first.state_dict()))
    first.close()
    later = [data.stream(**options, rank=rank, world_size=2) for rank in range(2)]
    for stream in later:
        stream.load_state_dict(state)
    rest = [name for stream in later for batch in stream for name in batch["example_id"]]
    assert sorted(rest) == sorted(name for batch in whole[5:] for name in batch["example_id"])


def test_answers_reach_the_batch_and_come_back(data, rows) -> None:
    by_id = {row.example_id: row for row in rows}
    for batch in data.stream(batch_size=16, **keywords(**SENTENCES)):
        assert batch["offset_mapping"].dtype == np.int32
        first_of = np.unique(batch["example_index"], return_index=True)[1]
        segments = [by_id[batch["example_id"][row]].segments[1] for row in first_of]
        # The second piece of the passage, to the fourth: within its first sentence.
        spans = [(one.offsets[1, 0], one.offsets[3, 1]) for one in segments]
        found = locate(batch, spans, segment=1)
        inside = found.state == INSIDE
        assert np.bincount(batch["example_index"][inside]).tolist() == [1] * len(spans)
        back = spans_of_text(batch, found.start, found.end)[inside]
        assert back.tolist() == [list(span) for span in spans]


def test_stored_tags_are_labels_of_pieces(data, rows) -> None:
    by_id = {row.example_id: row for row in rows}
    for batch in data.stream(
        batch_size=16, max_length=48, assembly=AssemblySpec(first_pieces=True)
    ):
        features = [by_id[name].segments[0] for name in batch["example_id"]]
        tags = [
            one.deprel[np.unique(one.word_ids[one.word_ids >= 0], return_index=True)[1]]
            for one in features
        ]
        everywhere = label_pieces(batch, tags, pieces="all")
        ours = batch["segment_ids"] == 0
        assert (everywhere[ours] == batch["deprel"][ours]).all()
        labels = label_pieces(batch, tags)
        assert (
            labels[ours & batch["first_pieces"]] == batch["deprel"][ours & batch["first_pieces"]]
        ).all()
        assert (labels[~(ours & batch["first_pieces"])] == -100).all()


def test_crossed_datasets_have_offsets_too(filled, make_handle, rows) -> None:
    filled.features.append(make_handle(lang="de"), rows)
    sides = [filled.dataset("pairs", lang=lang) for lang in ("en", "de")]
    crossed = CrossedDataset(*sides, ["hypothesis"])
    options = keywords(**WINDOWS)
    for one, other in zip(crossed.stream(**options), sides[0].stream(**options), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("side", ["left", ("left", "right"), ("right", "left")])
def test_stored_matrices_are_cut_on_the_same_side(data, side) -> None:
    options = {"batch_size": 8, "max_length": 20, "truncation_side": side}
    options = keywords(**options, segment_limits=(7, None))
    stored = data.stream(matrices="stored", **options)
    for one, other in zip(stored, data.stream(**options), strict=True):
        assert_same(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"template": "premise", "batch_tokens": 100}, "give batch_size"),
        ({"stride": 4, "truncation": "only_second", "batch_tokens": 100}, "give batch_size"),
        ({"template": "premise", "matrices": "stored"}, "derive them"),
        ({"stride": 4}, "only_first or only_second"),
        ({"stride": 4, "max_length": None, "truncation": "only_first"}, "without max_length"),
        ({"stride": 0}, "stride is 0"),
        ({"level": "paragraph"}, "one of document, sentence"),
        ({"truncation_side": ("left",)}, r"has 1 entries, and example 'ex-\d+' 2 parts"),
        ({"truncation_side": "front"}, "one of right, left"),
        ({"segment_limits": (0, None)}, "one of segment_limits is 0; it must be at least 1"),
        ({"stride": 4, "max_length": 5, "truncation": "only_second"}, "leaves no room"),
    ],
)
def test_stream_refuses_contradictory_sequence_options(data, options, message) -> None:
    with pytest.raises(SpecError, match=message):
        next(data.stream(**keywords(**options)))


def test_stream_refuses_an_unknown_field_by_name(data) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'premise'"):
        data.stream(assembly=AssemblySpec(template="premises hypothesis"))
