"""Sentences of a treebank as windows of running text, with the classes that are learned.

Letters in shapes: ``L`` pieces, ``T`` surface tokens, ``W`` words, ``S`` sentences of a window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from syntax import Sentence
from syntax.batches import IGNORE, SpecialTokens
from syntax.parsing.pieces import INSIDE, SENTENCE_END, TOKEN_END, text_pieces, unknown_id
from syntax.spans import word_spans
from syntax.trees.conllu import parse_from_sentences
from syntax.trees.conllu.treebank import filled_columns
from trainer.parsing.labels import Labels, token_scripts, word_tags

Ints = NDArray[np.int64]

_BREAKS: Final = ("# newpar", "# newdoc")

_GIVEN: Final = 0.3
"""Share of the windows of one sentence whose tokens or words are given."""

_BROKEN: Final = 0.1
_BREAK_BETWEEN: Final = 0.3
_BREAK_WITHIN: Final = 0.08
"""Share of windows with line breaks; of the spaces between their sentences, and within."""


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence of a treebank; spans count from its own first character.

    Attributes:
        before: White space after the sentence before it; ``None`` where a document begins.
        token_start, token_end, split: Of each token. *Shape:* (T,).
        word_start, word_end, index, head: Of each word; ``index`` is its place in its token,
            ``head`` counts from 1. *Shape:* (W,).
        tags: Class of each word by column, -100 for none. *Shape:* (W,).
    """

    text: str
    before: str | None
    form: tuple[str, ...]
    token_start: Ints
    token_end: Ints
    split: Ints
    word_start: Ints
    word_end: Ints
    index: Ints
    head: Ints
    tags: dict[str, Ints]


@dataclass(frozen=True, slots=True)
class Window:
    """Some sentences on end, as a model reads them.

    Attributes:
        ids, surface, boundary: Of each piece; no boundary of special tokens, -100. *Shape:* (L,).
        tokens, words: First and last piece of each. *Shape:* (T, 2) and (W, 2).
        split: Class of each token. *Shape:* (T,).
        index, head, tags: As in `GoldSentence`. *Shape:* (W,).
        lengths: Words of each sentence. *Shape:* (S,).
    """

    ids: Ints
    surface: Ints
    boundary: Ints
    tokens: Ints
    split: Ints
    words: Ints
    index: Ints
    lengths: Ints
    head: Ints
    tags: dict[str, Ints]


def gold_sentences(sentences: Sequence[Sentence], labels: Labels) -> list[GoldSentence]:
    """A file's sentences; a column that no word of the file has is not learned from it."""
    ids = {
        "split": _numbered(labels.split),
        "deprel": _numbered(labels.deprel),
        **{column: _numbered(names) for column, names in labels.tags.items()},
    }
    for column in labels.tags.keys() - filled_columns(sentences):
        ids[column] = {}
    before: Sentence | None = None
    found = []
    for sentence in sentences:
        found.append(_gold_sentence(sentence, _space_between(before, sentence), ids))
        before = sentence
    return found


def _gold_sentence(
    sentence: Sentence, before: str | None, ids: dict[str, dict[str, int]]
) -> GoldSentence:
    parse = parse_from_sentences([sentence])
    index = np.concatenate([np.arange(end - first) for first, end in parse.token_ranges()])
    known = word_tags(sentence)
    tags = {column: _classes(known[column], ids[column]) for column in known if column in ids}
    tags["deprel"] = _classes([word.deprel or "dep" for word in sentence.words], ids["deprel"])
    return GoldSentence(
        text=parse.text,
        before=before,
        form=tuple(parse.form),
        token_start=np.array(parse.token_start),
        token_end=np.array(parse.token_end),
        split=np.array([_first_known(one, ids["split"]) for one in token_scripts(sentence)]),
        word_start=np.array(parse.word_start),
        word_end=np.array(parse.word_end),
        index=index,
        head=np.array(parse.head),
        tags=tags,
    )


def _numbered(names: Sequence[str]) -> dict[str, int]:
    return {name: at for at, name in enumerate(names)}


def _classes(names: Sequence[str | None], ids: dict[str, int]) -> Ints:
    return np.array([IGNORE if name is None else ids.get(name, IGNORE) for name in names], np.int64)


def _first_known(scripts: Sequence[str], ids: dict[str, int]) -> int:
    return min((ids[script] for script in scripts if script in ids), default=IGNORE)


def _space_between(before: Sentence | None, sentence: Sentence) -> str | None:
    """White space as in `syntax.trees.conllu.raw_text`; texts do not go on into a new document."""
    if before is None or any(line.startswith("# newdoc") for line in sentence.comments):
        return None
    if any(line.startswith(_BREAKS) for line in sentence.comments):
        return "\n\n"
    misc = before.misc_of(before.tokens[-1]) or ""
    return "" if "SpaceAfter=No" in misc.split("|") else " "


