"""``POST /draw``: pictures of CoNLL-U, equal to what ``POST /parse`` tells."""

from __future__ import annotations

import asyncio
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service.render.pictures import LARGEST, MOST_WAITING
from syntax.subwords import POLICIES

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERYTHING = (Path(__file__).parents[1] / "fixtures" / "conllu" / "everything.conllu").read_text(
    "utf-8"
)
TEXT = "Birds don't sing.  Unparsable sentences are reparsed!\nIt works."
TOKENIZER = "parsebank-wordpiece-en"
CYCLE = "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n"
SVG = "{http://www.w3.org/2000/svg}"


async def drawn(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/draw", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(client: httpx.AsyncClient, **body: Any) -> tuple[str, str]:
    """The name of the error, and its message."""
    answer = await client.post("/draw", json=body)
    assert answer.status_code == 422
    return answer.json()["error_type"], answer.json()["message"]


def chained(size: int) -> str:
    """A sentence in which each word is the head of the next."""
    return "".join(
        f"{at}\tword\t_\t_\t_\t_\t{at - 1}\t{'dep' if at > 1 else 'root'}\t_\t_\n"
        for at in range(1, size + 1)
    )


def cells(svg: str, name: str) -> list[str]:
    """The values of a heat map, row by row."""
    titles = [node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}title")][1:]
    return [title.rpartition(f": {name} ")[2] for title in titles]


async def test_a_sentence_with_all_that_conllu_knows_is_drawn(client) -> None:
    answer = await drawn(client, conllu=EVERYTHING, pictures=["arcs", "hierarchy"])
    assert [*answer["pictures"]] == ["arcs", "hierarchy"]
    assert len(answer["texts"]) == 2
    assert answer["conllu"] == EVERYTHING.split("\n\n")[0] + "\n\n"
    for svg in answer["pictures"].values():
        assert " style=" not in svg
        marked = {node.get("data-word") for node in ET.fromstring(svg).iter()} - {None}
        assert {"0.1", "1", "2"} <= {word for words in marked for word in words.split()}


@pytest.mark.parametrize("policy", [name.split(".")[0] for name in POLICIES])
async def test_pictures_show_what_parse_answers(client, policy: str) -> None:
    body = {"text": TEXT, "tokenizer": TOKENIZER, "policy": policy}
    names = ["distance", "depth", "ancestor"]
    parsed = (await client.post("/parse", json={**body, "matrices": names})).json()["items"][0]
    conllu = (await client.post("/parse?format=conllu", json={"text": TEXT})).text
    pieces, words = parsed["wordpieces"], [len(one["words"]) for one in parsed["sentences"]]
    word_ids = np.array([-1 if word is None else word for word in pieces["word_ids"]])
    ends = [0, *np.cumsum(words).tolist()]
    assert len(words) == 3
    for at, (first, end) in enumerate(pairwise(ends)):
        wanted = {"sentence": at, "tokenizer": TOKENIZER, "policy": policy, "matrices": names}
        answer = await drawn(client, conllu=conllu, **wanted)
        inside = np.flatnonzero((first <= word_ids) & (word_ids < end))
        distance = np.array(parsed["matrices"]["distance"])[np.ix_(inside, inside)]
        told = ["none" if value == 255 else str(value) for value in distance.ravel().tolist()]
        assert cells(answer["pictures"]["distance"], "distance") == told
        numbers = [
            ["none" if one is None else str(one) for one in row]
            for row in answer["matrices"]["values"]["distance"]
        ]
        assert [*chain.from_iterable(numbers)] == told
        depth = np.array(parsed["matrices"]["depth"])[inside]
        assert cells(answer["pictures"]["depth"], "depth") == [*map(str, depth.tolist())]
        assert answer["matrices"]["values"]["depth"] == depth.tolist()
        ancestor = np.array(parsed["matrices"]["ancestor"])[np.ix_(inside, inside)]
        assert answer["matrices"]["values"]["ancestor"] == ancestor.tolist()
        told = ["yes" if value else "no" for value in ancestor.ravel().tolist()]
        assert cells(answer["pictures"]["ancestor"], "ancestor") == told
        ids = [str(pieces["input_ids"][piece]) for piece in inside]
        texts = [node.text for node in ET.fromstring(answer["pictures"]["wordpieces"]).iter()]
        assert [text for text in texts if text in ids][: len(ids)] != []
        assert re.findall(r"wordpiece (\d+)", answer["pictures"]["wordpieces"]) == ids


async def test_matrices_as_numbers_are_of_words_or_wordpieces_and_cut(client) -> None:
    answer = await drawn(client, conllu=chained(2), pictures=[], matrices=["depth"])
    assert answer["pictures"] == {}
    assert answer["matrices"] == {
        "total": 2,
        "labels": ["word", "word"],
        "words": ["1", "2"],
        "values": {"depth": [0, 1]},
    }
    assert (await drawn(client, conllu=chained(2), pictures=[]))["matrices"] is None
    wanted = {"pictures": [], "matrices": ["distance"]}
    long = (await drawn(client, conllu=chained(LARGEST + 1), **wanted))["matrices"]
    assert (long["total"], len(long["labels"])) == (LARGEST + 1, LARGEST)
    assert np.shape(long["values"]["distance"]) == (LARGEST, LARGEST)


async def test_a_piece_for_the_unknown_has_its_name(client) -> None:
    unknown = "1\t\u65e5\t_\tX\t_\t_\t0\troot\t_\t_\n"
    wanted = {"tokenizer": TOKENIZER, "pictures": ["wordpieces"], "matrices": ["depth"]}
    answer = await drawn(client, conllu=unknown, **wanted)
    assert "[UNK]: wordpiece 1" in answer["pictures"]["wordpieces"]
    assert answer["matrices"]["labels"] == ["[UNK]"]


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ({"conllu": "1\tx"}, "conllu"),
        ({"conllu": ""}, "no_sentence"),
        (
            {"conllu": EVERYTHING, "tokenizer": "no/such", "pictures": ["wordpieces"]},
            "unknown_tokenizer",
        ),
        ({"conllu": EVERYTHING, "policy": "none.v9"}, "unknown_name"),
        ({"conllu": EVERYTHING, "pictures": ["photo"]}, "spec"),
        ({"conllu": CYCLE}, "no_root"),
    ],
)
async def test_what_cannot_be_drawn_is_named(client, body: dict[str, Any], error_type: str) -> None:
    assert (await refused(client, **body))[0] == error_type


