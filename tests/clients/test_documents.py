from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.documents import _CHUNK, UniqueIds, records_of, text_of
from syntax.errors import ExampleError, InvalidCharacterError
from syntax.examples import Example

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def document(tmp_path):
    def write(content: bytes):
        path = tmp_path / "document.json"
        path.write_bytes(content)
        return path

    return write


@pytest.fixture(scope="module")
def shared_file(tmp_path_factory):
    return tmp_path_factory.mktemp("documents") / "document.json"


@given(st.lists(VALUES, min_size=1, max_size=5), st.booleans(), st.sampled_from(["", "\ufeff"]))
def test_records_are_those_of_the_json_module(shared_file, records, ascii_only, mark):
    text = json.dumps({"version": 2, "data": records}, ensure_ascii=ascii_only)
    shared_file.write_text(mark + text, "utf-8", errors="backslashreplace")
    assert list(records_of(shared_file, "data.item")) == records


def test_records_before_a_syntax_error_are_read(document):
    records = records_of(document(b'{"data": ["one", "two", "thr'), "data.item")
    assert [next(records), next(records)] == ["one", "two"]
    with pytest.raises(ExampleError, match=r"document\.json is no whole JSON .* after record 2; "):
        next(records)


@pytest.mark.parametrize("content", [b"", b"no json", b"[1]", b'{"data": []}', b'{"rows": [1]}'])
def test_a_document_without_the_list_is_refused(document, content):
    with pytest.raises(ExampleError, match=r"no whole JSON document|holds no records"):
        list(records_of(document(content), "data.item"))


def test_bad_byte_affects_only_its_text(document):
    content = b'{"data": [{"t": "caf\xc3\xa9"}, {"t": "caf\xe9"}, {"t": "tea"}]}'
    first, second, third = records_of(document(content), "data.item")
    assert [text_of(first, "t", "here"), text_of(third, "t", "here")] == ["café", "tea"]
    with pytest.raises(InvalidCharacterError, match="here: 't' has at character 3 a byte that is"):
        text_of(second, "t", "here")


@pytest.mark.parametrize("before", [0, *range(_CHUNK - 25, _CHUNK)])
def test_lone_surrogate_is_found_across_chunks(document, before):
    filler = b" " * before
    pair, lone = b'["\\ud83c\\udfee",' + filler + b'"\\uD83C\\uDFEE"]', b"\\ud83cx"
    assert list(records_of(document(pair), "item")) == ["🏮", "🏮"]
    for half in (lone, b"\\udfee"):
        content = b'["a",' + filler + b'"' + half + b'"]'
        assert list(records_of(document(content), "item")) == json.loads(
            f"[{content[1:-1].decode()}]"
        )


@pytest.mark.parametrize("record", [None, [], {}, {"t": None}, {"t": 3}])
def test_a_missing_text_is_named(record):
    with pytest.raises(ExampleError, match=r"file, record 7: 't' is (None|3); expected a text"):
        text_of(record, "t", "file, record 7")


def test_repeated_ids_are_numbered():
    ids = UniqueIds()
    assert [ids.of(name) for name in ("a", "b", "a", "a")] == ["a", "b", "a#2", "a#3"]


@pytest.mark.parametrize("key", ["id", "question", "answers"])
def test_deeply_nested_record_does_not_affect_others(document, key):
    good = {"id": "a", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}]}
    nested = json.dumps({**good, "id": "b", key: "?"}).replace('"?"', "[" * 9000 + "]" * 9000)
    asked = f'{{"context": "Ann left.", "qas": [{nested}, {json.dumps(good)}]}}'
    path = document(f'{{"data": [{{"paragraphs": [{asked}]}}]}}'.encode())
    items = list(BENCHMARKS["tydiqa"].read(path, "dev", "en"))
    assert isinstance(items[1], Example)
    assert items[1].example_id == "a"
    assert key == "id" or items[0].message.endswith("nested too deeply; repair it")
