"""Real sentence pairs through the whole backfill, against an independent recomputation."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import ufal.udpipe

from service.parsers import find_parser

from .conftest import Running

EXAMPLES = 520


def read_pairs(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    rows = [line.split("\t") for line in lines if line]
    return [row for row in rows if len(row) == 3][:EXAMPLES]


def upload(rows: list[list[str]], tokenizer: Path) -> bytes:
    names = ["contradiction", "entailment", "neutral"]
    spec = {
        "split": "dev",
        "lang": "en",
        "fields": ["premise", "hypothesis"],
        "labels": [{"name": "label", "kind": "class", "names": names}],
        "tokenizer": str(tokenizer),
    }
    lines: list[Any] = [{"spec": spec}]
    for n, (premise, hypothesis, label) in enumerate(rows):
        segments = [{"text": premise}, {"text": hypothesis}]
        example = {"example_id": str(n), "segments": segments, "labels": {"label": label}}
        lines.append({"example": example})
    return "\n".join(map(json.dumps, lines)).encode()


def raw_words(model: Any, text: str) -> list[tuple[int, int, int]]:
    """Start, end and head (0-based through the text, -1 for a root) of each word of UDPipe's."""
    tokenizer = model.newTokenizer("ranges")
    tokenizer.setText(text)
    words: list[tuple[int, int, int]] = []
    sentence = ufal.udpipe.Sentence()
    while tokenizer.nextSentence(sentence):
        model.tag(sentence, "")
        model.parse(sentence, "")
        words += sentence_words(sentence, text, len(words))
        sentence = ufal.udpipe.Sentence()
    return words


def sentence_words(sentence: Any, text: str, first: int) -> list[tuple[int, int, int]]:
    inside: dict[int, tuple[int, int]] = {}
    for token in sentence.multiwordTokens:
        at = token.getTokenRangeStart()
        forms = [sentence.words[n].form for n in range(token.idFirst, token.idLast + 1)]
        assert "".join(forms) == text[at : token.getTokenRangeEnd()]  # true of English
        for n, form in enumerate(forms, token.idFirst):
            inside[n] = (at, at + len(form))
            at += len(form)
    words = []
    for n in range(1, len(sentence.words)):
        word = sentence.words[n]
        start, end = inside.get(n) or (word.getTokenRangeStart(), word.getTokenRangeEnd())
        words.append((start, end, first + word.head - 1 if word.head else -1))
    return words


def owners(words: list[tuple[int, int, int]], offsets: list[tuple[int, int]]) -> list[int]:
    """The word that each piece overlaps most, the leftmost of several; -1 for none."""
    owned = []
    for start, end in offsets:
        overlaps = [min(end, z) - max(start, a) for a, z, _ in words]
        best = max(range(len(words)), key=lambda n: (overlaps[n], -n))
        owned.append(best if overlaps[best] > 0 else -1)
    return owned


def attach(words: list[tuple[int, int, int]], owned: list[int]) -> list[int]:
    """Head of each piece, for texts in which every word owns a piece."""
    first: dict[int, int] = {}
    for piece, word in enumerate(owned):
        first.setdefault(word, piece)
    heads = []
    for piece, word in enumerate(owned):
        if first[word] != piece:
            heads.append(first[word])
        else:
            heads.append(-1 if words[word][2] < 0 else first[words[word][2]])
    return heads


def distances(heads: list[int], start: int) -> list[int | None]:
    """Edges from one piece to every other, by breadth-first search; None where there is no path."""
    neighbours: dict[int, set[int]] = {n: set() for n in range(len(heads))}
    for n, head in enumerate(heads):
        if head >= 0:
            neighbours[n].add(head)
            neighbours[head].add(n)
    reached, queue = {start: 0}, deque([start])
    while queue:
        at = queue.popleft()
        for other in neighbours[at] - reached.keys():
            reached[other] = reached[at] + 1
            queue.append(other)
    return [reached.get(n) for n in range(len(heads))]


def climb(heads: list[int], piece: int) -> int:
    """Edges up to the root."""
    return 0 if heads[piece] < 0 else 1 + climb(heads, heads[piece])


@pytest.mark.slow
async def test_xnli_features_equal_an_independent_recomputation(
    running: Running, data_dir: Path
) -> None:
    folder = data_dir / "tokenizers" / "bert-base-multilingual-cased"
    rows = read_pairs(data_dir / "benchmarks" / "xnli" / "dev-en.tsv")
    assert len(rows) >= 500
    udpipe = {"en": "udpipe/english-ewt"}
    async with running(job_workers=1, job_shard_segments=500, parsers=udpipe) as service:
        job = await service.backfill(upload(rows, folder), "xnli")
        assert job["state"] == "done"
        counts = job["counts"]
        assert counts["stored"] + sum(counts["dropped"].values()) == len(rows)
        assert counts["stored"] > 0.99 * len(rows)
        stored = service.store.sql(
            "select example_id, segment, text, input_ids, head, word_ids, distance, depth "
            "from segments order by seq, segment"
        ).fetchall()
        again = await service.backfill(upload(rows, folder), "xnli")
        assert again["counts"]["parses"]["done"] == 0
        assert again["counts"]["already_stored"] == counts["stored"]
        model = ufal.udpipe.Model.load(str(find_parser(service.settings, lang="en").path))
    tokenizer = reference_tokenizer(folder)
    checked = 0
    for example_id, segment, text, input_ids, head, word_ids, distance, depth in stored:
        assert text == rows[int(example_id)][segment]
        words = raw_words(model, text)
        encoding = tokenizer.encode(text, add_special_tokens=False)
        assert input_ids == encoding.ids
        owned = owners(words, encoding.offsets)
        assert word_ids == owned
        if set(owned) != set(range(len(words))):
            continue
        heads = attach(words, owned)
        assert head == heads
        size = len(heads)
        for start in (0, size // 2, size - 1):
            assert distance[start] == distances(heads, start)
        assert list(depth) == [climb(heads, n) for n in range(size)]
        checked += 1
    assert checked > 0.98 * len(stored)


def reference_tokenizer(folder: Path) -> tokenizers.Tokenizer:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder), use_fast=True).backend_tokenizer
