from __future__ import annotations

import json
from collections.abc import Iterator

from clients.client import staging
from clients.client.staging import Upload, backfill_spec
from syntax.examples import DatasetSpec, Example, LabelSpec, Rejection, Segment, SpanLabel

SPEC = DatasetSpec("d", "dev", "en", ("text",), (LabelSpec("label", "class", ("a", "b")),))


def lines(upload: Upload) -> list[dict]:
    return [json.loads(line) for line in b"".join(upload).splitlines()]


def test_upload_starts_with_the_spec_without_open_options():
    content = backfill_spec(SPEC, tokenizer=None, parser="udpipe/x", matrices=True)
    (first,) = lines(Upload(content, []))
    assert first["spec"] == {
        "name": "d",
        "split": "dev",
        "lang": "en",
        "fields": ["text"],
        "labels": [{"name": "label", "kind": "class", "names": ["a", "b"]}],
        "mode": "raw",
        "source": "",
        "licence": "",
        "parser": "udpipe/x",
        "matrices": True,
    }


def test_upload_writes_every_segment_form_and_rejections():
    items = [
        Example("1", (Segment(text="a\nb\u2028ü"),), {"label": "a"}),
        Example("2", (Segment(tokens=("a", "b")), Segment(conllu="1\t"))),
        Rejection("3", "example", "why"),
    ]
    _, *rest = lines(Upload({}, items))
    assert rest == [
        {
            "example": {
                "example_id": "1",
                "segments": [{"text": "a\nb\u2028ü"}],
                "labels": {"label": "a"},
            }
        },
        {
            "example": {
                "example_id": "2",
                "segments": [{"tokens": ["a", "b"]}, {"conllu": "1\t"}],
                "labels": {},
            }
        },
        {"rejected": {"example_id": "3", "reason": "example", "message": "why"}},
    ]


def test_spans_are_objects_and_tags_are_lists():
    labels = {"tags": ("O", "B-X"), "spans": (SpanLabel(0, 3, "X"), SpanLabel(2, 2)), "none": ()}
    _, line = lines(Upload({}, [Example("1", (Segment(tokens=("a", "b")),), labels)]))
    assert line["example"]["labels"] == {
        "tags": ["O", "B-X"],
        "spans": [
            {"start_char": 0, "end_char": 3, "label": "X"},
            {"start_char": 2, "end_char": 2, "label": ""},
        ],
        "none": [],
    }


def test_upload_sends_incomplete_chunks_after_a_pause(monkeypatch):
    items = [Rejection(str(n), "example", "why") for n in range(3)]
    assert len([*Upload({}, items)]) == 1
    monkeypatch.setattr(staging, "_CHUNK_SECONDS", 0.0)
    assert [chunk.count(b"\n") for chunk in Upload({}, items)] == [1, 1, 1, 1]


def test_a_label_says_its_field_where_it_has_one():
    spec = DatasetSpec("d", "dev", "en", ("a", "b"), (LabelSpec("x", "spans", (), "b"),))
    content = backfill_spec(spec, tokenizer=None, parser=None, matrices=True)
    assert content["labels"] == [{"name": "x", "kind": "spans", "names": (), "field": "b"}]


def test_upload_passes_a_lone_surrogate_to_the_service():
    _, line = lines(Upload({}, [Example("1", (Segment(text="\ud800"),))]))
    assert line["example"]["segments"][0]["text"] == "\ud800"


def test_upload_reads_examples_lazily():
    taken = 0

    def endless() -> Iterator[Example]:
        nonlocal taken
        while True:
            taken += 1
            yield Example(str(taken), (Segment(text="x" * 1000),))

    chunks = iter(Upload({}, endless()))
    for sent in range(1, 4):
        assert len(next(chunks)) < 70_000
        assert taken <= 65 * sent


async def test_asynchronous_chunks_are_the_same():
    items = [Example(str(n), (Segment(text="x" * 100),)) for n in range(2000)]
    chunks = [chunk async for chunk in Upload({}, items).chunks()]
    assert chunks == list(Upload({}, items))
    assert len(chunks) > 1
