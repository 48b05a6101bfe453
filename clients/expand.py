"""Expansion of multiword tokens to their words: *de le chat* instead of *du chat*.

This is the preprocessing of Syntax-MBERT's release (Ahmad et al. 2021). The release of MicroBERT's
successor (lr-sib, commit 61e8873) keeps the tokens, too: *du de le chat*.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

from clients.client.results import ItemError, ParsedItem
from clients.client.staging import Sent
from syntax.errors import LabelError, SpecError
from syntax.examples import (
    TOKEN_MODES,
    DatasetSpec,
    Example,
    LabelValue,
    Rejection,
    Segment,
)
from syntax.trees.conllu import format_conllu, parse_conllu
from syntax.trees.parse import Parse
from syntax.trees.sentence import Sentence, Token
from syntax.trees.spacing import with_spacing

if TYPE_CHECKING:
    from clients.client.client import Client

AT_ONCE: Final = 64
"""Examples per request; fewer if an example has many texts."""

_MOST_TEXTS: Final = 256


def expanded_spec(spec: DatasetSpec) -> DatasetSpec:
    """Refuses modes without expansion, and spans."""
    if spec.mode not in ("sentence", "retokenize", "tokens_mwt", "gold"):
        raise SpecError(
            f"mode {spec.mode!r} has no multiword tokens to expand in one sentence; choose the "
            "mode sentence, retokenize, tokens_mwt or gold"
        )
    spans = [label.name for label in spec.labels if label.kind == "spans"]
    if spans:
        raise SpecError(
            f"the label {spans[0]} of {spec.name} names characters of the text as it is written, "
            "which has none of the expanded words; leave multiword tokens as they are"
        )
    return spec if spec.mode == "gold" else replace(spec, mode="pretokenized")


def expanded(
    client: Client,
    spec: DatasetSpec,
    examples: Iterable[Sent],
    *,
    keep_tokens: bool = False,
    **options: Any,
) -> Iterator[Sent]:
    """Replace the text of every example of the ``spec`` by the words of its parse.

    A word inherits the tag of its token, as in the release: one ``B-LOC`` becomes two. The
    examples have the mode ``pretokenized`` (``gold`` stays); those that cannot be parsed become
    rejections. All texts are parsed before this returns, because a client cannot parse while it
    sends; a temporary file holds the result. Options are keywords of `Client.parse`.
    """
    expanded_spec(spec)
    if keep_tokens and spec.mode == "gold":
        raise SpecError(
            f"{spec.name} has mode gold, and its trees are of words; keep multiword tokens of "
            "parsed text alone"
        )
    file = TemporaryFile()  # noqa: SIM115 - the iterator closes it
    try:
        count = 0
        for item in _made(client, spec, examples, keep_tokens, options):
            pickle.dump(item, file)
            count += 1
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return _read_back(file, count)


def _read_back(file: IO[bytes], count: int) -> Iterator[Sent]:
    with file:
        for _ in range(count):
            yield pickle.load(file)


def _made(
    client: Client, spec: DatasetSpec, examples: Iterable[Sent], keep_tokens: bool, options: Any
) -> Iterator[Sent]:
    items = iter(examples)
    step = max(1, min(AT_ONCE, _MOST_TEXTS // len(spec.fields)))
    while batch := [*islice(items, step)]:
        if spec.mode == "gold":
            yield from map(_expanded_gold, batch)
        else:
            yield from _expanded_batch(client, spec, batch, keep_tokens, options)


def _expanded_gold(item: Sent) -> Sent:
    if not isinstance(item, Example):
        return item
    segments = [
        Segment(conllu=format_conllu(map(_expanded_sentence, parse_conllu(segment.conllu or ""))))
        for segment in item.segments
    ]
    return replace(item, segments=tuple(segments))


def _expanded_sentence(sentence: Sentence) -> Sentence:
    return Sentence(
        words=tuple(replace(word, misc=with_spacing(word.misc, [])) for word in sentence.words),
        tokens=tuple(Token(word.form, (word.id,)) for word in sentence.words),
        comments=tuple(
            line for line in sentence.comments if line[1:].partition("=")[0].strip() != "text"
        ),
    )


def _expanded_batch(
    client: Client,
    spec: DatasetSpec,
    batch: Sequence[Sent],
    keep_tokens: bool,
    options: dict[str, Any],
) -> Iterator[Sent]:
    segments = [x for item in batch if isinstance(item, Example) for x in item.segments]
    if not segments:
        yield from batch
        return
    form = "tokens" if spec.mode in TOKEN_MODES else "texts"
    given = [x.text if form == "texts" else list(x.tokens or ()) for x in segments]
    answer = client.parse(**{form: given, "lang": spec.lang, "mode": spec.mode, **options})
    found = iter(answer)
    for item in batch:
        if not isinstance(item, Example):
            yield item
        else:
            yield _with_words(spec, item, [*islice(found, len(item.segments))], keep_tokens)


def _with_words(
    spec: DatasetSpec,
    example: Example,
    found: Sequence[ParsedItem | ItemError],
    keep_tokens: bool,
) -> Example | Rejection:
    parsed = [item for item in found if isinstance(item, ParsedItem)]
    for item in found:
        if isinstance(item, ItemError):
            return Rejection(example.example_id, item.error_type, item.message)
    labels: dict[str, LabelValue | None] = dict(example.labels)
    for label in spec.labels:
        if label.kind == "tags" and labels.get(label.name) is not None:
            item = parsed[spec.fields.index(label.field or spec.fields[0])]
            tags = _tags_of_words(labels[label.name], item)
            if tags is None:
                message = f"the parser found a word that is part of no token that {label.name} tags"
                return Rejection(example.example_id, LabelError.error_type, message)
            shown = _shown(item.parse, keep_tokens)
            labels[label.name] = tuple(tags[word] for _, word in shown)
    segments = tuple(
        Segment(tokens=tuple(form for form, _ in _shown(item.parse, keep_tokens)))
        for item in parsed
    )
    return replace(example, segments=segments, labels=labels)


def _shown(parse: Parse, keep_tokens: bool) -> Iterator[tuple[str, int]]:
    """Forms that a text becomes, each with the index of its tag's word."""
    spans = zip(parse.token_ranges(), parse.token_start, parse.token_end, strict=True)
    for (first, end), start, stop in spans:
        if keep_tokens and end - first > 1:
            yield parse.text[start:stop], first
        for word in range(first, end):
            yield parse.form[word], word


def _tags_of_words(tags: Any, item: ParsedItem) -> tuple[str, ...] | None:
    """Tag of each word's first token; ``None`` if a word has no token."""
    of_word: dict[int, str] = {}
    for tag, words in zip(tags, item.token_words or (), strict=True):
        for word in words:
            of_word.setdefault(word, tag)
    if len(of_word) < item.parse.word_count:
        return None
    return tuple(of_word[word] for word in range(item.parse.word_count))
