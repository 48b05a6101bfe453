"""Templates, windows, sentences and sides against a twin that moves pieces one at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syntax.batches import (
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    SpecialTokens,
    Template,
    assemble_batch,
)
from syntax.errors import SpecError
from syntax.subwords import POLICIES

SlowMatrices = Callable[[list[int]], Any]
Piece = tuple[int, int]
"""Segment within the sequence, and number of the piece in it."""

BERT = SpecialTokens(prefix=(101,), separator=(102,), suffix=(103,), pad_id=9, vocab_size=200)
ROBERTA = SpecialTokens(
    prefix=(1,), separator=(2, 3), suffix=(4,), pad_id=5, vocab_size=200, segment_type_ids=(0, 0)
)
TEMPLATES = [
    None,
    Template.of("abc", "b"),
    Template.of("abc", "c a"),
    Template.of("abc", "a+b c"),
    Template.of("abc", "c a+a+b"),
    Template.of("abc", "a+b c", "c b", "a a"),
    Template.of("abc", "a+b+c"),
    Template.of("abc", "a [bc]"),
]


class MisfitError(Exception):
    """The twin cannot make an example fit."""


@dataclass
class Row:
    """One sequence of the twin: its segments, in parts, and the pieces that each part keeps."""

    example: int
    choice: int
    window: int
    segments: list[SegmentFeatures]
    parts: list[list[int]]
    kept: list[list[Piece]]
    widest: set[Piece]


def rows_of(
    examples: list[list[SegmentFeatures]], special: SpecialTokens, spec: AssemblySpec
) -> list[Row]:
    rows = []
    for number, stored in enumerate(examples):
        whole = (tuple((at,) for at in range(len(stored))),)
        choices = spec.template.sequences if spec.template else whole
        for choice, fields in enumerate(choices):
            segments = [stored[field] for part in fields for field in part]
            places = iter(range(len(segments)))
            parts = [[next(places) for _ in part] for part in fields]
            kept = [[(at, n) for at in part for n in range(len(segments[at]))] for part in parts]
            for index, limit in enumerate(spec.segment_limits):
                while limit is not None and len(kept[index]) > limit:
                    drop(kept, index, spec)
            room = (spec.max_length or 10**6) - special.count(len(parts))
            if not spec.splits:
                shorten(kept, room, spec)
                rows.append(Row(number, choice, 0, segments, parts, kept, set()))
                continue
            rows += windows(number, choice, segments, parts, kept, room, spec)
    return rows


def drop(kept: list[list[Piece]], part: int, spec: AssemblySpec) -> None:
    side = spec.truncation_side
    side = side if isinstance(side, str) else side[part]
    kept[part].pop(0 if side == "left" else -1)


def shorten(kept: list[list[Piece]], room: int, spec: AssemblySpec) -> None:
    if room < 0:
        raise MisfitError
    before = [len(part) for part in kept]
    while sum(map(len, kept)) > room:
        longest = max(range(len(kept)), key=lambda part: (len(kept[part]), part))
        if spec.truncation_tie == "fast":
            longest = max(
                range(len(kept)), key=lambda part: (len(kept[part]), -before[part], -part)
            )
        chosen = {"longest_first": longest, "only_first": 0, "only_second": 1}.get(spec.truncation)
        if chosen is None or chosen >= len(kept) or not kept[chosen]:
            raise MisfitError
        drop(kept, chosen, spec)


def windows(
    number: int,
    choice: int,
    segments: list[SegmentFeatures],
    parts: list[list[int]],
    kept: list[list[Piece]],
    room: int,
    spec: AssemblySpec,
) -> list[Row]:
    if spec.truncation == "longest_first" and len(kept) > 1:
        raise MisfitError
    target = 1 if spec.truncation == "only_second" else 0
    if target >= len(kept):
        raise MisfitError
    room -= sum(len(part) for index, part in enumerate(kept) if index != target)
    if room < bool(kept[target]):
        raise MisfitError
    groups = [kept[target]]
    if spec.level == "sentence":
        groups = sentences(kept[target], segments, parts[target]) or [[]]
    shown = [window for group in groups for window in slide(group, room, target, spec)]
    widest = widest_windows(shown)
    rows = []
    for window, pieces in enumerate(shown):
        ours = [pieces if index == target else part for index, part in enumerate(kept)]
        others = {piece for index, part in enumerate(kept) if index != target for piece in part}
        best = {piece for piece in pieces if widest[piece] == window}
        best |= others if window == 0 else set()
        rows.append(Row(number, choice, window, segments, parts, ours, best))
    return rows


def sentences(
    kept: list[Piece], segments: list[SegmentFeatures], part: list[int]
) -> list[list[Piece]]:
    groups = []
    for at in part:
        ids = segments[at].sentence_ids.tolist()
        known = [one for one in ids if one >= 0]
        current = known[0] if known else -1
        for piece, one in enumerate(ids):
            current = one if one >= 0 else current
            if not groups or groups[-1][0] != (at, current):
                groups.append(((at, current), []))
            groups[-1][1].append((at, piece))
    clipped = [[piece for piece in group if piece in kept] for _, group in groups]
    return [group for group in clipped if group]


def slide(group: list[Piece], room: int, target: int, spec: AssemblySpec) -> list[list[Piece]]:
    """The loop of BERT's run_squad.py; without a stride, truncation."""
    if spec.stride is None:
        one = [list(group)]
        while len(one[0]) > room:
            drop([[], one[0]] if target else one, target, spec)
        return one
    found, start = [], 0
    while True:
        length = min(len(group) - start, room)
        found.append(group[start : start + length])
        if start + length == len(group):
            return found
        start += min(length, spec.stride)


