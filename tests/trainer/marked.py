"""Two words of a real tree are marked, all others look alike: are they close in the tree?

Examples come in twins: the same tree, and marks as far apart in the sentence, once close in
the tree and once not. Without the tree there is nothing to tell them by but where the marks stand,
and no tree is in both splits.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from clients.benchmarks import SAMPLE
from featurestore import DatasetHandle, ExampleRow, FeatureStore
from service.parsers import Limits, ParseInput, Parser
from service.tokenizers import LoadedTokenizer
from syntax import read_conllu, tree_distance
from syntax.batches import SegmentFeatures
from syntax.examples import DatasetSpec, Example, LabelSpec
from syntax.fingerprint import fingerprint

NAME: Final = "marked"
TAGS: Final = LabelSpec("tags", "tags", ("O", "B-close", "B-apart"))
CLOSE, APART = 2, 4
"""Edges between close words at most, between others at least."""

Parents: TypeAlias = tuple[int, ...]


def bundled_trees(parser: Parser) -> list[Parents]:
    """The trees of the bundled sentences, as the bundled parser gives them, each once."""
    texts = {
        part.text: None
        for split in ("train", "dev")
        for item in SAMPLE.read(None, split, "en")
        if isinstance(item, Example)
        for part in item.segments
    }
    parses = [parser.parse(ParseInput("sentence", text), Limits()) for text in texts if text]
    return _usable(tuple(parse.parents().tolist()) for parse in parses)


def treebank_trees(file: Path, count: int) -> list[Parents]:
    """The first gold trees of a treebank, each once."""
    trees = _usable(tuple(one.tree.parents.tolist()) for one in read_conllu(file))
    return trees[:count]


def _usable(trees: Iterable[Parents]) -> list[Parents]:
    return list(dict.fromkeys(tree for tree in trees if 6 <= len(tree) <= 20))


def append_marked(
    store: FeatureStore, tokenizer: LoadedTokenizer, split: str, trees: list[Parents], twins: int
) -> None:
    """Some twins of each tree, the same ones every time."""
    spec = DatasetSpec(NAME, split, "en", ("text",), (TAGS,), "pretokenized")
    handle = DatasetHandle(
        spec, tokenizer.name, tokenizer.fingerprint, tokenizer.special_tokens, matrices=False
    )
    plain, marked = tokenizer.encode("a b")[0]
    draw = random.Random(0)
    rows: list[ExampleRow] = []
    for tree in trees:
        for pair, tag in _twins(tree, twins, draw):
            rows.append(_row(len(rows), tree, pair, tag, (plain, marked)))
    store.features.append(handle, rows)


def _twins(tree: Parents, count: int, draw: random.Random) -> Iterator[tuple[tuple[int, int], str]]:
    distance = tree_distance(np.array(tree, np.int32))
    close, apart = defaultdict(list), defaultdict(list)
    for i in range(len(tree)):
        for j in range(i + 1, len(tree)):
            if distance[i, j] <= CLOSE:
                close[j - i].append((i, j))
            elif distance[i, j] >= APART:
                apart[j - i].append((i, j))
    gaps = sorted(close.keys() & apart.keys())
    for gap in draw.sample(gaps, min(count, len(gaps))):
        yield draw.choice(close[gap]), "B-close"
        yield draw.choice(apart[gap]), "B-apart"


def _row(
    seq: int, tree: Parents, pair: tuple[int, int], tag: str, ids: tuple[int, int]
) -> ExampleRow:
    number = np.arange(len(tree), dtype=np.int32)
    marks = np.isin(number, pair)
    none = np.zeros(len(tree), np.uint8)
    # One character and one piece a word, joined by spaces.
    spans = np.stack([2 * number, 2 * number + 1], axis=1)
    features = SegmentFeatures(
        np.where(marks, ids[1], ids[0]).astype(np.int32),
        np.array(tree, np.int32),
        number,
        none,
        none,
        np.zeros_like(number),
        spans,
    )
    text = " ".join("b" if mark else "a" for mark in marks)
    name, tags = f"marked-{seq}", tuple(tag if mark else "O" for mark in marks)
    key = fingerprint([seq, tree, pair])
    return ExampleRow(
        seq, name, key, "0" * 32, (text,), (key,), (features,), {"tags": tags}, (spans,)
    )