async def test_a_sentence_that_did_not_come_is_named_and_of_a_cycle_there_are_arcs(client) -> None:
    error_type, message = await refused(client, conllu=EVERYTHING, sentence=9)
    assert error_type == "spec"
    assert "`sentence` is 9, and 2 sentences came" in message
    assert (await drawn(client, conllu=CYCLE, pictures=["arcs"]))["texts"] == ["a b"]


async def test_large_sentences_are_refused_before_they_are_drawn(serve) -> None:
    long = chained(30)
    graph = "|".join(["1.1:dep"] * 40)
    edges = f"1\ta\t_\t_\t_\t_\t0\troot\t{graph}\t_\n1.1" + "\t_" * 9 + "\n"
    async with serve(max_words_per_sentence=20, job_workers=0) as client:
        assert (await refused(client, conllu=long))[0] == "sentence_too_long"
        assert (await refused(client, conllu=edges))[0] == "sentence_too_long"
    async with serve(max_chars_per_text=100, job_workers=0) as client:
        assert (await refused(client, conllu=long))[0] == "text_too_long"
        assert (await drawn(client, conllu=long, pictures=["arcs"]))["pictures"]
    async with serve(max_matrix_pieces=20, job_workers=0) as client:
        assert (await refused(client, conllu=long))[0] == "text_too_long"
        numbers = {"pictures": [], "matrices": ["depth"]}
        assert (await refused(client, conllu=long, **numbers))[0] == "text_too_long"
        pieces = {"pictures": ["wordpieces"], "tokenizer": TOKENIZER}
        assert (await drawn(client, conllu=long, **pieces))["pictures"]
    async with serve(max_words_per_sentence=5_000, job_workers=0) as client:
        error_type, message = await refused(client, conllu=(chained(10) + "\n") * 10_000)
        assert error_type == "text_too_long"
        assert "110000 lines" in message
        assert (await refused(client, conllu=chained(1_001)))[0] == "sentence_too_long"


@pytest.mark.slow
async def test_drawings_take_turns_and_are_refused_beyond_a_few(client) -> None:
    body = {"conllu": chained(1_000)}
    drawing = [asyncio.create_task(client.post("/draw", json=body)) for _ in range(16)]
    parsed = await client.post("/parse", json={"text": "It snowed, meanwhile."})
    assert parsed.status_code == 200
    answers = await asyncio.gather(*drawing)
    by_status = Counter(answer.status_code for answer in answers)
    assert by_status[200] >= MOST_WAITING
    assert by_status[429] >= 1
    assert by_status.total() == by_status[200] + by_status[429]
    busy = next(answer for answer in answers if answer.status_code == 429)
    assert (busy.headers["retry-after"], busy.json()["error_type"]) == ("1", "overloaded")


async def test_a_drawing_has_a_deadline(serve: Callable[..., Any]) -> None:
    async with serve(request_deadline_seconds=0.005, job_workers=0) as client:
        late = await client.post("/draw", json={"conllu": chained(1_000)})
        assert (late.status_code, late.json()["error_type"]) == (504, "deadline")
