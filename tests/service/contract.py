"""Asking for parses, one reading of all formats, and what must hold for every parsed text."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import httpx
import pyarrow as pa

from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from syntax import parse_conllu
from syntax.trees.conllu import parse_from_sentences

TOKENIZER = "parsebank-wordpiece-en"
COLUMNS = ("form", "lemma", "upos", "xpos", "feats", "head", "deprel")
MATRICES = ("distance", "depth", "ancestor")
ALL = {"tokenizer": TOKENIZER, "matrices": list(MATRICES)}

Item = dict[str, Any]
"""A text as this module reads it: ``error``, or columns over words, tokens and sentences."""


async def ask(client: httpx.AsyncClient, shape: str = "json", **body: Any) -> httpx.Response:
    """The answer to a request that must succeed."""
    response = await client.post(f"/parse?format={shape}", json=body, timeout=600)
    assert response.status_code == 200, response.text
    return response


async def items(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    """The JSON of each text, or its error."""
    found: list[dict[str, Any]] = (await ask(client, **body)).json()["items"]
    return found


def read_json(content: bytes) -> list[Item]:
    return [_item(item) for item in json.loads(content)["items"]]


def read_ndjson(content: bytes) -> list[Item]:
    head, *lines, end = [json.loads(line) for line in content.splitlines()]
    assert set(head) == {"parser", "tokenizer"}
    failed = sum("error" in line for line in lines)
    assert end == {"done": {"items": len(lines), "failed": failed}}
    assert sorted(line["index"] for line in lines) == list(range(len(lines)))
    return [_item(line) for line in sorted(lines, key=lambda line: line["index"])]


def read_conllu(content: bytes) -> list[Item]:
    """Without pieces and matrices, which CoNLL-U has not."""
    errors: dict[int, str] = {}
    documents: dict[int, list[Any]] = {}
    number = 0
    for sentence in parse_conllu(content.decode()) if content.count(b"\n\n") else ():
        for key, value in map(_comment, sentence.comments):
            if key == "error":
                errors[int(value.split()[0])] = value.split()[1].rstrip(":")
            if key == "newdoc id":
                number = int(value)
        documents.setdefault(number, []).append(sentence)
    items = {number: {"error": name} for number, name in errors.items()}
    items |= {number: _parse(sentences) for number, sentences in documents.items()}
    assert sorted(items) == list(range(1, len(items) + 1))
    return [items[number] for number in sorted(items)]


def read_arrow(content: bytes) -> list[Item]:
    rows = pa.ipc.open_stream(content).read_all().to_pylist()
    assert [row["index"] for row in rows] == list(range(len(rows)))
    return [_row(row) for row in rows]


READERS = {"json": read_json, "ndjson": read_ndjson, "conllu": read_conllu, "arrow": read_arrow}


def without_pieces(item: Item) -> Item:
    """The part that CoNLL-U has, too."""
    return {name: item[name] for name in item if name not in ("key", "pieces", *MATRICES)}


def _item(item: dict[str, Any]) -> Item:
    if "error" in item:
        return {"error": item["error"]["error_type"]}
    words = [word for sentence in item["sentences"] for word in sentence["words"]]
    tokens = [token for sentence in item["sentences"] for token in sentence["tokens"]]
    read = {
        "key": item["key"],
        "text": item["text"],
        **{name: [word[name] for word in words] for name in COLUMNS},
        "words": [(word["start_char"], word["end_char"]) for word in words],
        "tokens": [(token["start_char"], token["end_char"]) for token in tokens],
        "token_sizes": [len(token["word_ids"]) for token in tokens],
        "sentences": [(one["start_char"], one["end_char"]) for one in item["sentences"]],
        "sizes": [len(sentence["words"]) for sentence in item["sentences"]],
        "pieces": item.get("wordpieces"),
    }
    return read | {name: item.get("matrices", {}).get(name) for name in MATRICES}


def _comment(line: str) -> tuple[str, str]:
    key, _, value = line[1:].partition("=")
    return key.strip(), value.strip()


def _parse(sentences: Sequence[Any]) -> Item:
    parse = parse_from_sentences(sentences, layout="spaces")
    return {
        "text": parse.text,
        **{name: list(getattr(parse, name)) for name in COLUMNS},
        "words": [*zip(parse.word_start, parse.word_end, strict=True)],
        "tokens": [*zip(parse.token_start, parse.token_end, strict=True)],
        "token_sizes": [end - start for start, end in parse.token_ranges()],
        "sentences": [*zip(parse.sentence_start, parse.sentence_end, strict=True)],
        "sizes": [end - start for start, end in parse.word_ranges()],
    }


def _row(row: dict[str, Any]) -> Item:
    if row["error_type"] is not None:
        return {"error": row["error_type"]}
    names = ("input_ids", "offset_mapping", "word_ids", "parents")
    pieces = {name: row[name] for name in names} if row["input_ids"] is not None else None
    size = len(pieces["parents"] if pieces else row["form"])
    unpack = {
        "distance": decode_distance,
        "depth": lambda blob: decode_depth(blob, size),
        "ancestor": decode_ancestor,
    }
    bounds = {
        name: pairwise([*row[f"{name}_first_word"], len(row["form"])])
        for name in ("token", "sentence")
    }
    return {
        "key": row["key"],
        "text": row["text"],
        **{name: row[name] for name in COLUMNS},
        "words": [*zip(row["word_start"], row["word_end"], strict=True)],
        "tokens": [*zip(row["token_start"], row["token_end"], strict=True)],
        "token_sizes": [end - start for start, end in bounds["token"]],
        "sentences": [*zip(row["sentence_start"], row["sentence_end"], strict=True)],
        "sizes": [end - start for start, end in bounds["sentence"]],
        "pieces": pieces,
        **{
            name: None if row[name] is None else decode(row[name]).tolist()
            for name, decode in unpack.items()
        },
    }


def check_item(item: dict[str, Any], text: str) -> None:
    """What holds for the JSON of every parsed text, whoever parsed it."""
    assert item["text"] == text
    tokens = [token for sentence in item["sentences"] for token in sentence["tokens"]]
    _check_tokens(tokens, text)
    for sentence in item["sentences"]:
        _check_sentence(sentence)
    words = [word for sentence in item["sentences"] for word in sentence["words"]]
    spans = [(word["start_char"], word["end_char"]) for word in words]
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    if "wordpieces" in item:
        _check_pieces(item["wordpieces"], spans, text)


def _check_tokens(tokens: list[dict[str, Any]], text: str) -> None:
    spans = [(token["start_char"], token["end_char"]) for token in tokens]
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert [text[start:end] for start, end in spans] == [token["form"] for token in tokens]
    covered = {at for start, end in spans for at in range(start, end)}
    missing = {at for at, character in enumerate(text) if _is_visible(character)} - covered
    assert not missing, [text[at] for at in sorted(missing)]


def _is_visible(character: str) -> bool:
    return unicodedata.category(character)[0] not in "ZC" and not character.isspace()


def _check_sentence(sentence: dict[str, Any]) -> None:
    words, tokens = sentence["words"], sentence["tokens"]
    assert [word["id"] for word in words] == list(range(1, len(words) + 1))
    assert [number for token in tokens for number in token["word_ids"]] == [w["id"] for w in words]
    heads = [word["head"] for word in words]
    assert heads.count(0) == 1
    assert all(0 <= head <= len(words) for head in heads)
    assert sentence["start_char"] == tokens[0]["start_char"]
    assert sentence["end_char"] == tokens[-1]["end_char"]
    for token in tokens:
        for number in token["word_ids"]:
            word = words[number - 1]
            assert token["start_char"] <= word["start_char"]
            assert word["end_char"] <= token["end_char"]


def _check_pieces(pieces: dict[str, Any], words: list[tuple[int, int]], text: str) -> None:
    length = len(pieces["input_ids"])
    assert {len(column) for column in pieces.values()} == {length}
    assert all(-1 <= parent < length for parent in pieces["parents"])
    for (start, end), word in zip(pieces["offset_mapping"], pieces["word_ids"], strict=True):
        assert 0 <= start <= end <= len(text)
        if word is None:
            assert not any(map(_is_visible, text[start:end]))
        else:
            assert words[word][0] < end
            assert start < words[word][1]