def widest_windows(shown: list[list[Piece]]) -> dict[Piece, int]:
    """BERT's _check_is_max_context, in exact arithmetic."""
    best: dict[Piece, tuple[Fraction, int]] = {}
    for number, window in enumerate(shown):
        for place, piece in enumerate(window):
            context = min(place, len(window) - 1 - place)
            score = context + Fraction(len(window), 100)
            if piece not in best or score > best[piece][0]:
                best[piece] = (score, number)
    return {piece: number for piece, (_, number) in best.items()}


class Twin:
    """A sequence before anything is cut, as lists of nodes, and the nodes that are left."""

    def __init__(self, row: Row, special: SpecialTokens, spec: AssemblySpec) -> None:
        self.parents: list[int] = []
        self.source: list[int] = []
        self.token: list[int] = []
        self.type_id: list[int] = []
        self.piece: list[Piece | None] = []
        root = 0 if spec.joint_root else -1
        self._add(special.prefix, root, special.segment_type_ids[0])
        for index, part in enumerate(row.parts):
            type_id = special.segment_type_ids[min(index, 1)]
            anchor = -1 if spec.separator_edge == "none" else root
            for at in part:
                start = len(self.parents)
                self._add_segment(at, row.segments[at], type_id, root, spec)
                re_anchors = spec.separator_edge == "last_piece" and len(row.parts) > 1
                if re_anchors and len(self.parents) > start:
                    anchor = self.source[-1]
            last = index == len(row.parts) - 1
            self._add(special.suffix if last else special.separator, anchor, type_id)
        left = {piece for part in row.kept for piece in part}
        self.kept = [
            node for node, piece in enumerate(self.piece) if piece is None or piece in left
        ]

    def _add_segment(
        self, at: int, segment: SegmentFeatures, type_id: int, root: int, spec: AssemblySpec
    ) -> None:
        start = len(self.parents)
        parents, source = POLICIES[spec.policy](segment.head, segment.word_ids)
        for piece in range(len(segment)):
            parent = int(parents[piece])
            self.parents.append(start + parent if parent >= 0 else root if parent == -1 else -1)
            self.source.append(start + int(source[piece]))
            self.token.append(int(segment.input_ids[piece]))
            self.type_id.append(type_id)
            self.piece.append((at, piece))

    def _add(self, tokens: tuple[int, ...], anchor: int, type_id: int) -> None:
        for token in tokens:
            here = len(self.parents)
            self.parents.append(-1 if anchor == here else anchor)
            self.source.append(here)
            self.token.append(token)
            self.type_id.append(type_id)
            self.piece.append(None)

    def nearest_kept(self, node: int) -> int:
        above = self.parents[node]
        while above >= 0 and above not in self.kept:
            above = self.parents[above]
        return self.kept.index(above) if above >= 0 else -1


def check(
    batch: dict[str, Any],
    rows: list[Row],
    special: SpecialTokens,
    spec: AssemblySpec,
    slow_matrices: SlowMatrices,
) -> None:
    assert len(batch["input_ids"]) == len(rows)
    for index, row in enumerate(rows):
        twin = Twin(row, special, spec)
        size = len(twin.kept)
        assert batch["lengths"][index] == size

        def shown(name: str, index: int = index, size: int = size) -> Any:
            return batch[name][index][:size].tolist()

        pieces = [twin.piece[node] for node in twin.kept]
        assert shown("input_ids") == [twin.token[node] for node in twin.kept]
        assert shown("token_type_ids") == [twin.type_id[node] for node in twin.kept]
        assert shown("special_tokens_mask") == [piece is None for piece in pieces]
        assert shown("parents") == [twin.nearest_kept(node) for node in twin.kept]
        for name, value in per_piece(row, spec).items():
            assert shown(name) == [value(piece) for piece in pieces], name
        check_shown(row, batch["shown_characters"][index].tolist())
        slow, source = slow_matrices(twin.parents), [twin.source[node] for node in twin.kept]
        none = np.iinfo(batch["distance"].dtype).max
        distance = [[slow.distance[i][j] for j in source] for i in source]
        found = batch["distance"][index][:size, :size].tolist()
        assert found == [[none if x is None else x for x in line] for line in distance]
        assert shown("depth") == [slow.depth[node] for node in source]
    assert ("example_index" in batch) == (spec.template is not None or spec.splits)
    for name in ("example", "choice", "window") if "example_index" in batch else ():
        assert batch[f"{name}_index"].tolist() == [getattr(row, name) for row in rows]


