"""Agreement of two analyses of a text: the metrics of the CoNLL 2018 shared task.

Both analyses cover the same characters (without white space), by which units are compared:

* a *token* or a *sentence* is correct if the gold standard has one over the same characters;
* *words* are first aligned: a word that is a whole token, by its characters; the words of
  multiword tokens, whose characters are unknown, by the longest common subsequence of their
  lower-cased forms within the part of the text that overlapping multiword tokens cover;
* every other metric counts aligned words with the same annotation. Only universal features count,
  and of a relation only the part before ``:``; a gold lemma ``_`` matches any lemma.

Source: Zeman et al. (2018), "CoNLL 2018 Shared Task: Multilingual Parsing from Raw Text to
Universal Dependencies", section 5, and https://universaldependencies.org/conll18/evaluation.html.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from syntax.errors import InputError
from syntax.trees.sentence import Sentence, Word

METRICS: Final = (
    *("Tokens", "Sentences", "Words"),
    *("UPOS", "XPOS", "UFeats", "AllTags", "Lemmas", "UAS", "LAS"),
)

UNIVERSAL_FEATURES: Final = frozenset(
    (
        *("PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr"),
        *("Gender", "Animacy", "Number", "Case", "Definite", "Degree"),
        *("VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident"),
        *("Polarity", "Person", "Polite"),
    )
)
"""Features that the shared task compares: those of Universal Dependencies 2.2."""

Span = tuple[int, int]

_ROOT: Final = -1
_NO_HEAD: Final = -2


class TextMismatchError(InputError):
    """Gold standard and system analyse different texts; ``detail`` has the first difference."""


@dataclass(frozen=True, slots=True)
class Score:
    """Numbers of units of one kind, and of those that agree; the properties are percentages.

    ``aligned`` counts aligned words; it is ``None`` for tokens, sentences and words themselves.
    """

    gold: int
    system: int
    correct: int
    aligned: int | None = None

    @property
    def precision(self) -> float:
        return _percent(self.correct, self.system)

    @property
    def recall(self) -> float:
        return _percent(self.correct, self.gold)

    @property
    def f1(self) -> float:
        return _percent(2 * self.correct, self.gold + self.system)

    @property
    def aligned_accuracy(self) -> float | None:
        """Share of the aligned words that are correct, whatever the segmentation; else ``None``."""
        return None if self.aligned is None else _percent(self.correct, self.aligned)


def evaluate(gold: Iterable[Sentence], system: Iterable[Sentence]) -> dict[str, Score]:
    """Score a system's analysis of a text against the gold standard, by each of `METRICS`.

    Only white space may differ between the two texts; else it raises `TextMismatchError`.

    >>> from syntax.trees.sentence import Sentence, Token, Word
    >>> one = [Sentence((Word(1, "Go", head=0, deprel="root"),), (Token("Go", (1,)),))]
    >>> evaluate(one, one)["LAS"].f1
    100.0
    """
    ours, theirs = _layout(gold), _layout(system)
    if ours.text != theirs.text:
        together = enumerate(zip(ours.text, theirs.text))  # noqa: B905
        matching = (at for at, (left, right) in together if left != right)
        at = next(matching, min(len(ours.text), len(theirs.text)))
        raise TextMismatchError(
            f"gold and system differ at character {at} (white space left out): gold continues "
            f"with {ours.text[at : at + 20]!r}, system with {theirs.text[at : at + 20]!r}; "
            "parse exactly the text of the gold standard",
            position=at,
        )
    pairs = align_words(ours.words, theirs.words)
    scores = {
        "Tokens": _span_score(ours.tokens, theirs.tokens),
        "Sentences": _span_score(ours.sentences, theirs.sentences),
        "Words": Score(len(ours.words), len(theirs.words), len(pairs)),
    }
    return scores | _annotation_scores(ours.words, theirs.words, pairs)


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word with the characters of its token.

    Attributes:
        span: Start and end in the text without white space.
        multiword: True if other words may share these characters.
        parent: Position of the head in the text, -1 for a root, -2 without a head.
    """

    span: Span
    multiword: bool
    parent: int
    word: Word


@dataclass(frozen=True, slots=True)
class _Layout:
    text: str
    tokens: list[Span]
    sentences: list[Span]
    words: list[PlacedWord]


def align_words(gold: list[PlacedWord], system: list[PlacedWord]) -> list[tuple[int, int]]:
    """Positions of aligned gold and system words, as pairs in gold order."""
    regions = _multiword_regions([*gold, *system])
    gold_free, gold_bound = _split_by_region(gold, regions)
    system_free, system_bound = _split_by_region(system, regions)
    pairs = [(gold_free[span], system_free[span]) for span in gold_free.keys() & system_free.keys()]
    for region in gold_bound.keys() & system_bound.keys():
        pairs += _common_words(gold, gold_bound[region], system, system_bound[region])
    return sorted(pairs)


