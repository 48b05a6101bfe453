"""Templates worked by hand: what published and released systems put where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from syntax.batches import SegmentFeatures, Template
from syntax.errors import CycleError, SpecError, UnknownNameError
from tests.syntax.batches_cases import BERT, XLMR, assemble


def segment(first: int, sentences: list[list[int]]) -> SegmentFeatures:
    """Sentences by their heads; one piece per word, ids from ``first``."""
    starts = np.cumsum([0, *map(len, sentences)])
    heads = [
        head + start if head >= 0 else -1
        for start, sentence in zip(starts.tolist(), sentences, strict=False)
        for head in sentence
    ]
    number = np.arange(len(heads), dtype=np.int32)
    tag = np.ones(len(heads), np.uint8)
    sentence = np.repeat(np.arange(len(sentences)), [*map(len, sentences)]).astype(np.int32)
    offsets = np.stack([3 * number, 3 * number + 2], axis=1)
    return SegmentFeatures(
        first + number, np.array(heads, np.int32), number, tag, tag, sentence, offsets
    )


QUESTION = segment(10, [[-1, 0]])
PASSAGE = segment(20, [[1, -1, 1], [-1, 0], [1, -1]])
OPTIONS = [segment(40, [[-1]]), segment(50, [[-1, 0]])]


def rows(batch: dict[str, NDArray[Any]]) -> list[list[int]]:
    sizes = zip(batch["input_ids"].tolist(), batch["lengths"].tolist(), strict=True)
    return [ids[:size] for ids, size in sizes]


class TestQuestions:
    def test_bert_asks_first_and_sg_net_reads_first(self) -> None:
        fields = ("question", "context")
        first = assemble([QUESTION, PASSAGE], template=Template.of(fields, "question context"))
        plain = assemble([QUESTION, PASSAGE])
        assert all((first[name] == plain[name]).all() for name in plain)
        released = assemble([QUESTION, PASSAGE], template=Template.of(fields, "context question"))
        assert rows(released) == [[101, 20, 21, 22, 23, 24, 25, 26, 102, 10, 11, 102]]
        assert released["token_type_ids"].tolist() == [[0] * 9 + [1] * 3]
        assert released["segment_ids"].tolist() == [[-1] + [0] * 7 + [-1, 1, 1, -1]]

    @pytest.mark.parametrize("special", [BERT, XLMR])
    def test_one_sequence_per_sentence_is_a_block_of_the_document(self, special) -> None:
        # Syntax-MBERT, appendix A: [CLS] question [SEP] one sentence [SEP].
        options: dict[str, Any] = {"truncation": "only_second", "offsets": True}
        whole = assemble([QUESTION, PASSAGE], special=special, **options)
        each = assemble([QUESTION, PASSAGE], special=special, level="sentence", **options)
        a, b, z = special.prefix, special.separator, special.suffix
        frames = [(*a, 10, 11, *b, *one, *z) for one in ((20, 21, 22), (23, 24), (25, 26))]
        assert rows(each) == [list(frame) for frame in frames]
        assert each["example_index"].tolist() == [0, 0, 0]
        assert each["window_index"].tolist() == [0, 1, 2]
        place = {(1, n): len(a) + 2 + len(b) + n for n in range(7)}
        place |= {(0, n): len(a) + n for n in range(2)}
        for row in range(3):
            keys = zip(
                each["segment_ids"][row].tolist(), each["piece_ids"][row].tolist(), strict=True
            )
            pieces = [(at, place[key]) for at, key in enumerate(keys) if key in place]
            here, there = map(list, zip(*pieces, strict=True))
            ours = each["distance"][row][np.ix_(here, here)]
            assert (ours == whole["distance"][0][np.ix_(there, there)]).all()

    def test_windows_equal_those_of_squad(self) -> None:
        # Room for 3 of 7 pieces, every 2: [0, 3) [2, 5) [4, 7).
        batch = assemble(
            [QUESTION, PASSAGE], max_length=8, truncation="only_second", stride=2, offsets=True
        )
        assert rows(batch) == [
            [101, 10, 11, 102, 20, 21, 22, 102],
            [101, 10, 11, 102, 22, 23, 24, 102],
            [101, 10, 11, 102, 24, 25, 26, 102],
        ]
        assert batch["is_max_context"].tolist() == [
            [False, True, True, False, True, True, True, False],
            [False, False, False, False, False, True, True, False],
            [False, False, False, False, False, True, True, False],
        ]
        assert batch["shown_characters"][:, 1].tolist() == [[0, 9], [5, 15], [11, 2**31 - 1]]
        # 22 hangs from 21, its sentence's root, which the second window does not show.
        assert batch["distance"][1, 0].tolist() == [0, 1, 2, 1, 2, 1, 2, 1]
        assert batch["parents"][1].tolist() == [-1, 0, 1, 0, 0, 0, 5, 0]

    def test_long_questions_are_cut_before(self) -> None:
        options: dict[str, Any] = {"max_length": 8, "truncation": "only_second", "stride": 2}
        batch = assemble([PASSAGE, QUESTION], segment_limits=(3, None), **options)
        assert rows(batch) == [[101, 20, 21, 22, 102, 10, 11, 102]]
        with pytest.raises(SpecError, match="leaves no room for that in max_length 8"):
            assemble([QUESTION, QUESTION], [PASSAGE, QUESTION], **options)


class TestChoices:
    FIELDS = ("article", "question", "option_0", "option_1")
    EXAMPLE = (PASSAGE, QUESTION, *OPTIONS)

    def test_sg_net_joins_the_question_to_the_article(self) -> None:
        template = Template.of(self.FIELDS, "article+question option_*")
        batch = assemble([*self.EXAMPLE], [*self.EXAMPLE], template=template)
        read = [101, 20, 21, 22, 23, 24, 25, 26, 10, 11, 102]
        assert rows(batch) == [[*read, 40, 102], [*read, 50, 51, 102]] * 2
        assert batch["example_index"].tolist() == [0, 0, 1, 1]
        assert batch["choice_index"].tolist() == [0, 1, 0, 1]
        assert batch["segment_ids"][1].tolist() == [-1, *[0] * 7, 1, 1, -1, 2, 2, -1]
        assert batch["token_type_ids"][1].tolist() == [0] * 11 + [1] * 3

    @pytest.mark.parametrize("limit", range(5, 15))
    def test_race_is_truncated_from_the_front(self, limit: int) -> None:
        # run_race: while too long, tokens_a.pop(0) if it is longer than tokens_b, else tokens_b.
        template = Template.of(self.FIELDS, "article+question option_1")
        batch = assemble(
            [*self.EXAMPLE], template=template, max_length=limit, truncation_side="left"
        )
        first, second = [20, 21, 22, 23, 24, 25, 26, 10, 11], [50, 51]
        while len(first) + len(second) > limit - 3:
            (first if len(first) > len(second) else second).pop(0)
        assert rows(batch) == [[101, *first, 102, *second, 102]]

    def test_a_fault_names_the_example(self) -> None:
        broken = segment(0, [[1, 0]])
        template = Template.of("ab", "b a", "b")
        with pytest.raises(CycleError, match="example 1 of the batch, segment 1"):
            assemble([QUESTION, QUESTION], [broken, QUESTION], template=template)


class TestWords:
    def test_template_expands_patterns_and_joins(self) -> None:
        assert Template.of("abc", "a", "b c").sequences == (((0,),), ((1,), (2,)))
        assert Template.of("abc", "[bc]+a [bc]").sequences == (((1, 0), (1,)), ((2, 0), (2,)))
        assert Template.of(["x*"], "x*").sequences == (((0,),),)

    @pytest.mark.parametrize(
        ("texts", "error", "message"),
        [
            (["a* b*"], SpecError, "several patterns"),
            (["z*"], UnknownNameError, "unknown field"),
            (["a+"], UnknownNameError, "unknown field ''"),
            ([""], SpecError, "not complete"),
            ([], SpecError, "not complete"),
        ],
    )
    def test_invalid_templates_are_refused(self, texts, error, message) -> None:
        with pytest.raises(error, match=message):
            Template.of("abc", *texts)

    def test_example_with_too_few_segments_is_refused(self) -> None:
        with pytest.raises(SpecError, match=r"example 1 of the batch has 1 segments.*needs 2"):
            assemble([QUESTION, PASSAGE], [QUESTION], template=Template.of("ab", "b"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"template": Template.of("ab", "b a", "b")},
        {"max_length": 9, "stride": 2, "truncation": "only_second"},
        {"level": "sentence", "truncation": "only_first"},
    ],
)
def test_an_empty_batch_is_empty(options: dict[str, Any]) -> None:
    batch = assemble(**options, offsets=True, first_pieces=True)
    assert batch["input_ids"].shape == batch["piece_ids"].shape == (0, 0)
    assert batch.get("example_index", np.empty(0)).shape == (0,)
    assert batch["distance"].shape == (0, 0, 0)
    assert batch["offset_mapping"].shape == (0, 0, 2)