def per_piece(row: Row, spec: AssemblySpec) -> dict[str, Callable[[Piece | None], Any]]:
    def stored(name: str, missing: Any) -> Callable[[Piece | None], Any]:
        return lambda at: (
            missing if at is None else getattr(row.segments[at[0]], name)[at[1]].tolist()
        )

    def first(at: Piece | None) -> bool:
        if at is None:
            return False
        words = row.segments[at[0]].word_ids.tolist()
        return words[at[1]] >= 0 and words.index(words[at[1]]) == at[1]

    values: dict[str, Callable[[Piece | None], Any]] = {
        "segment_ids": lambda at: -1 if at is None else at[0],
        "piece_ids": lambda at: -1 if at is None else at[1],
        "word_ids": stored("word_ids", -1),
        "sentence_ids": stored("sentence_ids", -1),
        "upos": stored("upos", 0),
        "offset_mapping": stored("offsets", [0, 0]),
        "first_pieces": first,
    }
    if spec.splits:
        values["is_max_context"] = lambda at: at in row.widest
    return values


def check_shown(row: Row, bounds: list[list[int]]) -> None:
    """Of every segment: from what was cut before to what was cut behind."""
    for members, kept in zip(row.parts, row.kept, strict=True):
        for at in members if kept else []:
            offsets = row.segments[at].offsets
            cut = [n for n in range(len(offsets)) if (at, n) not in kept]
            left = [offsets[n, 1] for n in cut if (at, n) < kept[0]]
            right = [offsets[n, 0] for n in cut if (at, n) > kept[-1]]
            assert bounds[at] == [max(left, default=0), min(right, default=2**31 - 1)]
    assert bounds[len(row.segments) :] == [[0, 0]] * (len(bounds) - len(row.segments))


@st.composite
def specs(draw: st.DrawFn, splits: bool) -> AssemblySpec:
    template = draw(st.sampled_from(TEMPLATES))
    sizes = {len(one) for one in template.sequences} if template else {3}
    size = sizes.pop() if len(sizes) == 1 else 0
    sides = st.sampled_from(["right", "left"])
    limits = st.none() | st.integers(1, 9)
    strategies = ["longest_first", "only_first", "only_second"]
    level = draw(st.sampled_from(["document", "sentence"])) if splits else "document"
    length = draw(st.none() | st.integers(8, 40))
    stride = draw(st.none() | st.integers(1, 12)) if splits and length else None
    splits = stride is not None or level == "sentence"
    return AssemblySpec(
        max_length=length,
        policy=draw(st.sampled_from(["attach", "broadcast", "chain"])),
        joint_root=draw(st.booleans()),
        separator_edge=draw(st.sampled_from(["root", "last_piece", "none"])),
        truncation=draw(st.sampled_from(strategies if splits else [*strategies, "none"])),
        truncation_side=draw(sides | (st.tuples(*[sides] * size) if size else sides)),
        segment_limits=draw(st.just(()) | (st.tuples(*[limits] * size) if size else st.just(()))),
        template=template,
        stride=stride,
        level=level,
        offsets=True,
        first_pieces=True,
        truncation_tie=draw(st.sampled_from(["fast", "slow"])),
    )


@pytest.mark.parametrize("splits", [False, True])
@given(data=st.data(), frame=st.sampled_from([BERT, ROBERTA]))
@settings(max_examples=80)
def test_any_batch_of_sequences_equals_its_twin(splits, data, frame, texts, slow_matrices) -> None:
    drawn = data.draw(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=3))
    examples = [[text.features(1000 * at) for at, text in enumerate(one, 1)] for one in drawn]
    spec = data.draw(specs(splits))
    flat = FlatExamples.from_segments(examples)
    try:
        rows = rows_of(examples, frame, spec)
    except MisfitError:
        with pytest.raises(SpecError):
            assemble_batch(flat, frame, spec)
        return
    check(assemble_batch(flat, frame, spec), rows, frame, spec, slow_matrices)


@given(data=st.data())
def test_windows_lose_nothing_and_every_piece_has_one_widest_window(data, texts) -> None:
    examples = data.draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=3))
    stored = [[text.features() for text in example] for example in examples]
    spec = AssemblySpec(
        max_length=max(len(question) for question, _ in stored) + data.draw(st.integers(4, 12)),
        truncation="only_second",
        stride=data.draw(st.integers(1, 20)),
        level=data.draw(st.sampled_from(["document", "sentence"])),
        offsets=True,
        matrices=(),
    )
    batch = assemble_batch(FlatExamples.from_segments(stored), BERT, spec)
    rows, columns = np.nonzero(batch["is_max_context"])
    found = sorted(
        zip(
            batch["example_index"][rows].tolist(),
            batch["segment_ids"][rows, columns].tolist(),
            batch["piece_ids"][rows, columns].tolist(),
            strict=True,
        )
    )
    assert found == [
        (number, segment, piece)
        for number, example in enumerate(stored)
        for segment, features in enumerate(example)
        for piece in range(len(features))
    ]
