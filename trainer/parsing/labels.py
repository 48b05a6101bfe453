"""The classes that a parser of running text chooses among, read from its treebanks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from syntax import Sentence
from syntax.parsing.scripts import SINGLE, lemma_script, split_scripts

TAGS: Final = ("upos", "xpos", "feats", "lemma")
"""Columns of words that are classes. A lemma's class is an edit script."""

_EMPTY: Final = "_"


@dataclass(frozen=True)
class Labels:
    """Names of classes, the most frequent first; of ``split``, the script of single words.

    ``spaces`` tells that tokens have spaces in them, as in Vietnamese.
    """

    split: tuple[str, ...]
    tags: dict[str, tuple[str, ...]]
    deprel: tuple[str, ...]
    spaces: bool = False

    @classmethod
    def of(cls, sentences: Iterable[Sentence], rarest_lemma: int = 2) -> Labels:
        """The classes that sentences have.

        Rarer lemma scripts than ``rarest_lemma`` are typing errors and irregular words; each would
        cost a row of weights.
        """
        sentences = list(sentences)
        deprels = Counter[str]()
        tags = {column: Counter[str]() for column in TAGS}
        for sentence in sentences:
            deprels.update(word.deprel or "dep" for word in sentence.words)
            for column, values in word_tags(sentence).items():
                tags[column].update(value for value in values if value is not None)
        tags["lemma"] = Counter({k: n for k, n in tags["lemma"].items() if n >= rarest_lemma})
        filled = {
            column: _by_frequency(seen) for column, seen in tags.items() if set(seen) - {_EMPTY}
        }
        spaces = any(" " in token.form for sentence in sentences for token in sentence.tokens)
        return cls(_common_splits(sentences), filled, _by_frequency(deprels), spaces)

    def to_json(self) -> dict[str, Any]:
        return {
            "split": list(self.split),
            "tags": {column: list(names) for column, names in self.tags.items()},
            "deprel": list(self.deprel),
            "spaces": self.spaces,
        }


def token_scripts(sentence: Sentence) -> list[list[str]]:
    form = [word.form for word in sentence.words]
    return [
        split_scripts(token.form, [form[at - 1] for at in token.word_ids])
        for token in sentence.tokens
    ]


def _common_splits(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The script of each token that makes most tokens; that of single words first."""
    several = [
        scripts
        for sentence in sentences
        for scripts in token_scripts(sentence)
        if scripts != [SINGLE]
    ]
    makes = Counter(script for scripts in several for script in scripts)
    chosen = Counter(max(scripts, key=lambda one: (makes[one], one)) for scripts in several)
    return (SINGLE, *_by_frequency(chosen))


def word_tags(sentence: Sentence) -> dict[str, list[str | None]]:
    """The class of each word in each column of `TAGS`; ``None`` for no lemma."""
    words = sentence.words
    return {
        "upos": [word.upos or _EMPTY for word in words],
        "xpos": [word.xpos or _EMPTY for word in words],
        "feats": [word.feats or _EMPTY for word in words],
        "lemma": [
            None if word.lemma is None else lemma_script(word.form, word.lemma) for word in words
        ],
    }


def _by_frequency(seen: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(seen, key=lambda name: (-seen[name], name)))
