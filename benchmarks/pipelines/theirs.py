"""The ways of the papers' code, written anew: one text after the other, one tree after the other.

Each has two parts. `prepare` goes from raw texts to trees in a file, once for a benchmark. `epoch`
goes from that file to the pieces and matrices of every example, once for a run and its first epoch;
later epochs of the first two make the matrices again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import stanza
import ufal.udpipe
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path
from transformers import AutoTokenizer

from benchmarks.backfill.corpus import Pair
from syntax.trees.conllu import parse_conllu

LONGEST: Final = 128
NEAR: Final = 4
"""Edges within which lr-sib's configuration lets a piece attend."""


@lru_cache(maxsize=1)
def _tokenizer(folder: str) -> Any:
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def pieces_of(words: Sequence[str], heads: Sequence[int], folder: str) -> list[int]:
    """Head of each piece, 1-based: first pieces hang from first pieces, others from their first."""
    counts = [len(_tokenizer(folder).tokenize(word)) or 1 for word in words]
    first = [1, *(1 + int(end) for end in np.cumsum(counts))]
    found: list[int] = []
    for word, (head, count) in enumerate(zip(heads, counts, strict=True)):
        found += [first[head - 1] if head else 0, *[first[word]] * (count - 1)]
    return found


# Syntax-MBERT: UDPipe through CoNLL-U; scipy at each access to an example. The release reads the
# CoNLL-U with the package conllu, which takes longer than the lines here.


def prepare_pairs(pairs: Sequence[Pair], model: Path, path: Path) -> None:
    """JSON lines of parsed pairs."""
    loaded = ufal.udpipe.Model.load(str(model))
    default = ufal.udpipe.Pipeline.DEFAULT
    parse = ufal.udpipe.Pipeline(loaded, "tokenizer=presegmented", default, default, "conllu")
    with path.open("w", encoding="utf-8") as file:
        for _, first, second in pairs:
            row = {
                "premise": _tree(parse.process(first)),
                "hypothesis": _tree(parse.process(second)),
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _tree(conllu: str) -> dict[str, list[Any]]:
    """Words and heads of the first sentence."""
    first, _, _ = conllu.partition("\n\n")
    lines = [line.split("\t") for line in first.splitlines() if not line.startswith("#")]
    words = [columns for columns in lines if columns[0].isdigit()]
    return {"tokens": [word[1] for word in words], "head": [int(word[6]) for word in words]}


def epoch_of_pairs(path: Path, tokenizer: str) -> Iterator[NDArray[np.int64]]:
    """Distances of the pieces of each pair below one root, padded to the longest sequence."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        heads: list[int] = []
        for side in ("premise", "hypothesis"):
            own = pieces_of(row[side]["tokens"], row[side]["head"], tokenizer)
            heads += [head + len(heads) if head else 0 for head in own]
        size = min(len(heads) + 1, LONGEST)
        adjacency = np.zeros((size, size), np.float32)
        for piece, head in enumerate(heads[: size - 1], 1):
            if head < size:
                adjacency[piece, head] = adjacency[head, piece] = 1
        found = shortest_path(csr_matrix(adjacency))
        padded = np.full((LONGEST, LONGEST), 99999, np.int64)
        padded[:size, :size] = np.where(np.isinf(found), 99999, found).astype(np.int64)
        yield padded


# lr-sib: Stanza, a sentence at a time; masks in Python in each batch


def prepare_sentences(texts: Sequence[str], models: Path, path: Path) -> None:
    """JSON lines of parsed sentences."""
    parse = stanza.Pipeline(
        "fr",
        dir=str(models),
        download_method=None,
        processors="tokenize,mwt,pos,lemma,depparse",
        tokenize_no_ssplit=True,
        use_gpu=False,
        verbose=False,
    )
    with path.open("w", encoding="utf-8") as file:
        for text in texts:
            words = [word for one in parse(text).sentences for word in one.words]
            row = {"tokens": [word.text for word in words], "head": [word.head for word in words]}
            file.write(json.dumps(row) + "\n")


def epoch_of_sentences(path: Path, tokenizer: str) -> Iterator[NDArray[np.bool_]]:
    """Which piece may attend to which: within `NEAR` edges of it, or of its left neighbour."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        heads = pieces_of(row["tokens"], row["head"], tokenizer)
        neighbours: list[list[int]] = [[] for _ in heads]
        for piece, head in enumerate(heads):
            if head:
                neighbours[piece].append(head - 1)
                neighbours[head - 1].append(piece)
        near = [_within(start, neighbours) for start in range(len(heads))]
        mask = np.zeros((len(heads) + 2, len(heads) + 2), np.bool_)
        mask[0, :] = mask[:, 0] = mask[:, -1] = True
        for piece in range(len(heads)):
            for other in near[piece] | (near[piece - 1] if piece else set()):
                mask[piece + 1, other + 1] = True
        yield mask


def _within(start: int, neighbours: Sequence[Sequence[int]]) -> set[int]:
    found, edge = {start}, [start]
    for _ in range(NEAR):
        edge = [other for one in edge for other in neighbours[one] if other not in found]
        found.update(edge)
    return found


# structural-probes: gold trees; a walk to the root for every pair of words


def epoch_of_treebank(path: Path) -> Iterator[NDArray[np.float32]]:
    """Distances of the words of each sentence."""
    for sentence in parse_conllu(path.read_text(encoding="utf-8")):
        size = len(sentence.words)
        found = np.zeros((size, size), np.float32)
        for one in range(size):
            for other in range(one, size):
                heads = [word.head or 0 for word in sentence.words]
                found[one, other] = found[other, one] = _between(one + 1, other + 1, heads)
        yield found


def _between(one: int, other: int, heads: Sequence[int]) -> int:
    ours, theirs = _to_root(one, heads), _to_root(other, heads)
    while ours and theirs and ours[-1] == theirs[-1]:
        ours.pop()
        theirs.pop()
    return len(ours) + len(theirs)


def _to_root(word: int, heads: Sequence[int]) -> list[int]:
    path = []
    while word:
        path.append(word)
        word = heads[word - 1]
    return path