def _layout(sentences: Iterable[Sentence]) -> _Layout:
    layout = _Layout("", [], [], [])
    texts: list[str] = []
    at = 0
    for sentence in sentences:
        start, first = at, len(layout.words)
        for token in sentence.tokens:
            visible = _without_spaces(token.form)
            span = (at, at := at + len(visible))
            texts.append(visible)
            layout.tokens.append(span)
            for word_id in token.word_ids:
                word = sentence.words[word_id - 1]
                parent = _parent(word.head, first)
                layout.words.append(PlacedWord(span, token.is_multiword, parent, word))
        layout.sentences.append((start, at))
    return _Layout("".join(texts), layout.tokens, layout.sentences, layout.words)


def _parent(head: int | None, first: int) -> int:
    if head is None:
        return _NO_HEAD
    return _ROOT if head == 0 else first + head - 1


def _without_spaces(form: str) -> str:
    # Space separators only (Zs), as the shared task: a form may hold no other white space.
    if form.isalnum():
        return form
    return "".join(char for char in form if unicodedata.category(char) != "Zs")


def _multiword_regions(words: Iterable[PlacedWord]) -> list[Span]:
    """Spans of text that overlapping multiword tokens of either side cover, in order."""
    regions: list[Span] = []
    for start, end in sorted({word.span for word in words if word.multiword}):
        if regions and start < regions[-1][1]:
            regions[-1] = (regions[-1][0], max(end, regions[-1][1]))
        else:
            regions.append((start, end))
    return regions


def _split_by_region(
    words: list[PlacedWord], regions: list[Span]
) -> tuple[dict[Span, int], dict[int, list[int]]]:
    free: dict[Span, int] = {}
    bound: dict[int, list[int]] = {}
    region = 0
    for position, word in enumerate(words):
        while region < len(regions) and regions[region][1] <= word.span[0]:
            region += 1
        start, end = word.span
        if region < len(regions) and regions[region][0] <= start and end <= regions[region][1]:
            bound.setdefault(region, []).append(position)
        else:
            free[word.span] = position
    return free, bound


def _common_words(
    gold: list[PlacedWord], in_gold: list[int], system: list[PlacedWord], in_system: list[int]
) -> Iterator[tuple[int, int]]:
    """Pairs of the longest common subsequence of lower-cased forms; of several, skip gold first."""
    left = [gold[position].word.form.lower() for position in in_gold]
    right = [system[position].word.form.lower() for position in in_system]
    common = _common_lengths(left, right)
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            yield in_gold[i], in_system[j]
            i, j = i + 1, j + 1
        elif common[i][j] == common[i + 1][j]:
            i += 1
        else:
            j += 1


def _common_lengths(left: list[str], right: list[str]) -> list[list[int]]:
    common = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            if left[i] == right[j]:
                common[i][j] = common[i + 1][j + 1] + 1
            else:
                common[i][j] = max(common[i + 1][j], common[i][j + 1])
    return common


def _span_score(gold: list[Span], system: list[Span]) -> Score:
    return Score(len(gold), len(system), len(set(gold) & set(system)))


def _annotation_scores(
    gold: list[PlacedWord], system: list[PlacedWord], pairs: list[tuple[int, int]]
) -> dict[str, Score]:
    gold_of = {theirs: ours for ours, theirs in pairs} | {_ROOT: _ROOT}
    same_head = {
        (ours, theirs)
        for ours, theirs in pairs
        if gold_of.get(system[theirs].parent) == gold[ours].parent
    }
    scores = {}
    for name, agree in _AGREEMENT.items():
        among = same_head if name in ("UAS", "LAS") else pairs
        correct = sum(agree(gold[ours].word, system[theirs].word) for ours, theirs in among)
        scores[name] = Score(len(gold), len(system), correct, len(pairs))
    return scores


def _universal(feats: str | None) -> list[str]:
    named = (feats or "_").split("|")
    return sorted(feat for feat in named if feat.partition("=")[0] in UNIVERSAL_FEATURES)


def _tags(word: Word) -> tuple[str | None, str | None, list[str]]:
    return word.upos, word.xpos, _universal(word.feats)


def _relation(deprel: str | None) -> str:
    return (deprel or "_").partition(":")[0]


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


_AGREEMENT: Final[dict[str, Callable[[Word, Word], Any]]] = {
    "UPOS": lambda gold, system: gold.upos == system.upos,
    "XPOS": lambda gold, system: gold.xpos == system.xpos,
    "UFeats": lambda gold, system: _universal(gold.feats) == _universal(system.feats),
    "AllTags": lambda gold, system: _tags(gold) == _tags(system),
    "Lemmas": lambda gold, system: gold.lemma in (None, "_") or gold.lemma == system.lemma,
    "UAS": lambda gold, system: True,  # noqa: ARG005
    "LAS": lambda gold, system: _relation(gold.deprel) == _relation(system.deprel),
}
"""Agreement of two aligned words; for UAS and LAS, given that their heads agree."""
