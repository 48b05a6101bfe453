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
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.parsers import Parser
from service.pipeline.records import FeatureAnswer, ItemFeatures
from service.render import render_arrow
from syntax.matrices import tree_depth, tree_distance
from tests.syntax.parses import parse_of

from .contract import ALL, MATRICES, TOKENIZER, ask, items, read_arrow, read_json

pytestmark = pytest.mark.asyncio(loop_scope="module")

GUIDE = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def table(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


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
    st.sets(st.sampled_from(MATRICES)),
)
@example(texts=["\x1b"], tokenizer=TOKENIZER, matrices={"distance"})
@settings(max_examples=15)
async def test_arrow_says_what_json_says(client, texts, tokenizer, matrices) -> None:
    body = {"texts": texts, "tokenizer": tokenizer, "matrices": sorted(matrices)}
    content, whole = (await ask(client, "arrow", **body)).content, await ask(client, **body)
    assert read_arrow(content) == read_json(whole.content)
    rows, answer = table(content), whole.json()
    for row, item in zip(rows.to_pylist(), answer["items"], strict=True):
        assert row["error_message"] == item.get("error", {}).get("message")
        if "error" in item:
            said = {value for name, value in row.items() if not name.startswith("error")}
            assert said <= {None, row["index"]}
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
    for row, item in zip(rows, await items(client, **body), strict=True):
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
    # Each word hangs from the one before it, so the longest path does not fit into a byte.
    chain = parse_of("w " * size, [(at, at + 1) for at in range(0, 2 * size, 2)], [[*range(size)]])
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
        (item,) = await items(client, **body)
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
    found = await items(client, texts=["Untidy tokens.", "It works."], **ALL)
    names: dict[str, Any] = {"content": content, "np": np, "pa": pa, "found": []}
    exec(f"{snippet}\n    found.append((distance, depth, ancestor))", names)
    for matrices, item in zip(names["found"], found, strict=True):
        for name, matrix in zip(MATRICES, matrices, strict=True):
            assert matrix.tolist() == item["matrices"][name]
    assert len(names["found"]) == 2
