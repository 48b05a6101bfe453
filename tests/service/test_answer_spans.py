"""Real answers of XQuAD and TyDi QA in the pieces of multilingual BERT."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from service.tokenizers import LoadedTokenizer, load_tokenizer
from syntax.batches import (
    INSIDE,
    AssemblySpec,
    FlatExamples,
    SegmentFeatures,
    assemble_batch,
    locate,
    pieces_of,
    spans_of_text,
)

Question = tuple[str, str, tuple[int, int]]
"""Question, passage, and where the answer is in it."""


@pytest.fixture(scope="module")
def mbert(data_dir: Path) -> LoadedTokenizer:
    return load_tokenizer(str(data_dir / "tokenizers" / "bert-base-multilingual-cased"))


def questions(path: Path) -> Iterator[Question]:
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answer = question["answers"][0]
                start, text = answer["answer_start"], answer["text"]
                assert paragraph["context"][start : start + len(text)] == text
                span = (start, start + len(text))
                yield question["question"], paragraph["context"], span


def unseen(question: Question, start: int, end: int) -> str:
    """What is missing at the edges of the answer: BERT has no pieces for spaces and marks."""
    _, passage, (first, behind) = question
    return passage[first:start] + passage[end:behind]


def segments(tokenizer: LoadedTokenizer, texts: list[str]) -> list[SegmentFeatures]:
    return [flat_segment(ids, offsets) for ids, offsets in tokenizer.encode_batch(texts)]


def flat_segment(ids: np.ndarray, offsets: np.ndarray) -> SegmentFeatures:
    """Pieces that are words of their own and hang from the first; answers need no tree."""
    number = np.arange(len(ids), dtype=np.int32)
    head = np.where(number == 0, -1, 0).astype(np.int32)
    tag = np.zeros(len(ids), np.uint8)
    return SegmentFeatures(ids, head, number, tag, tag, 0 * number, offsets)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "count", "exact"),
    [
        ("xquad/xquad.ar.json", 1190, 1187),
        ("xquad/xquad.de.json", 1190, 1190),
        ("xquad/xquad.en.json", 1190, 1189),
        ("xquad/xquad.es.json", 1190, 1189),
        ("xquad/xquad.zh.json", 1190, 1190),
        ("tydiqa/tydiqa.goldp.en.train.json", 3696, 3654),
    ],
)
def test_answers_survive_windows_of_384(data_dir, mbert, path, count, exact) -> None:
    """The others begin or end within a piece, or with a space; every one is whole in a window."""
    asked = list(questions(data_dir / "benchmarks" / path))
    passages = sorted({passage for _, passage, _ in asked})
    pieces = dict(zip(passages, segments(mbert, passages), strict=True))
    asking = segments(mbert, [question for question, _, _ in asked])
    spec = AssemblySpec(
        384, truncation="only_second", stride=128, segment_limits=(64, None), offsets=True,
        matrices=(),
    )  # fmt: skip
    survived = 0
    for start in range(0, len(asked), 128):
        some = asked[start : start + 128]
        pairs = zip(asking[start : start + 128], some, strict=True)
        flat = FlatExamples.from_segments(
            [[one, pieces[passage]] for one, (_, passage, _) in pairs]
        )
        batch = assemble_batch(flat, mbert.special_tokens, spec)
        spans = np.array([span for _, _, span in some])
        found = locate(batch, spans, segment=1)
        inside = found.state == INSIDE
        rows = batch["example_index"]
        assert set(rows[inside].tolist()) == set(range(len(some)))
        back = spans_of_text(batch, found.start, found.end)[inside]
        wanted = spans[rows[inside]]
        for row, (start_char, end_char) in zip(rows[inside].tolist(), back.tolist(), strict=True):
            lost = unseen(some[row], start_char, end_char)
            assert all(one.isspace() or unicodedata.category(one) == "Cf" for one in lost)
        same = rows[inside][(back == wanted).all(axis=1)]
        survived += len(set(same.tolist()))
    assert (len(asked), survived) == (count, exact)


def test_truncation_flags_the_answers_that_it_cuts(data_dir: Path, mbert: LoadedTokenizer) -> None:
    asked = list(questions(data_dir / "benchmarks" / "xquad" / "xquad.de.json"))[:200]
    ours = segments(mbert, [passage for _, passage, _ in asked])
    flat = FlatExamples.from_segments([[one] for one in ours])
    spans = np.array([span for _, _, span in asked])
    for side in ("right", "left"):
        spec = AssemblySpec(96, truncation_side=side, offsets=True, matrices=())  # type: ignore[arg-type]
        found = locate(assemble_batch(flat, mbert.special_tokens, spec), spans)
        for passage, span, state in zip(ours, spans, found.state.tolist(), strict=True):
            first, end = pieces_of(passage.offsets, [span])[0].tolist()
            shown = (0, 94) if side == "right" else (max(len(passage) - 94, 0), len(passage))
            assert (state == INSIDE) == (shown[0] <= first and end <= shown[1])
        assert 0 < (found.state == INSIDE).sum() < len(asked)
