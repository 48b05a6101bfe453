"""The Arrow format of ``POST /parse``: it says what JSON says; the guide shows how."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from service.parsers import Parser
from service.pipeline.records import FeatureAnswer, ItemFeatures
from service.render import render_arrow
from syntax import Parse
from syntax.matrices import tree_depth, tree_distance

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"
ALL = {"tokenizer": TOKENIZER, "matrices": ["distance", "depth", "ancestor"]}
GUIDE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


async def ask(client: httpx.AsyncClient, shape: str, **body: Any) -> httpx.Response:
    response = await client.post(f"/parse?format={shape}", json=body)
    assert response.status_code == 200, response.text
    return response


def table(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


LISTS = ("form", "lemma", "upos", "xpos", "feats", "deprel", "head", "word_start", "word_end")
JSON_NAMES = {"word_start": "start_char", "word_end": "end_char"}


def assert_row_is_item(row: dict[str, Any], item: dict[str, Any]) -> None:
    """Whether a row of Arrow says what an item of JSON says."""
    if "error" in item:
        assert row["error_type"] == item["error"]["error_type"]
        assert row["error_message"] == item["error"]["message"]
        assert {value for name, value in row.items() if not name.startswith("error")} <= {
            None,
            row["index"],
        }
        return
    assert row["error_type"] is row["error_message"] is None
    assert (row["key"], row["text"]) == (item["key"], item["text"])
    sentences = item["sentences"]
    words = [word for sentence in sentences for word in sentence["words"]]
    for name in LISTS:
        assert row[name] == [word[JSON_NAMES.get(name, name)] for word in words], name
    assert row["sentence_start"] == [sentence["start_char"] for sentence in sentences]
    assert row["sentence_end"] == [sentence["end_char"] for sentence in sentences]
    tokens = [token for sentence in sentences for token in sentence["tokens"]]
    assert row["token_start"] == [token["start_char"] for token in tokens]
    assert row["token_end"] == [token["end_char"] for token in tokens]
    counts = np.cumsum([0, *(len(sentence["words"]) for sentence in sentences)])
    assert row["sentence_first_word"] == counts[:-1].tolist()
    firsts = [
        int(first) + token["word_ids"][0] - 1
        for first, sentence in zip(counts, sentences, strict=False)
        for token in sentence["tokens"]
    ]
    assert row["token_first_word"] == firsts
    pieces = item.get("wordpieces", {})
    for name in ("input_ids", "offset_mapping", "word_ids", "parents"):
        assert row[name] == pieces.get(name)
    size = len(pieces.get("input_ids", words))
    matrices = item.get("matrices", {})
    unpack = {
        "distance": decode_distance,
        "depth": lambda blob: decode_depth(blob, size),
        "ancestor": decode_ancestor,
    }
    for name, decode in unpack.items():
        found = None if row[name] is None else decode(row[name]).tolist()
        assert found == matrices.get(name), name


scripts = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40
) | st.sampled_from(
    [
        *("I can't go. It's gone!", "नमस्ते दुनिया।", "שלום עולם.", "สวัสดีชาวโลก", "你好，世界。"),
        *("👩‍👩‍👧‍👦 family", "e\u0301 é", "\u200b", "", "Привет, мир!", "مرحبا بالعالم"),
    ]
)


@given(
    st.lists(scripts, max_size=5),
    st.sampled_from([None, TOKENIZER]),
    st.sets(st.sampled_from(ALL["matrices"])),
)
@settings(max_examples=15)
async def test_arrow_says_what_json_says(
    client: httpx.AsyncClient, texts: list[str], tokenizer: str | None, matrices: set[str]
) -> None:
    body = {"texts": texts, "tokenizer": tokenizer, "matrices": sorted(matrices)}
    rows = table((await ask(client, "arrow", **body)).content)
    answer = (await ask(client, "json", **body)).json()
    assert rows["index"].to_pylist() == list(range(len(texts)))
    for row, item in zip(rows.to_pylist(), answer["items"], strict=True):
        assert_row_is_item(row, item)
    metadata = {key.decode(): value.decode() for key, value in rows.schema.metadata.items()}
    assert metadata["parser"] == answer["parser"]["name"]
    assert metadata["parser_fingerprint"] == answer["parser"]["fingerprint"]
    assert metadata["lang"] == "en"
    if tokenizer is not None:
        assert metadata["tokenizer"] == tokenizer
        assert metadata["tokenizer_fingerprint"] == answer["tokenizer"]["fingerprint"]


async def test_tokens_and_labels_are_columns(client: httpx.AsyncClient) -> None:
    body = {
        "tokens": [["I", "can't", "find", "John", "Smith"], ["Yes"]],
        "token_labels": [["O", "O", "O", "B-PER", "I-PER"], ["O"]],
        "mode": "retokenize",
    }
    rows = table((await ask(client, "arrow", **body)).content).to_pylist()
    items = (await ask(client, "json", **body)).json()["items"]
    for row, item in zip(rows, items, strict=True):
        assert row["token_words"] == item["token_words"]
        assert row["word_labels"] == item["word_labels"]
    (row,) = table((await ask(client, "arrow", text="Yes.")).content).to_pylist()
    assert row["token_words"] is row["word_labels"] is None


async def test_the_schema_does_not_depend_on_the_answer(client: httpx.AsyncClient) -> None:
    bodies = [{"texts": []}, {"text": ""}, {"text": "Yes."}, {"text": "Yes.", **ALL}]
    schemas = [table((await ask(client, "arrow", **body)).content).schema for body in bodies]
    assert all(schema.equals(schemas[0], check_metadata=False) for schema in schemas)


async def test_many_texts_come_in_several_batches(client: httpx.AsyncClient) -> None:
    content = (await ask(client, "arrow", texts=[f"Number {n}." for n in range(130)])).content
    batches = list(pa.ipc.open_stream(content))
    assert [batch.num_rows for batch in batches] == [64, 64, 2]
    assert all(batch.schema.metadata for batch in batches)


async def test_wide_numbers_say_so(english: Parser) -> None:
    size = 300
    starts = list(range(0, 2 * size, 2))
    ends = [start + 1 for start in starts]
    none: list[Any] = [None] * size
    # Each word hangs from the one before it, so the longest path does not fit into a byte.
    chain = Parse(
        text="w " * size, form=["w"] * size, lemma=none, upos=none, xpos=none, feats=none,
        head=list(range(size)), deprel=none, word_start=starts, word_end=ends, token_start=starts,
        token_end=ends, token_first_word=list(range(size)), sentence_start=[0],
        sentence_end=[2 * size], sentence_first_word=[0],
    )  # fmt: skip
    parents = chain.parents()
    matrices = {"distance": tree_distance(parents), "depth": tree_depth(parents)}
    item = ItemFeatures("0" * 32, cached=True, parse=chain, matrices=matrices)
    content = render_arrow(FeatureAnswer(english.identity, "en", None, [item]))
    (row,) = table(content).to_pylist()
    assert (row["distance_dtype"], row["depth_dtype"]) == ("<u2", "<u2")
    distance = np.frombuffer(row["distance"], row["distance_dtype"]).reshape(size, size)
    assert distance[0, -1] == size - 1
    assert np.array_equal(distance, matrices["distance"])
    assert np.array_equal(np.frombuffer(row["depth"], row["depth_dtype"]), matrices["depth"])


async def test_packed_matrices_have_a_limit_of_their_own(serve: Callable[..., Any]) -> None:
    long = "one two three four five six seven eight"
    limits = {"max_matrix_pieces": 6, "max_matrix_cells": 40}
    async with serve(**limits, job_workers=0, workers=1) as client:
        body = {"text": long, "matrices": ["distance"]}
        (item,) = (await ask(client, "json", **body)).json()["items"]
        assert item["error"]["error_type"] == "text_too_long"
        (row,) = table((await ask(client, "arrow", **body)).content).to_pylist()
        assert row["error_type"] is None
        assert len(row["distance"]) == 64
    async with serve(**limits, max_packed_matrix_mb=0, job_workers=0, workers=1) as client:
        (row,) = table((await ask(client, "arrow", **body)).content).to_pylist()
        assert row["error_type"] == "text_too_long"
        assert "max_packed_matrix_mb" in row["error_message"]


async def test_the_guide_shows_how_matrices_are_unpacked(client: httpx.AsyncClient) -> None:
    (snippet,) = re.findall(r"^(for row in pa\.ipc.*?)```", GUIDE, re.S | re.M)
    content = (await ask(client, "arrow", texts=["Untidy tokens.", "It works."], **ALL)).content
    answer = (await ask(client, "json", texts=["Untidy tokens.", "It works."], **ALL)).json()
    names: dict[str, Any] = {"content": content, "np": np, "pa": pa, "found": []}
    exec(f"{snippet}\n    found.append((distance, depth, ancestor))", names)
    for matrices, item in zip(names["found"], answer["items"], strict=True):
        for name, matrix in zip(ALL["matrices"], matrices, strict=True):
            assert matrix.tolist() == item["matrices"][name]
    assert len(names["found"]) == 2
