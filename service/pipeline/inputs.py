"""Checks and parse keys of input texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from service.parsers import Limits, ParseInput, ParserIdentity
from service.parsers.languages import language_code
from syntax import fingerprint, keys
from syntax.errors import (
    EmptyTextError,
    EmptyTokenError,
    InvalidCharacterError,
    SentenceTooLongError,
    SpecError,
    TextTooLongError,
)
from syntax.examples import TOKEN_MODES

_FORBIDDEN: Final = re.compile("[\0\ud800-\udfff]")


def parse_key(parser: ParserIdentity, lang: str, item: ParseInput, limits: Limits) -> str:
    """The key of a parse; all ISO 639 codes of a language give the same key.

    With given tags, it is one that no store has.
    """
    key = keys.parse_key(
        parser.fingerprint,
        language_code(lang),
        item.mode,
        item.text,
        item.tokens,
        item.long_sentences,
        limits.max_words_per_sentence,
    )
    return key if item.tags is None else fingerprint({"parse": key, "tags": item.tags})


def check_input(item: ParseInput, limits: Limits) -> None:
    """Reject input that no parser can read.

    UDPipe silently cuts a text at NUL, and fails on a lone surrogate.

    Raises:
        SpecError: The mode and the form of the input contradict each other.
        TextTooLongError: More characters than the limit.
        EmptyTextError: Only white space, or no tokens.
        InvalidCharacterError: NUL or a lone surrogate.
        EmptyTokenError: A token that is empty or white space. White space inside a token is
            part of the word, as UD allows.
        SentenceTooLongError: More tokens than the limit, if the parser joins none and long
            sentences are refused.
    """
    _check_form(item)
    _check_size(item, limits)
    _check_characters(item.joined)
    if item.tokens is not None:
        if item.tags is None:  # else UDPipe itself found them, and took them for words
            _check_tokens(item.tokens)
        _check_length(item, limits.max_words_per_sentence)
    elif not item.joined.strip():
        raise EmptyTextError("the text is empty or only white space; send at least one word")


def check_labels(items: Sequence[ParseInput], token_labels: Sequence[Sequence[str]] | None) -> None:
    """Check that labels match the tokens one to one."""
    if token_labels is None:
        return
    if any(item.tokens is None for item in items):
        raise SpecError("token_labels came with texts; labels go with tokens")
    if len(token_labels) != len(items):
        raise SpecError(
            f"{len(token_labels)} lists of labels came with {len(items)} lists of tokens; give "
            "one for each"
        )
    for at, (item, labels) in enumerate(zip(items, token_labels, strict=True)):
        if len(labels) != len(item.tokens or ()):
            raise SpecError(
                f"token_labels[{at}] has {len(labels)} labels for the {len(item.tokens or ())} "
                f"tokens of tokens[{at}]; give one label per token",
                position=at,
            )
        if _FORBIDDEN.search("".join(labels)):
            raise SpecError(
                f"token_labels[{at}] holds NUL or a lone surrogate, which no answer can carry; "
                "give labels such as B-PER",
                position=at,
            )


def _check_form(item: ParseInput) -> None:
    if (item.mode in TOKEN_MODES) != (item.tokens is not None):
        raise SpecError(
            f"mode {item.mode!r} came with {'text' if item.tokens is None else 'tokens'}; "
            f"modes {', '.join(TOKEN_MODES)} take tokens, the others take text",
            mode=item.mode,
        )


def _check_size(item: ParseInput, limits: Limits) -> None:
    if item.characters > limits.max_chars_per_text:
        raise TextTooLongError(
            f"the text has {item.characters} characters; at most {limits.max_chars_per_text} "
            "are accepted. Split it at paragraphs, or raise max_chars_per_text",
            characters=item.characters,
            limit=limits.max_chars_per_text,
        )


def _check_characters(text: str) -> None:
    if found := _FORBIDDEN.search(text):
        code = f"U+{ord(found[0]):04X}"
        raise InvalidCharacterError(
            f"the text holds {code} at character {found.start()}; NUL and lone surrogates are no "
            "text. Remove it, or replace it by U+FFFD to keep offsets",
            character=code,
            position=found.start(),
        )


def _check_tokens(tokens: tuple[str, ...]) -> None:
    if not tokens:
        raise EmptyTextError("there are no tokens; send at least one")
    for position, token in enumerate(tokens):
        if not token.strip():
            raise EmptyTokenError(
                f"token {position} is {token!r}; leave out tokens without a visible character",
                position=position,
            )


def _check_length(item: ParseInput, limit: int) -> None:
    """Refuse a sentence that the parser would refuse, before it is queued."""
    words = len(item.tokens or ())
    given = item.mode in ("pretokenized", "tokens_mwt")
    if given and item.long_sentences == "refuse" and words > limit:
        raise SentenceTooLongError(
            f"the sentence has {words} tokens; at most {limit} are parsed. Split it, raise "
            "max_words_per_sentence, or ask for `long_sentences=split`",
            words=words,
            limit=limit,
        )
