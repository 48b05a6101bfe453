"""CoNLL-U with columns that a parser fills; given columns stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from clients.client.results import ItemError
from syntax.errors import MissingHeadError, ParsebankError
from syntax.trees.parse import WORD_COLUMNS, Parse
from syntax.trees.sentence import Sentence, Word
from syntax.trees.tree import DependencyTree

if TYPE_CHECKING:
    from clients.client.client import Client

_AT_ONCE: Final = 64

_UNSPECIFIED: Final = "dep"


def filled(
    client: Client, sentences: Iterable[Sentence], **options: Any
) -> Iterator[Sentence | ParsebankError]:
    """Fill the empty columns (``_``) of sentences with a parser's analysis of their words.

    Words, multiword tokens, empty nodes, DEPS, MISC and comments stay. LEMMA, UPOS and XPOS are
    filled word by word. FEATS of a word may be empty because it has none: they are filled where
    UPOS is empty too, and in sentences without any. HEAD is given for all words of a sentence or
    for none; without it, the parser's tree is taken. With it, an empty DEPREL is ``root`` at the
    root, the parser's relation where it has the same head, and else ``dep``.

    The parser does not see the given columns: its tree follows from its own tags. Sentences with
    nothing to fill are not parsed.

    Returns:
        For each sentence, in order, the whole sentence or the error that it fails with:
        `MissingHeadError` if some of its words have a head and others none, or a relation without
        a head; another `TreeError` if its heads form no tree; or the parser's.
    """
    items = iter(sentences)
    while batch := [*islice(items, _AT_ONCE)]:
        checked = [_checked(sentence) for sentence in batch]
        wanted = [one for one in checked if isinstance(one, Sentence) and _has_gaps(one)]
        parses = iter(_parses(client, wanted, options))
        for one in checked:
            if isinstance(one, Sentence) and _has_gaps(one):
                parse = next(parses)
                yield parse if isinstance(parse, ParsebankError) else _complete(one, parse)
            else:
                yield one


def _checked(sentence: Sentence) -> Sentence | ParsebankError:
    headless = [word.id for word in sentence.words if word.head is None]
    try:
        if not headless:
            DependencyTree([word.head for word in sentence.words], ["_"] * len(sentence.words))
            return sentence
    except ParsebankError as error:
        return error
    related = [word.id for word in sentence.words if word.head is None and word.deprel is not None]
    if len(headless) == len(sentence.words) and not related:
        return sentence
    place = related[0] if related else headless[0]
    return MissingHeadError(
        f"word {place} of sentence {sentence.sent_id!r} has no head, but "
        f"{'a relation' if related else 'other words have one'}; give HEAD for all words of a "
        "sentence, or neither HEAD nor DEPREL for any",
        sent_id=sentence.sent_id,
        word=place,
    )


def _has_gaps(sentence: Sentence) -> bool:
    return any(getattr(word, name) is None for word in sentence.words for name in WORD_COLUMNS)


def _parses(
    client: Client, sentences: Sequence[Sentence], options: dict[str, Any]
) -> list[Parse | ParsebankError]:
    if not sentences:
        return []
    tokens = [[word.form for word in sentence.words] for sentence in sentences]
    answer = client.parse(tokens=tokens, mode="pretokenized", **options)
    return [item.error if isinstance(item, ItemError) else item.parse for item in answer]


def _complete(sentence: Sentence, parse: Parse) -> Sentence:
    has_feats = any(word.feats is not None for word in sentence.words)
    words = [
        _filled_word(word, parse, at, has_feats=has_feats) for at, word in enumerate(sentence.words)
    ]
    return replace(sentence, words=tuple(words))


def _filled_word(word: Word, parse: Parse, at: int, *, has_feats: bool) -> Word:
    found: dict[str, Any] = {
        name: getattr(parse, name)[at]
        for name in ("lemma", "upos", "xpos")
        if getattr(word, name) is None
    }
    if word.feats is None and (word.upos is None or not has_feats):
        found["feats"] = parse.feats[at]
    if word.head is None:
        found |= {"head": parse.head[at], "deprel": parse.deprel[at]}
    elif word.deprel is None:
        found["deprel"] = _relation(word.head, parse.head[at], parse.deprel[at])
    return replace(word, **found)


def _relation(given: int, found: int, relation: str | None) -> str | None:
    if given == 0:
        return "root"
    return relation if given == found else _UNSPECIFIED
