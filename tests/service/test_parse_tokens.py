"""``POST /parse`` with tokens: their words, their labels; and sentences that are cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from featurestore import open_store
from featurestore.maintenance.validate import validate_store
from syntax.trees.conllu import parse_conllu

from .contract import items

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = ["I", "can't", "find", "John", "Smith", "!"]
LABELS = ["O", "S-NEG", "O", "B-PER", "E-PER", "O"]
LONG = "He came , he saw , he won , and then the man went home again ."


def forms(item: dict[str, Any]) -> list[str]:
    return [word["form"] for sentence in item["sentences"] for word in sentence["words"]]


async def test_tokens_that_are_split_keep_their_words_and_labels(client: httpx.AsyncClient) -> None:
    (item,) = await items(client, tokens=[TOKENS], token_labels=[LABELS], mode="retokenize")
    assert forms(item) == ["I", "ca", "n't", "find", "John", "Smith", "!"]
    assert item["token_words"] == [[0], [1, 2], [3], [4], [5], [6]]
    assert item["word_labels"] == ["O", "B-NEG", "E-NEG", "O", "B-PER", "E-PER", "O"]


async def test_texts_have_neither(client: httpx.AsyncClient) -> None:
    (item,) = await items(client, text="It works.")
    assert not {"token_words", "word_labels"} & set(item)
    (item,) = await items(client, tokens=[["It", "works"]])
    assert "word_labels" not in item


async def test_labels_are_no_part_of_the_parse(client: httpx.AsyncClient) -> None:
    tokens = ["Labels", "are", "free"]
    first = await client.post("/parse", json={"tokens": [tokens], "token_labels": [["A"] * 3]})
    body = {"tokens": [tokens, tokens], "token_labels": [["A"] * 3, ["B"] * 3]}
    second = await client.post("/parse", json=body)
    (one,), (two, three) = first.json()["items"], second.json()["items"]
    assert one["key"] == two["key"] == three["key"]
    assert (two["word_labels"], three["word_labels"]) == (["A"] * 3, ["B"] * 3)
    assert two["cached"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"tokens": [["a", "b"], ["c"]], "token_labels": [["O", "O"], []]}, "token_labels[1]"),
        ({"tokens": [["a", "b"]], "token_labels": [["O"]]}, "1 labels for the 2 tokens"),
        ({"tokens": [["a"]], "token_labels": [["O"], ["O"]]}, "2 lists of labels"),
        ({"text": "a", "token_labels": [["O"]]}, "came with texts"),
        ({"tokens": [["a"]], "token_labels": [["\ud800"]]}, "token_labels[0] holds"),
    ],
)
async def test_labels_that_do_not_go_with_the_tokens_are_refused(client, body, said) -> None:
    response = await client.post(
        "/parse", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert response.status_code == 422
    assert response.json()["error_type"] == "spec"
    assert said in response.json()["message"]


async def test_long_sentences_are_refused_or_cut_and_marked(serve: Callable[..., Any]) -> None:
    async with serve(max_words_per_sentence=6) as client:
        for body in (
            {"text": LONG, "mode": "sentence"},
            {"tokens": [LONG.split()]},
            {"tokens": [LONG.split()], "mode": "retokenize"},
        ):
            (refused,) = await items(client, **body)
            assert refused["error"]["error_type"] == "sentence_too_long"
            (item,) = await items(client, **body, long_sentences="split")
            assert [one.get("continues") for one in item["sentences"]] == [None, True, True]
            assert " ".join(forms(item)) == LONG
            (again,) = await items(client, **body, long_sentences="split")
            assert again["cached"]
            assert again["sentences"] == item["sentences"]
            (refused,) = await items(client, **body)
            assert refused["error"]["error_type"] == "sentence_too_long"
        body = {"text": LONG, "mode": "sentence", "long_sentences": "split"}
        text = (await client.post("/parse?format=conllu", json=body)).text
        first, *others = parse_conllu(text)
        assert "ContinuedSentence" not in (first.words[0].misc or "")
        assert all("ContinuedSentence=Yes" in (one.words[0].misc or "") for one in others)


@pytest.mark.slow
async def test_another_limit_splits_anew(serve: Callable[..., Any], tmp_path: Path) -> None:
    body = {"text": LONG, "mode": "sentence", "long_sentences": "split"}
    found = {}
    for limit in (6, 1000):
        async with serve(max_words_per_sentence=limit, store=str(tmp_path / "store")) as client:
            (item,) = await items(client, **body)
            found[limit] = (item["cached"], len(item["sentences"]))
            (again,) = await items(client, **body)
            assert again["cached"]
    assert found == {6: (False, 3), 1000: (False, 1)}
    with open_store(tmp_path / "store") as store:
        assert validate_store(store, deep=True).problem_count == 0


async def test_a_sentence_within_the_limit_is_the_same_either_way(client) -> None:
    (whole,) = await items(client, text="It works. It really does.")
    (cut,) = await items(client, text="It works. It really does.", long_sentences="split")
    assert cut["sentences"] == whole["sentences"]
    assert cut["key"] != whole["key"]
