"""Fingerprints and keys of parses: fixed values, equal for equal contents only."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syntax import fingerprint
from syntax.fingerprint import (
    canonical_json,
    file_sha256,
    parse_key,
)

json_content = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab"), inner, max_size=4),
    max_leaves=10,
)


def test_the_canonical_text_is_fixed() -> None:
    content = {"ü": [1, 1.5, None, True], "a": {"c": "\u2028", "b": "x y"}}
    assert canonical_json(content) == (
        '{"a":{"b":"x y","c":"\u2028"},"ü":[1,1.5,null,true]}'.encode()
    )


def test_the_digest_is_fixed() -> None:
    assert fingerprint({}) == hashlib.blake2b(b"{}", digest_size=16).hexdigest()
    assert fingerprint({"name": "ö"}) == "c4ddc6ca52d9d57145940e40bb68a175"


def test_keys_of_parses_are_those_recorded() -> None:
    parser = "0" * 32
    assert parse_key(parser, "en", "raw", "Time flies.") == "ebff1f9487c9133940f7eecbf891f84a"
    of_tokens = parse_key(parser, "fr", "pretokenized", tokens=("du", "chat"))
    assert of_tokens == "2263f45ffd28f2eb1ab0e1c7bf25fd36"
    expanded = parse_key(parser, "fr", "tokens_mwt", tokens=("du", "chat"))
    assert expanded == "ac2f7a334e4fa7d8a1b1b14cfbdba88c"
    split = parse_key(parser, "de", "sentence", "Ein\nSatz", long_sentences="split")
    assert split == "1e88b099fc327a507832292216f42302"
    at_five = parse_key(parser, "de", "sentence", "Ein\nSatz", long_sentences="split", max_words=5)
    assert at_five != split
    assert parse_key(parser, "en", "raw", "Time flies.", max_words=5) == (
        "ebff1f9487c9133940f7eecbf891f84a"  # where nothing is split, no limit decides
    )


@given(json_content)
def test_json_round_trip_keeps_the_fingerprint(content: Any) -> None:
    assert fingerprint(json.loads(json.dumps(content))) == fingerprint(content)


@given(st.dictionaries(st.text("abc"), json_content, max_size=4))
def test_the_order_of_keys_does_not_count(content: dict[str, Any]) -> None:
    assert fingerprint(dict(reversed(content.items()))) == fingerprint(content)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (None, "null"),
        ([], {}),
        (["ab"], ["a", "b"]),
        ("é", "e\u0301"),
        (1, 1.5),
    ],
)
def test_different_contents_differ(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize(
    "content", [{"a": {1, 2}}, object(), b"bytes", {1: "a"}, [{"a": {None: 1}}], Path("x")]
)
def test_values_that_are_not_json_are_refused(content: Any) -> None:
    with pytest.raises(TypeError):
        fingerprint(content)


@pytest.mark.parametrize("content", [float("nan"), [float("inf")], "\ud800"])
def test_numbers_and_strings_that_json_lacks_are_refused(content: Any) -> None:
    with pytest.raises(ValueError):
        fingerprint(content)


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"\x00\r\n" * 100_000)
    assert file_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()
