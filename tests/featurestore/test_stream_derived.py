"""Streams with derived relations, marked spans, and contrastive samples."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from syntax.batches import AssemblySpec, FlatExamples, assemble_batch, mark_spans
from syntax.contrast import PhraseSampler, TreeSampler
from syntax.errors import SpecError
from syntax.matrices import sgnet_mask, subtrees

from .streams import keywords

SAMPLERS = (PhraseSampler(probability=0.5), TreeSampler(way="lr_sib"))


def test_relations_are_asked_for_by_name(data: Any) -> None:
    names = ("sgnet_mask(variant=as_released)", "subtree_size", "sla_distance", "distance")
    for batch in islice(data.stream(batch_size=16, max_length=None, matrices=names), 2):
        assert (batch["sla_distance"] <= batch["distance"]).all()
        for row, size in enumerate(batch["lengths"].tolist()):
            parents = batch["parents"][row, :size]
            special = batch["special_tokens_mask"][row, :size]
            mask = sgnet_mask(parents, special=special, variant="as_released")
            np.testing.assert_array_equal(batch[names[0]][row, :size, :size], mask)
            assert batch["subtree_size"][row, :size].tolist() == subtrees(parents).size.tolist()


def test_spans_prune_the_tree(data: Any, rows: Any, special_tokens: Any) -> None:
    # The second and the fourth token of the premise; every third example has none.
    spans = {
        row.example_id: [(0, *row.segments[0].offsets[at].tolist()) for at in (1, 3)]
        for row in rows
        if row.seq % 3
    }
    spec = AssemblySpec(max_length=128, matrices=("gate_distance(keep=0)",))
    stream = data.stream(batch_size=32, shuffle=False, spans=spans, matrices=spec.matrices)
    for number, batch in enumerate(stream):
        part = rows[32 * number : 32 * number + 32]
        flat = FlatExamples.from_segments([row.segments for row in part])
        marked = mark_spans(flat, [spans.get(row.example_id, []) for row in part])
        expected = assemble_batch(marked, special_tokens, spec)
        np.testing.assert_array_equal(batch[spec.matrices[0]], expected[spec.matrices[0]])
        unmarked = assemble_batch(flat, special_tokens, spec)
        assert (batch[spec.matrices[0]] != unmarked[spec.matrices[0]]).any()
        assert "offset_mapping" not in batch


def samples_of(stream: Any) -> dict[str, list[Any]]:
    """Samples of each example, by name."""
    found = {}
    for batch in stream:
        for row, name in enumerate(batch["example_id"]):
            phrase = slice(*batch["phrase_offsets"][row : row + 2])
            tree = slice(*batch["tree_offsets"][row : row + 2])
            found[name] = [
                batch["phrase_anchor"][phrase].tolist(),
                batch["phrase_negatives"][phrase].tolist(),
                batch["tree_negatives"][tree].tolist(),
            ]
    return found


@pytest.mark.slow
def test_samples_depend_on_seed_epoch_and_example_alone(data: Any) -> None:
    options = {"samplers": SAMPLERS[:2], "matrices": (), "max_length": None}
    one = samples_of(data.stream(batch_size=8, **options))
    assert sum(len(phrases) for phrases, *_ in one.values()) > 100
    assert sum(len(trees) for *_, trees in one.values()) > 50
    # Another order, other batches, another rank: the same samples.
    assert one == samples_of(data.stream(batch_size=32, shuffle=False, **options))
    part = samples_of(data.stream(batch_size=8, rank=1, world_size=3, **options))
    assert part.items() <= one.items()
    assert one != samples_of(data.stream(batch_size=8, epoch=1, **options))
    assert one != samples_of(data.stream(batch_size=8, seed=1, **options))


def test_a_resumed_stream_draws_what_the_first_would_have_drawn(data: Any) -> None:
    options = {"batch_size": 8, "samplers": SAMPLERS, "matrices": ()}
    first = data.stream(**options)
    next(first)
    resumed = data.stream(**options)
    resumed.load_state_dict(first.state_dict())
    assert samples_of(resumed) == samples_of(first)


def test_sequences_of_one_example_draw_different_samples(data: Any) -> None:
    options = keywords(level="sentence", truncation="only_second", matrices=())
    stream = data.stream(batch_size=8, samplers=SAMPLERS[:1], **options)
    for batch in stream:
        assert len(batch["phrase_offsets"]) == len(batch["input_ids"]) + 1
        rows = np.repeat(np.arange(len(batch["lengths"])), np.diff(batch["phrase_offsets"]))
        assert (batch["word_ids"][rows, batch["phrase_anchor"]] >= 0).all()


@pytest.mark.parametrize("ways", [("synclm", "lr_sib"), ("synclm", "synclm")])
def test_two_samplers_of_one_kind_are_refused(data, ways) -> None:
    samplers = [TreeSampler(way=way) for way in ways]
    with pytest.raises(SpecError, match=r"gives tree_negatives, tree_offsets, .* has already"):
        next(data.stream(samplers=samplers, matrices=()))
