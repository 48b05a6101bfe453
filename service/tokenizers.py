"""Fast Hugging Face tokenizers, by name or path, identified by their content.

``transformers``, slow to import, reads only those of its rarer classes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import tokenizers
from numpy.typing import NDArray

from service.parsers.files import regular_file
from service.tokenizer_classes import (
    SPECIAL_NAMES,
    is_plain_bert,
    make_class,
    read_bert,
    read_tokenizer_file,
)
from syntax import Fingerprint, fingerprint
from syntax.batches import SpecialTokens
from syntax.errors import ModelLoadError, TokenizerOffsetsError, UnknownTokenizerError
from syntax.registry import unknown_name
from syntax.tokenizers import special_tokens_of, tokenizer_content

Int32 = NDArray[np.int32]

PieceArrays = tuple[Int32, Int32]
"""Piece ids, *shape* (L,), and character offsets into the text, *shape* (L, 2)."""

_HUB_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
_PLAIN_CLASSES: Final = ("PreTrainedTokenizerFast", "TokenizersBackend")
_WAYS: Final = (
    "Give a folder that holds tokenizer.json or vocab.txt, or a name that is in the Hugging Face "
    "cache or reachable on the hub."
)

_PROBES: Final = (
    "The 13 quick brown foxes (two of them) don't jump, do they?",
    "Zoë's naïve café: déjà vu - über Łódź, ¿señor?",
    "Мама мыла раму. שלום עולם! 我喜欢猫。ภาษาไทย",
)


@dataclass(frozen=True)
class LoadedTokenizer:
    """A fast tokenizer without truncation, padding or special tokens.

    Attributes:
        fingerprint: Fingerprint of ``content``; equal under all names.
        content: SHA-256 of the canonical ``tokenizer.json`` and the special tokens.
        folder: Where it was read, unless it is bundled or from the hub.
    """

    name: str
    fingerprint: Fingerprint
    content: dict[str, Any] = field(hash=False)
    special_tokens: SpecialTokens
    _backend: Any = field(repr=False, compare=False)
    folder: Path | None = field(default=None, compare=False)

    @property
    def lasting_name(self) -> str:
        return lasting_name(self.name, self.folder)

    def unknown(self) -> tuple[int, str] | None:
        """Id and name of the token for unknown text, such as ``(100, "[UNK]")``."""
        number = self.special_tokens.unk_id
        return None if number is None else (number, self._backend.id_to_token(number))

    def save(self, path: Path) -> None:
        self._backend.save(str(path))

    def encode(self, text: str) -> PieceArrays:
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[PieceArrays]:
        """Encode texts while other threads run."""
        return [
            (
                np.array(encoding.ids, dtype=np.int32),
                np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2),
            )
            for encoding in self._backend.encode_batch(texts, add_special_tokens=False)
        ]

    def encode_flat(self, texts: Sequence[str]) -> tuple[Int32, Int32, list[int]]:
        """Ids, *shape* (N,), offsets, *shape* (N, 2), and numbers of pieces of all texts."""
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        ids = [encoding.ids for encoding in encodings]
        spans = chain.from_iterable(encoding.offsets for encoding in encodings)
        return (
            np.fromiter(chain.from_iterable(ids), np.int32),
            np.fromiter(chain.from_iterable(spans), np.int32).reshape(-1, 2),
            [*map(len, ids)],
        )


def lasting_name(name: str, folder: Path | None) -> str:
    """Name of a tokenizer for other processes: the path of its folder, if it has one."""
    return name if folder is None else str(folder.resolve())


def load_tokenizer(name_or_path: str, hub_timeout_seconds: float = 5.0) -> LoadedTokenizer:
    """Load a bundled tokenizer, a folder, or one from the Hugging Face hub or its cache."""
    folder = bundled_tokenizers().get(name_or_path) or find_folder(name_or_path)
    return read_tokenizer(name_or_path, folder, hub_timeout_seconds)


def read_tokenizer(
    name: str, folder: Path | None, hub_timeout_seconds: float, *, offline: bool = False
) -> LoadedTokenizer:
    """Read a tokenizer from its folder; without one, from the hub or (``offline``) only its cache.

    Raises:
        UnknownTokenizerError: It is not there, cannot be read or is not a fast one, or the hub
            does not answer.
        TokenizerOffsetsError: Its offsets cannot be aligned with words.
    """
    if folder is None:
        backend, special_names = _from_hub(name, hub_timeout_seconds, offline=offline)
    else:
        backend, special_names = _read_folder(name, folder)
    backend.no_truncation()
    backend.no_padding()
    fault = _offsets_fault(backend)
    if fault is not None:
        raise TokenizerOffsetsError(
            f"the offsets of the tokenizer {name!r} cannot be aligned with words: {fault}. "
            "Switch off add_prefix_space or trim_offsets in its tokenizer.json, give its model an "
            "unk_token, or use another tokenizer"
        )
    special = special_tokens_of(backend, special_names)
    if special is None:
        reason = "its special tokens are not of the form prefix A separator B suffix"
        raise unknown_tokenizer(name, reason)
    content = tokenizer_content(backend, special)
    own = None if name in bundled_tokenizers() else folder
    return LoadedTokenizer(name, fingerprint(content), content, special, backend, own)


@cache
def bundled_tokenizers() -> dict[str, Path]:
    folder = Path(str(resources.files("service") / "resources" / "tokenizers"))
    return {path.parent.name: path.parent for path in sorted(folder.glob("*/tokenizer.json"))}


def is_hub_name(name: str) -> bool:
    return _HUB_NAME.fullmatch(name) is not None


def _read_folder(name: str, folder: Path) -> tuple[Any, Mapping[str, str]]:
    """The Rust tokenizer and the names of its special tokens by role (``pad_token``...)."""
    try:
        # Libraries open files with the interpreter's lock held: one that waits for a pipe's other
        # end would stop every thread of the service.
        for path in sorted(folder.iterdir()):
            if path.exists() and not path.is_dir():
                regular_file(path)
        return _read_files(name, folder)
    except (OSError, ValueError, ModelLoadError) as error:
        raise unknown_tokenizer(name, _first_line(error)) from None


def _read_files(name: str, folder: Path) -> tuple[Any, Mapping[str, str]]:
    config = read_tokenizer_file(folder / "tokenizer_config.json")
    if (folder / "tokenizer.json").exists():
        if config.get("tokenizer_class") in _PLAIN_CLASSES:
            return _read_tokenizer_json(name, folder), _special_names(config)
        backend = _read_tokenizer_json(name, folder)
        special_names = make_class(backend, folder, config)
        if special_names is not None:
            return backend, special_names
    elif is_plain_bert(folder, config):
        return _read_vocabulary(name, folder, config), SPECIAL_NAMES
    return _through_transformers(name, str(folder), offline=True)


def _from_hub(name: str, timeout: float, *, offline: bool) -> tuple[Any, Mapping[str, str]]:
    """Read a file that the cache holds there, without asking the hub."""
    folder = _cached_folder(name)
    if folder is not None:
        return _read_folder(name, folder)
    _require_on_hub(name, timeout, offline=offline)
    return _through_transformers(name, name, offline=offline)


def find_folder(name: str) -> Path | None:
    """Folder of a name; ``None`` if it can only be on the hub."""
    try:
        path = Path(name).expanduser()
        is_folder = bool(name) and path.is_dir()
    except (ValueError, RuntimeError, OSError):
        raise unknown_tokenizer(name, "it is neither a name nor a path") from None
    if is_folder:
        return path
    if not is_hub_name(name):
        raise unknown_tokenizer(name, "there is no such folder")
    return None


def _read_tokenizer_json(name: str, folder: Path) -> Any:
    path = folder / "tokenizer.json"
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise unknown_tokenizer(name, f"{path} cannot be read ({error})") from None


def _read_vocabulary(name: str, folder: Path, config: dict[str, Any]) -> Any:
    try:
        return read_bert(folder, config)
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise unknown_tokenizer(
            name, f"its vocab.txt cannot be read ({_first_line(error)})"
        ) from None


def _special_names(config: dict[str, Any]) -> dict[str, str]:
    names = {role: value for role, value in config.items() if role.endswith("_token") and value}
    contents = {
        role: value.get("content") if isinstance(value, dict) else value
        for role, value in names.items()
    }
    return {role: value for role, value in contents.items() if isinstance(value, str)}


def _through_transformers(name: str, source: str, *, offline: bool) -> tuple[Any, dict[str, str]]:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True, local_files_only=offline)
    except (OSError, ValueError, KeyError, ImportError, RecursionError) as error:
        raise unknown_tokenizer(name, f"it cannot be loaded ({_first_line(error)})") from None
    if not tokenizer.is_fast:
        raise unknown_tokenizer(
            name, "it has no fast version, and only those give character offsets"
        )
    return tokenizer.backend_tokenizer, dict(tokenizer.special_tokens_map)


def _require_on_hub(name: str, timeout: float, *, offline: bool) -> None:
    """Ask the hub once: loading would retry for minutes on a machine without a network."""
    files = ("tokenizer_config.json", "tokenizer.json", "vocab.txt")
    if any(isinstance(_look_up(name, file), str) for file in files):
        return
    if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        how = "PARSEBANK_OFFLINE" if offline else "HF_HUB_OFFLINE"
        raise unknown_tokenizer(name, f"it is not in the cache, and {how} forbids the hub")
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=timeout)
    except Exception as error:  # every network, proxy and HTTP failure has its own class
        raise unknown_tokenizer(
            name, f"it is not cached, and the hub said: {_first_line(error)}"
        ) from None


def _cached_folder(name: str) -> Path | None:
    path = _look_up(name, "tokenizer.json")
    known = all(_look_up(name, file) for file in ("tokenizer_config.json", "config.json"))
    return Path(path).parent if isinstance(path, str) and known else None


def _look_up(name: str, file: str) -> Any:
    from huggingface_hub import try_to_load_from_cache

    try:
        return try_to_load_from_cache(name, file)
    except ValueError:  # the name cannot be one on the hub
        return None


def unknown_tokenizer(name: str, reason: str, ways: str = _WAYS) -> UnknownTokenizerError:
    error = unknown_name("tokenizer", name, bundled_tokenizers(), UnknownTokenizerError)
    message = f"{error.message} For {name!r}: {reason}. {ways}"
    return UnknownTokenizerError(message, **error.detail)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _offsets_fault(backend: Any) -> str | None:
    """Describe the first character offset of probes that cannot be aligned with words.

    Words and pieces are joined by the characters that both cover (`syntax.alignment`), so offsets
    must lie in the text, come in order, and cover what the pieces show. Else features would be
    wrong in silence: a pre-tokenizer that adds spaces, with a post-processor that trims them, cuts
    off a character of each word; a BPE model that drops unknown characters counts on as if they had
    not been there; old libraries give words of an `ignore_merges` vocabulary an empty span.

    Allowed are: several pieces of one character (bytes), one piece for several words, an empty span
    for white space alone, a leading space within the span, characters that the normalizer drops.
    """
    for text in _PROBES:
        encoding = backend.encode(text, add_special_tokens=False)
        fault = _span_fault(backend, text, encoding.ids, encoding.offsets)
        if fault is not None:
            return f"{fault} in {text!r}"
    return None


def _span_fault(
    backend: Any, text: str, ids: Sequence[int], offsets: Sequence[tuple[int, int]]
) -> str | None:
    covered: set[int] = set()
    last = (0, 0)
    for piece, (start, end) in zip(ids, offsets, strict=True):
        span = f"the span of the piece {backend.id_to_token(piece)!r} is {start} to {end}"
        if not 0 <= start <= end <= len(text):
            return f"{span}, outside the text"
        if start == end:
            if any(map(str.isalnum, backend.decode([piece]))):
                return f"{span}, which is empty,"
            continue
        if start < last[0] or end < last[1]:
            return f"{span}, before that of the piece ahead of it,"
        last = start, end
        covered.update(range(start, end))
    shown = backend.decode(ids).casefold()
    for place, character in enumerate(text):
        if place not in covered and not character.isspace() and character.casefold() in shown:
            return f"no piece covers the character {place} ({character!r})"
    return None
