"""Constituent treebanks in bracket files, as PTB, CTB and SPMRL have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from clients.benchmarks.base import Benchmark, Item, Names, Part, attempt, named_parts, register
from clients.benchmarks.lines import check_characters, numbered_lines
from clients.benchmarks.tags import check_tokens
from syntax.errors import InputError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, LabelValue, Mode, Segment, SpanLabel
from syntax.labels import token_offsets
from syntax.trees.constituents import Tokens, tree_of, tree_tokens

CONSTITUENTS: Final = LabelSpec("constituents", "spans", field="text")
TAGS: Final = LabelSpec("pos", "tags", field="text")

_ENDING: Final = r"(?:mrg|ptb|ptb3|brackets|bracket|clean)"
_SPLIT: Final = "(?P<split>train|dev|valid|test)"


def _find(folder: Path) -> Sequence[Part]:
    patterns = (rf"(?P<lang>[a-z]{{2,3}})/{_SPLIT}\.{_ENDING}", rf"{_SPLIT}\.{_ENDING}")
    return named_parts(folder, patterns=patterns, lang="en")


def _read(part: Part, mode: Mode) -> Iterator[Item]:  # noqa: ARG001
    numbers = count(1)
    for path in part.files:
        for tokens in _trees(path):
            yield attempt(f"{part.split}-{next(numbers)}", _example, tokens, path)


def _trees(path: Path) -> Iterator[Tokens]:
    lines = (
        (one.number, one.raw.decode("utf-8", "surrogateescape")) for one in numbered_lines(path)
    )
    return tree_tokens(lines)


def _example(example_id: str, tokens: Tokens, path: Path) -> Example:
    where = f"{path.name}, line {tokens[0][0]}"
    check_characters(" ".join(text for _, text in tokens), where)
    tree = tree_of(tokens, path.name)
    check_tokens(tree.words, tree.tags, where)
    offsets = token_offsets(tree.words).tolist()
    spans = tuple(
        SpanLabel(offsets[start][0], offsets[end - 1][1], label)
        for label, start, end in tree.constituents
    )
    labels: dict[str, LabelValue] = {"constituents": spans, "pos": tree.tags}
    return Example(example_id, (Segment(tokens=tree.words),), labels)


def _names_in(parts: Sequence[Part]) -> Names:
    labels: set[str] = set()
    tags: set[str] = set()
    for tokens in (one for part in parts for path in part.files for one in _trees(path)):
        with suppress(InputError):  # reported when the tree is read
            tree = tree_of(tokens, "")
            labels.update(one.label for one in tree.constituents)
            tags.update(tree.tags)
    return {"constituents": tuple(sorted(labels)), "pos": tuple(sorted(tags))}


BRACKETS: Final = register(
    Benchmark(
        name="brackets",
        fields=("text",),
        labels=(CONSTITUENTS, TAGS),
        modes=TOKEN_MODES,
        layout=(
            "a file of bracketed trees, or a folder of files {split}.mrg or {lang}/{split}.mrg "
            "(also .ptb, .ptb3, .brackets, .bracket, .clean; without a language: English)"
        ),
        source=(
            "the user's own copy of a treebank, such as the Penn Treebank (Marcus et al. 1993), "
            "the Chinese Treebank (Xue et al. 2005), or SPMRL (Seddah et al. 2013)"
        ),
        licence="as the treebank's; those of LDC need an agreement",
        find=_find,
        read_part=_read,
        ids="{split}-{number of the tree in the part}; languages are not parallel",
        rejects={
            "brackets": "a tree with a bracket, label or word that is missing or too much; the "
            "message has the line, and what was expected. Reading goes on where the next line "
            "begins with a bracket",
            "empty_token": "a tree with a word that is white space",
            "invalid_character": "a tree with bytes that are not UTF-8",
        },
        quirks=(
            "traces (`-NONE-`) are removed, with what consists of them; of labels what follows `-` "
            "or `=`; a top bracket without label",
            "words are unescaped: `-LRB-` is `(`, `1\\/2` is `1/2`; their tags stay",
            "constituents are characters of the words joined by spaces, the outer before the inner",
            "the names of labels and tags are those of all files under the path",
            "a tree begins with a bracket at the start of a line, or where the one before ends; "
            "lines between trees that begin with `<` are passed over",
        ),
        names_in=_names_in,
    )
)