def encode_window(
    sentences: Sequence[GoldSentence],
    tokenizer: Any,
    special: SpecialTokens,
    random: np.random.Generator | None = None,
) -> Window:
    """Sentences that follow each other as pieces, with the classes of these.

    A generator adds what texts have and treebanks lack: line breaks, in a tenth of the windows, and
    given tokens or words, joined by spaces, in a part of the windows of one sentence.
    """
    if random is not None and len(sentences) == 1 and random.random() < _GIVEN:
        sentences = [given_tokens(sentences[0], words=random.random() < 0.5)]
    breaker = random if random is not None and random.random() < _BROKEN else None
    text, offsets = "", []
    for sentence in sentences:
        between = (sentence.before or "") if text else ""
        if breaker is not None and between == " " and breaker.random() < _BREAK_BETWEEN:
            between = "\n"
        text += between
        offsets.append(len(text))
        text += sentence.text if breaker is None else _with_breaks(sentence.text, breaker)
    pieces = text_pieces(text, tokenizer, unknown_id(special))
    shift = len(special.prefix)
    outside = (shift, len(special.suffix))
    tokens = pieces.within(*_spans(sentences, offsets, "token"))
    boundary = np.full(len(pieces), INSIDE, np.int64)
    boundary[tokens[:, 1]] = TOKEN_END
    last = np.cumsum([len(sentence.split) for sentence in sentences]) - 1
    boundary[tokens[last, 1]] = SENTENCE_END
    return Window(
        ids=np.concatenate([special.prefix, pieces.ids, special.suffix]).astype(np.int64),
        surface=np.pad(pieces.surface, outside).astype(np.int64),
        boundary=np.pad(boundary, outside, constant_values=IGNORE),
        tokens=tokens + shift,
        split=np.concatenate([sentence.split for sentence in sentences]),
        words=pieces.within(*_spans(sentences, offsets, "word")) + shift,
        index=np.concatenate([sentence.index for sentence in sentences]),
        lengths=np.array([len(sentence.head) for sentence in sentences]),
        head=np.concatenate([sentence.head for sentence in sentences]),
        tags={
            column: np.concatenate([sentence.tags[column] for sentence in sentences])
            for column in sentences[0].tags
        },
    )


def given_tokens(sentence: GoldSentence, words: bool) -> GoldSentence:
    """The sentence as its tokens, or its words, joined by single spaces."""
    tokens: Sequence[str] = sentence.form
    if not words:
        spans = zip(sentence.token_start.tolist(), sentence.token_end.tolist(), strict=True)
        tokens = [sentence.text[start:end] for start, end in spans]
    ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    starts = ends - [len(token) for token in tokens]
    given = replace(sentence, text=" ".join(tokens), token_start=starts, token_end=ends)
    if words:
        none = np.zeros(len(tokens), np.int64)
        return replace(given, word_start=starts, word_end=ends, split=none, index=none)
    first = np.flatnonzero(sentence.index == 0).tolist()
    word_start, word_end = word_spans(
        given.text, starts.tolist(), ends.tolist(), first, sentence.form
    )
    return replace(given, word_start=np.array(word_start), word_end=np.array(word_end))


def _with_breaks(text: str, random: np.random.Generator) -> str:
    return "".join(
        "\n" if character == " " and random.random() < _BREAK_WITHIN else character
        for character in text
    )


def _spans(
    sentences: Sequence[GoldSentence], offsets: Sequence[int], kind: str
) -> tuple[Ints, Ints]:
    pairs = list(zip(sentences, offsets, strict=True))
    starts = [getattr(sentence, f"{kind}_start") + offset for sentence, offset in pairs]
    ends = [getattr(sentence, f"{kind}_end") + offset for sentence, offset in pairs]
    return np.concatenate(starts), np.concatenate(ends)


def cut_windows(
    sentences: Sequence[GoldSentence],
    lengths: Sequence[int],
    most: int,
    alone: float,
    random: np.random.Generator,
) -> Iterator[tuple[int, int]]:
    """First sentence and end of each window of one pass, in the order of the file.

    A window ends where a document does. The share ``alone`` is of one sentence, as given sentences
    are read; the others have as many pieces as are drawn, ``most`` at most. A longer sentence is a
    window of its own.
    """
    first = 0
    while first < len(sentences):
        limit = 0 if random.random() < alone else int(random.integers(most // 8, most + 1))
        end, size = first + 1, lengths[first]
        while (
            end < len(sentences)
            and sentences[end].before is not None
            and size + lengths[end] <= limit
        ):
            size += lengths[end]
            end += 1
        yield first, end
        first = end
