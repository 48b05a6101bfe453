"""Checks and identity of what comes in, before any parser sees it."""

from __future__ import annotations

import re
from typing import Any, Final

from service.parsers import Limits, ParseInput, ParserIdentity
from service.parsers.base import TOKEN_MODES
from syntax import fingerprint
from syntax.errors import (
    EmptyTextError,
    EmptyTokenError,
    InvalidCharacterError,
    SentenceTooLongError,
    SpecError,
    TextTooLongError,
)

_FORBIDDEN: Final = re.compile("[\0\ud800-\udfff]")


def parse_key(parser: ParserIdentity, lang: str, item: ParseInput) -> str:
    """The key of a parse: parser, language, input mode and the text's exact bytes.

    Tokens count as they are, so ``("New York",)`` and ``("New", "York")`` differ.
    """
    content: dict[str, Any] = {"parser": parser.fingerprint, "lang": lang, "mode": item.mode}
    if item.tokens is not None:
        content["tokens"] = list(item.tokens)
    else:
        content["text"] = item.text
    if item.long_sentences != "refuse":
        content["long_sentences"] = item.long_sentences
    return fingerprint(content)


def check_input(item: ParseInput, limits: Limits) -> None:
    """Reject what no parser can read as it stands.

    UDPipe would cut the text at a NUL without a word, and fail on a lone surrogate.

    Raises:
        SpecError: The mode and the form of the input contradict each other.
        TextTooLongError: More characters than the limit.
        EmptyTextError: Nothing but white space, or no tokens.
        InvalidCharacterError: NUL or a lone surrogate.
        EmptyTokenError: A token that is empty or white space. White space inside a token is
            part of the word, as UD allows.
        SentenceTooLongError: More tokens than the limit.
    """
    _check_form(item)
    _check_size(item, limits)
    _check_characters(item.joined)
    if item.tokens is not None:
        _check_tokens(item.tokens, limits.max_words_per_sentence)
    elif not item.joined.strip():
        raise EmptyTextError("the text is empty or only white space; send at least one word")


def _check_form(item: ParseInput) -> None:
    if (item.mode in TOKEN_MODES) != (item.tokens is not None):
        raise SpecError(
            f"mode {item.mode!r} came with {'text' if item.tokens is None else 'tokens'}; "
            "modes 'pretokenized' and 'retokenize' take tokens, the others take text",
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


def _check_tokens(tokens: tuple[str, ...], limit: int) -> None:
    if not tokens:
        raise EmptyTextError("there are no tokens; send at least one")
    for position, token in enumerate(tokens):
        if not token.strip():
            raise EmptyTokenError(
                f"token {position} is {token!r}; leave out tokens without a visible character",
                position=position,
            )
    if len(tokens) > limit:
        raise SentenceTooLongError(
            f"the sentence has {len(tokens)} tokens; at most {limit} are parsed. Split it, or "
            "raise max_words_per_sentence",
            words=len(tokens),
            limit=limit,
        )
