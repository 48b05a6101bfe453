"""Batches worked by hand: published conventions, released bugs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from syntax.batches import AssemblySpec, SegmentFeatures, Template
from syntax.errors import CycleError, HeadOutOfRangeError, SpecError, UnknownNameError
from tests.syntax.batches_cases import BERT, CAT, DOGS, assemble, segment


class TestOneSegment:
    def test_everything_hangs_from_cls(self) -> None:
        batch = assemble([DOGS])
        assert batch["input_ids"].tolist() == [[101, 10, 11, 12, 102]]
        assert batch["parents"].tolist() == [[-1, 2, 0, 2, 0]]
        assert batch["depth"].tolist() == [[0, 2, 1, 2, 1]]
        assert batch["distance"].tolist() == [
            [[0, 2, 1, 2, 1], [2, 0, 1, 2, 3], [1, 1, 0, 1, 2], [2, 2, 1, 0, 3], [1, 3, 2, 3, 0]]
        ]
        # CLS is an ancestor of everything: its column is all true, its row only itself.
        assert batch["ancestor"][0, :, 0].all()
        assert batch["ancestor"][0, 0].tolist() == [True, False, False, False, False]


class TestPairs:
    def test_bert_frames_a_pair_with_cls_and_sep(self) -> None:
        batch = assemble([DOGS, CAT])
        assert batch["input_ids"].tolist() == [[101, 10, 11, 12, 102, 20, 21, 102]]
        assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 1]]
        assert batch["segment_ids"].tolist() == [[-1, 0, 0, 0, -1, 1, 1, -1]]
        assert batch["word_ids"].tolist() == [[-1, 0, 1, 2, -1, 0, 1, -1]]

    def test_both_roots_hang_from_cls(self) -> None:
        # Syntax-MBERT: the roots of premise and hypothesis are at depth 1, two edges apart.
        batch = assemble([DOGS, CAT])
        assert batch["depth"][0, [2, 6]].tolist() == [1, 1]
        assert batch["distance"][0, 2, 6] == 2

    def test_separators_hang_from_cls_as_published(self) -> None:
        batch = assemble([DOGS, CAT])
        assert batch["distance"][0, 0, [4, 7]].tolist() == [1, 1]

    def test_separators_hang_from_the_last_piece_as_released(self) -> None:
        # The distance from CLS is the last piece's depth and one more.
        batch = assemble([DOGS, CAT], separator_edge="last_piece")
        assert batch["parents"][0, [4, 7]].tolist() == [3, 6]
        assert batch["distance"][0, 0, [4, 7]].tolist() == [2 + 1, 1 + 1]

    @pytest.mark.parametrize("template", ["a", "a+b", "b+a"])
    def test_the_separator_of_one_text_hangs_from_cls_as_released_too(self, template: str) -> None:
        options = {"template": Template.of(("a", "b"), template), "separator_edge": "last_piece"}
        for limit in (None, 4):
            batch = assemble([DOGS, CAT], max_length=limit, **options)
            assert batch["parents"][0, -1] == 0
            assert batch["distance"][0, 0, -1] == 1

    def test_a_second_text_of_which_nothing_is_left_still_makes_a_pair(self) -> None:
        for options in ({"max_length": 6, "truncation": "only_second"}, {"max_length": 3}):
            batch = assemble([DOGS, CAT], separator_edge="last_piece", **options)
            assert batch["distance"][0, 0, -2:].tolist() == [2 + 1, 1 + 1]

    def test_gat_attends_within_delta(self) -> None:
        # Syntax-MBERT's graph attention: allowed iff distance <= delta, oneself included.
        batch = assemble([DOGS, CAT], [CAT])
        allowed = batch["distance"] <= 1
        assert np.flatnonzero(allowed[0, 0]).tolist() == [0, 2, 4, 6, 7]
        assert np.flatnonzero(allowed[0, 2]).tolist() == [0, 1, 2, 3]
        assert np.flatnonzero(allowed[0, 1]).tolist() == [1, 2]
        assert np.flatnonzero(allowed[1, 0]).tolist() == [0, 2, 3]
        for delta in (0, 4, 254):
            within = batch["distance"] <= delta
            assert not within[1, 4:].any()
            assert not within[1, :, 4:].any()
            assert within[0].diagonal().all()


class TestTruncation:
    def test_the_longest_loses_its_end(self) -> None:
        # 3 and 2 pieces: first A loses one, then at 2 and 2 B loses one, then A, then B.
        for tie in ("fast", "slow"):
            kept = {
                limit: assemble([DOGS, CAT], max_length=limit, truncation_tie=tie)
                for limit in (8, 7, 6, 5, 4, 3)
            }
            assert {limit: batch["input_ids"][0].tolist() for limit, batch in kept.items()} == {
                8: [101, 10, 11, 12, 102, 20, 21, 102],
                7: [101, 10, 11, 102, 20, 21, 102],
                6: [101, 10, 11, 102, 20, 102],
                5: [101, 10, 102, 20, 102],
                4: [101, 10, 102, 102],
                3: [101, 102, 102],
            }

    @pytest.mark.parametrize(("tie", "kept"), [("fast", (1, 2)), ("slow", (2, 1)), (None, (1, 2))])
    def test_of_equally_long_ones_the_shorter_or_the_last_is_cut(self, tie, kept) -> None:
        tied = {} if tie is None else {"truncation_tie": tie}
        for pair in ([CAT, CAT], [CAT, DOGS]):
            batch = assemble(pair, max_length=6, **tied)
            assert np.bincount(batch["segment_ids"][0] + 1).tolist() == [3, *kept]

    def test_matrices_stay_those_of_the_whole_tree(self) -> None:
        # "dogs" and "it" keep their depth 2 and distance 4 though both roots are gone.
        batch = assemble([DOGS, CAT], max_length=5)
        assert batch["depth"].tolist() == [[0, 2, 1, 2, 1]]
        assert batch["distance"][0, 1].tolist() == [2, 0, 3, 4, 3]
        assert batch["parents"].tolist() == [[-1, 0, 0, 0, 0]]
        assert batch["ancestor"][0, 1].tolist() == [True, True, False, False, False]

    def test_a_separator_keeps_its_place_below_a_deleted_last_piece(self) -> None:
        # As released: the kept [SEP] hangs from the last piece, deleted or not.
        batch = assemble([DOGS, CAT], max_length=5, separator_edge="last_piece")
        assert batch["depth"].tolist() == [[0, 2, 3, 2, 2]]
        # SEP - loudly - bark - dogs, of which the middle two are gone
        assert batch["distance"][0, 2, 1] == 3
        assert batch["parents"].tolist() == [[-1, 0, 0, 0, 0]]

    @pytest.mark.parametrize("truncation", ["longest_first", "only_first", "only_second", "none"])
    def test_max_length_below_the_special_tokens_is_refused(self, truncation: Any) -> None:
        message = (
            "example 0 of the batch has 3 special tokens around 2 segments, more than max_length 2"
        )
        with pytest.raises(SpecError, match=message) as caught:
            assemble([DOGS, CAT], max_length=2, truncation=truncation)
        assert caught.value.detail["limit"] == 2

    def test_long_example_without_truncation_is_refused(self) -> None:
        assert assemble([DOGS, CAT], max_length=8, truncation="none")["lengths"].tolist() == [8]
        with pytest.raises(SpecError) as caught:
            assemble([CAT], [DOGS, CAT], max_length=7, truncation="none")
        message = str(caught.value)
        assert "example 1 of the batch has 8 pieces" in message
        assert "more than max_length 7" in message
        assert "raise max_length" in message
        assert caught.value.detail == {"example": 1, "length": 8, "limit": 7}

    @pytest.mark.parametrize(
        ("examples", "truncation", "limit"),
        [
            ([[DOGS, CAT]], "only_first", 4),
            ([[DOGS, CAT]], "only_second", 5),
            ([[DOGS]], "only_second", 4),
        ],
    )
    def test_only_first_is_refused_if_the_second_segment_is_too_long(
        self, examples: list[list[SegmentFeatures]], truncation: Any, limit: int
    ) -> None:
        with pytest.raises(SpecError, match=f"{truncation!r} cannot make it fit.*longest_first"):
            assemble(*examples, max_length=limit, truncation=truncation)


class TestRefused:
    def test_a_cycle_names_its_segment(self) -> None:
        # Syntax-MBERT as released gives a smaller matrix instead.
        with pytest.raises(CycleError, match=r"example 1 of the batch, segment 1: .*\[0, 1\]"):
            assemble([CAT], [DOGS, segment([1, 0, -1])])

    @pytest.mark.parametrize("policy", ["attach", "broadcast", "chain", "copy_head", "none"])
    def test_cycle_within_a_word_is_found_under_every_policy(self, policy: str) -> None:
        with pytest.raises(CycleError):
            assemble([segment([1, 0, -1], [0, 0, 1])], policy=policy)

    @pytest.mark.parametrize("head", [2, 5, -3])
    def test_a_head_in_another_segment_is_out_of_range(self, head: int) -> None:
        message = f"example 0 of the batch, segment 1: node 0 has parent {head}"
        with pytest.raises(HeadOutOfRangeError, match=message):
            assemble([DOGS, segment([head, -1]), DOGS])

    def test_example_without_segments_is_refused(self) -> None:
        with pytest.raises(SpecError, match="example 1 of the batch has no segment"):
            assemble([DOGS], [])

    def test_joint_root_needs_a_prefix_token(self) -> None:
        bare = replace(BERT, prefix=())
        with pytest.raises(SpecError, match="joint_root=False"):
            assemble([DOGS], special=bare)
        assert assemble([DOGS], special=bare, joint_root=False)["input_ids"].shape == (1, 4)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_length": 0}, "max_length is 0; it must be at least 1"),
            ({"pad_to_multiple_of": 0}, "pad_to_multiple_of is 0"),
            ({"truncation_tie": "last"}, "truncation_tie is 'last'; it must be one of fast, slow"),
            ({"truncation": "first"}, "truncation is 'first'; it must be one of longest_first"),
            ({"separator_edge": "cls"}, "separator_edge is 'cls'; it must be one of root"),
        ],
    )
    def test_invalid_specs_are_refused(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(SpecError, match=message):
            AssemblySpec(**options)

    @pytest.mark.parametrize("options", [{"policy": "atach"}, {"matrices": ("distances",)}])
    def test_unknown_names_suggest_the_nearest(self, options: dict[str, Any]) -> None:
        with pytest.raises(UnknownNameError, match="Did you mean"):
            AssemblySpec(**options)
