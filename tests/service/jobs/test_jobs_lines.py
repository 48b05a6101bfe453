"""The upload format: what is read, what is refused and how the refusal reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jobs.lines import item_key, numbered_lines, read_item, read_spec
from syntax.errors import ExampleError, SpecError
from syntax.examples import DatasetSpec, Example, LabelSpec, Rejection, Segment, SpanLabel
from syntax.fingerprint import MAX_WORDS

from .board import REQUEST

SPEC = {
    "split": "dev",
    "lang": "en",
    "fields": ["premise", "hypothesis"],
    "labels": [{"name": "label", "kind": "class", "names": ["yes", "no"]}],
}
PAIRS = DatasetSpec(
    "pairs", "dev", "en", ("premise", "hypothesis"), (LabelSpec("label", "class", ("yes", "no")),)
)
EXAMPLE = {
    "example_id": "1",
    "segments": [{"text": "A."}, {"text": "B."}],
    "labels": {"label": "yes"},
}


async def lines_of(chunks: list[bytes], limit: int = 1000) -> list[tuple[int, bytes]]:
    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return [line async for line in numbered_lines(stream(), limit)]


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.data())
async def test_lines_do_not_depend_on_how_the_body_is_cut(
    lines: list[bytes], data: st.DataObject
) -> None:
    body = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    bounds = [0, *cuts, len(body)]
    chunks = [body[start:end] for start, end in pairwise(bounds)]
    expected = [(n, line) for n, line in enumerate(lines, 1) if line.strip()]
    assert await lines_of(chunks) == expected


async def test_a_line_beyond_the_limit_is_named_before_it_is_complete() -> None:
    with pytest.raises(ExampleError, match="line 2 has more than 8 bytes") as caught:
        await lines_of([b"short\n", b"loooooo", b"oooong"], limit=8)
    assert caught.value.detail == {"line": 2}


def test_the_specification_is_read_with_its_defaults() -> None:
    spec = read_spec(json.dumps({"spec": SPEC}).encode(), "pairs")
    assert spec.dataset("pairs") == PAIRS
    assert (spec.mode, spec.parser, spec.tokenizer, spec.matrices) == ("raw", None, None, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 1 must be"),
        (b'{"spec":' + b"[" * 90_000 + b"]" * 90_000 + b"}", "line 1 must be .* nested too deeply"),
        (b"\xff", "codec"),
        (b'{"spec": 3}', "spec: "),
        (json.dumps({"spec": SPEC | {"mode": "fast"}}).encode(), "mode"),
        (json.dumps({"spec": SPEC | {"splitt": "x"}}).encode(), "splitt"),
        (json.dumps({"spec": SPEC | {"split": "../up"}}).encode(), "split"),
        (json.dumps({"spec": SPEC | {"name": "other"}}).encode(), "the path 'pairs'"),
        (json.dumps({"spec": SPEC | {"fields": []}}).encode(), "fields"),
        (json.dumps({"spec": SPEC | {"fields": ["a", "a"]}}).encode(), "two fields"),
        (
            json.dumps({"spec": SPEC | {"labels": [{"name": "x", "kind": "class"}]}}).encode(),
            "closed list",
        ),
    ],
)
def test_a_wrong_specification_is_refused(line: bytes, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_spec(line, "pairs")


def test_examples_and_rejections_are_read() -> None:
    line = json.dumps({"example": EXAMPLE})
    assert read_item(line, PAIRS) == Example(
        "1", (Segment(text="A."), Segment(text="B.")), {"label": "yes"}
    )
    line = json.dumps({"rejected": {"example_id": "2", "reason": "example", "message": ""}})
    assert read_item(line.encode(), PAIRS) == Rejection("2", "example", "")


def test_a_reason_that_is_not_on_the_list_is_told_in_the_message() -> None:
    line = json.dumps({"rejected": {"example_id": "2", "reason": "too dull", "message": "yawn"}})
    assert read_item(line, PAIRS) == Rejection("2", "example", "too dull: yawn")


def test_each_mode_reads_its_own_form() -> None:
    tokens = DatasetSpec("ner", "dev", "en", ("text",), mode="pretokenized")
    gold = DatasetSpec("ud", "dev", "en", ("text",), mode="gold")
    line = json.dumps({"example": {"example_id": "1", "segments": [{"tokens": ["a", "b"]}]}})
    assert read_item(line, tokens) == Example("1", (Segment(tokens=("a", "b")),))
    line = json.dumps({"example": {"example_id": "1", "segments": [{"conllu": "1\ta"}]}})
    assert read_item(line, gold) == Example("1", (Segment(conllu="1\ta"),))
    with pytest.raises(ExampleError, match=r"tokens: Field required; .*conllu: Extra"):
        read_item(line, tokens)


def changed(**fields: Any) -> bytes:
    return json.dumps({"example": EXAMPLE | fields}).encode()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"nonsense", "Expecting value"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"example": {"example_id": NaN}}', "NaN is not JSON"),
        (b'{"example": {"labels": {"score": 1e400}}}', "example_id: Field required"),
        (b"\xed\xa0\x80", "codec"),
        (b"{}", "keys \\[\\]"),
        (changed(example_id=7), "example.example_id: .* \\(it is 7\\)"),
        (changed(example_id=""), "example.example_id: .* at least 1 character"),
        (changed(example_id="\ud800"), "example.example_id: .*unicode"),
        (changed(segments=[{"text": "A."}]), "example.segments: List should have at least 2 items"),
        (
            changed(segments=[{"text": 1}, {"text": "B."}]),
            "example.segments.0.text: Input should be a valid string",
        ),
        (changed(labels={}), "example.labels.label: Field required"),
        (changed(labels={"label": "maybe"}), "label: Input should be 'yes' or 'no' .*maybe"),
        (changed(extra=1), "example.extra: Extra"),
    ],
)
def test_a_line_that_breaks_the_format_is_refused(line: bytes, message: str) -> None:
    with pytest.raises(ExampleError, match=message):
        read_item(line, PAIRS)


@pytest.mark.parametrize("value", ["1", True, 10**400, -1e39])
def test_a_float_label_is_a_finite_number(value: Any) -> None:
    scores = DatasetSpec("sts", "dev", "en", ("text",), (LabelSpec("score", "float"),))
    content = {"example_id": "1", "segments": [{"text": "A."}]}
    good = read_item(json.dumps({"example": {**content, "labels": {"score": 3}}}), scores)
    assert isinstance(good, Example)
    assert good.labels == {"score": 3.0}
    with pytest.raises(ExampleError, match="score"):
        read_item(json.dumps({"example": {**content, "labels": {"score": value}}}), scores)


def test_a_text_that_no_parser_can_read_is_not_the_lines_fault() -> None:
    item = read_item(changed(segments=[{"text": "\ud800"}, {"text": "\0"}]), PAIRS)
    assert isinstance(item, Example)
    assert len(item_key(item, "raw")) == 32


def test_equal_items_have_equal_keys_and_all_else_differs() -> None:
    item = read_item(changed(), PAIRS)
    reordered = json.dumps({"example": dict(reversed(EXAMPLE.items()))}, indent=None)
    assert item_key(read_item(reordered, PAIRS), "raw", "p", "t") == item_key(item, "raw", "p", "t")
    others = [
        item_key(item, "raw", "p", "u"),
        item_key(item, "sentence", "p", "t"),
        item_key(read_item(changed(example_id="2"), PAIRS), "raw", "p", "t"),
        item_key(read_item(changed(labels={"label": "no"}), PAIRS), "raw", "p", "t"),
        item_key(
            read_item(changed(segments=[{"text": "A. B"}, {"text": "."}]), PAIRS), "raw", "p", "t"
        ),
    ]
    assert len({item_key(item, "raw", "p", "t"), *others}) == 6


MARKED = DatasetSpec(
    *("marked", "dev", "en", ("text",)),
    (LabelSpec("tags", "tags", ("O", "B")), LabelSpec("spans", "spans")),
    mode="pretokenized",
)


def marked(**labels: Any) -> bytes:
    labels = {"tags": ["O", "B"], "spans": [], **labels}
    example = {"example_id": "1", "segments": [{"tokens": ["a", "b"]}], "labels": labels}
    return json.dumps({"example": example}).encode()


def test_tags_and_spans_are_read() -> None:
    spans = [{"start_char": 0, "end_char": 3, "label": "x"}, {"start_char": 2, "end_char": 2}]
    assert read_item(marked(spans=spans), MARKED) == Example(
        "1",
        (Segment(tokens=("a", "b")),),
        {"tags": ("O", "B"), "spans": (SpanLabel(0, 3, "x"), SpanLabel(2, 2, ""))},
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (marked(tags="O B"), "labels.tags: Input should be a valid list"),
        (marked(tags=["O", ""]), "labels.tags.1: "),
        (marked(tags=["\ud800"]), "labels.tags.0: .*unicode"),
        (marked(spans=[{"start": 1}]), "spans.0.start: Extra"),
        (marked(spans=[{"start_char": 1}]), "spans.0.end_char: Field required"),
        (
            marked(spans=[{"start_char": 1, "end_char": True}]),
            "spans.0.end_char: Input should be a valid integer",
        ),
    ],
)
def test_tags_and_spans_of_another_form_are_refused(line: bytes, message: str) -> None:
    with pytest.raises(ExampleError, match=message):
        read_item(line, MARKED)


@pytest.mark.parametrize("kind", ["class", "float", "string", "tags", "spans"])
def test_a_label_may_be_null_and_is_then_none(kind: str) -> None:
    names = ("a", "b") if kind in ("class", "tags") else ()
    mode = "pretokenized" if kind == "tags" else "raw"
    spec = DatasetSpec("x", "test", "en", ("text",), (LabelSpec("x", kind, names),), mode=mode)  # type: ignore[arg-type]
    segment = {"tokens": ["A"]} if kind == "tags" else {"text": "A."}
    content: dict[str, Any] = {"example_id": "1", "segments": [segment]}
    item = read_item(json.dumps({"example": {**content, "labels": {"x": None}}}), spec)
    assert isinstance(item, Example)
    assert item.labels == {"x": None}
    with pytest.raises(ExampleError, match="labels: Field required"):
        read_item(json.dumps({"example": content}), spec)


def test_keys_of_examples_depend_on_the_limit_that_splits_sentences() -> None:
    limits = (6, MAX_WORDS)
    whole = {replace(REQUEST, max_words=limit).item_identity for limit in limits}
    split = replace(REQUEST, long_sentences="split")
    assert whole == {REQUEST.item_identity}
    assert len({replace(split, max_words=limit).item_identity for limit in limits} | whole) == 3
    assert len({replace(split, max_words=limit).source for limit in limits}) == 2
