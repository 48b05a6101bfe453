"""Checks and parse keys of input texts."""

from __future__ import annotations

import re
from typing import Final

from service.parsers import Limits, ParseInput, ParserIdentity
from service.parsers.languages import language_code
from syntax.errors import (
    EmptyTextError,
    EmptyTokenError,
    InvalidCharacterError,
    SentenceTooLongError,
    SpecError,
    TextTooLongError,
)
from syntax.examples import TOKEN_MODES
from syntax.fingerprint import fingerprint
from syntax.fingerprint import parse_key as key_of

FORBIDDEN: Final = re.compile("[\0\ud800-\udfff]")
"""NUL, at which UDPipe silently cuts a text, and lone surrogates, on which it fails."""


def parse_key(parser: ParserIdentity, lang: str, item: ParseInput, limits: Limits) -> str:
    """Key of a parse, equal for all codes of a language. With given tags, no store has it."""
    key = key_of(
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
    """Reject input that no parser can read; each fault has an `InputError` of its own.

    White space inside a token is part of the word, as UD allows. A sentence of too many tokens is
    refused before it is queued, if the parser joins none and long sentences are refused.
    """
    if (item.mode in TOKEN_MODES) != (item.tokens is not None):
        raise SpecError(
            f"mode {item.mode!r} came with {'text' if item.tokens is None else 'tokens'}; "
            f"modes {', '.join(TOKEN_MODES)} take tokens, the others take text",
            mode=item.mode,
        )
    if item.characters > limits.max_chars_per_text:
        raise TextTooLongError(
            f"the text has {item.characters} characters; at most {limits.max_chars_per_text} "
            "are accepted. Split it at paragraphs, or raise max_chars_per_text",
            characters=item.characters,
            limit=limits.max_chars_per_text,
        )
    if found := FORBIDDEN.search(item.joined):
        code = f"U+{ord(found[0]):04X}"
        raise InvalidCharacterError(
            f"the text holds {code} at character {found.start()}; NUL and lone surrogates are no "
            "text. Remove it, or replace it by U+FFFD to keep offsets",
            character=code,
            position=found.start(),
        )
    if item.tokens is not None:
        _check_tokens(item, item.tokens, limits.max_words_per_sentence)
    elif not item.joined.strip():
        raise EmptyTextError("the text is empty or only white space; send at least one word")


def _check_tokens(item: ParseInput, tokens: tuple[str, ...], limit: int) -> None:
    if item.tags is None:  # else UDPipe itself found them, and took them for words
        if not tokens:
            raise EmptyTextError("there are no tokens; send at least one")
        for position, token in enumerate(tokens):
            if not token.strip():
                raise EmptyTokenError(
                    f"token {position} is {token!r}; leave out tokens without a visible character",
                    position=position,
                )
    given = item.mode in ("pretokenized", "tokens_mwt")
    if given and item.long_sentences == "refuse" and len(tokens) > limit:
        raise SentenceTooLongError(
            f"the sentence has {len(tokens)} tokens; at most {limit} are parsed. Split it, raise "
            "max_words_per_sentence, or ask for `long_sentences=split`",
            words=len(tokens),
            limit=limit,
        )
