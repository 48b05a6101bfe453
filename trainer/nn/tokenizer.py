"""The tokenizer that lies beside an encoder's weights.

An encoder reads ids. Those of another tokenizer's pieces are numbers like its own, and training on
them goes on without an error, so the two tokenizers are compared before a run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from transformers import AutoTokenizer
from transformers.utils.hub import cached_file

from syntax.errors import SpecError
from syntax.fingerprint import fingerprint
from syntax.tokenizers import special_tokens_of, tokenizer_content

_FILES: Final = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model"),
    *("sentencepiece.bpe.model", "spiece.model"),
)
"""Any of these holds a vocabulary; without one transformers may make a tokenizer of nothing."""

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EncoderTokenizer:
    """A tokenizer as files on this machine have it; ``pieces`` has '' where an id has none."""

    fingerprint: str
    pieces: tuple[str, ...]


def read_tokenizer(name: str) -> EncoderTokenizer | None:
    """The tokenizer in a folder, or of a cached name; the hub is never asked.

    None where there are no files of a tokenizer, or they make none with an identity.
    """
    tokenizer = fast_tokenizer(name)
    return None if tokenizer is None else _identified(tokenizer)


def fast_tokenizer(name: str) -> Any | None:
    """A fast tokenizer of transformers that neither cuts nor pads; else as `read_tokenizer`."""
    try:
        if not any(_on_disk(name, file) for file in _FILES):
            return None
        tokenizer = AutoTokenizer.from_pretrained(name, use_fast=True, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError, RecursionError) as error:
        _LOG.warning("the tokenizer of %s cannot be read: %s", name, error)
        return None
    if not tokenizer.is_fast:
        return None
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def check_tokenizer(encoder: str, fingerprint: str, name: str) -> None:
    """Refuse weights that were trained on other pieces; log where they come without a tokenizer."""
    own = read_tokenizer(encoder)
    if own is None:
        _LOG.warning(
            "%s has no tokenizer on this machine: that it reads pieces of %s (%s) is not checked",
            encoder,
            name,
            fingerprint[:12],
        )
    elif own.fingerprint != fingerprint:
        raise SpecError(
            f"the encoder {encoder} comes with the tokenizer {own.fingerprint[:12]}, and the data "
            f"are of {name} ({fingerprint[:12]}): its weights know other pieces by these ids. "
            f"Backfill with --tokenizer {encoder}, or set model.any_tokenizer=true",
            expected=own.fingerprint,
            found=fingerprint,
        )


def pieces_of(fingerprint: str, names: Sequence[str]) -> tuple[str, ...]:
    """The string of each piece, by id, of a tokenizer that lies under one of ``names``."""
    for name in names:
        found = read_tokenizer(name)
        if found is not None and found.fingerprint == fingerprint:
            return found.pieces
    raise SpecError(
        f"the strings of the pieces of the tokenizer {fingerprint[:12]} are neither in "
        f"{' nor in '.join(names)}; give a model.encoder with the files of the data's tokenizer, "
        "or set model.punctuation=true, which goes by tags"
    )


def _on_disk(name: str, file: str) -> bool:
    found = cached_file(
        name,
        file,
        local_files_only=True,
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return found is not None


def _identified(tokenizer: Any) -> EncoderTokenizer | None:
    backend = tokenizer.backend_tokenizer
    special = special_tokens_of(backend, dict(tokenizer.special_tokens_map))
    if special is None:
        return None
    vocabulary = backend.get_vocab(with_added_tokens=True)
    pieces = [""] * (max(vocabulary.values(), default=-1) + 1)
    for piece, number in vocabulary.items():
        pieces[number] = piece
    return EncoderTokenizer(fingerprint(tokenizer_content(backend, special)), tuple(pieces))
