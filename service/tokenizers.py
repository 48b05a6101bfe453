"""Fast Hugging Face tokenizers, by name or path, identified by their content.

``transformers`` takes seconds to import, so it is imported only for tokenizers that need one of
its classes; a plain ``tokenizer.json`` is read by ``tokenizers`` alone, to the same result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import tokenizers
from numpy.typing import NDArray

from service.wordpiece import SPECIAL_NAMES, is_plain_bert, read_bert
from syntax import Fingerprint, fingerprint
from syntax.assembly import SpecialTokens
from syntax.errors import UnknownTokenizerError
from syntax.registry import unknown_name
from syntax.strict_json import parse_json
from syntax.tokenizers import special_tokens_of, tokenizer_content

Int32 = NDArray[np.int32]

Pieces = tuple[Int32, Int32]
"""Piece ids, *shape* (L,), and character offsets into the text, *shape* (L, 2)."""

_HUB_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")
_PLAIN_CLASSES: Final = ("PreTrainedTokenizerFast", "TokenizersBackend")

KEPT_TOKENIZERS: Final = 3
"""Large vocabularies take half a second to read, and some 50 MB each."""


@dataclass(frozen=True)
class LoadedTokenizer:
    """A fast tokenizer without truncation, padding or special tokens; those come at load.

    Attributes:
        name: As it was asked for.
        fingerprint: Of ``content``; equal tokenizers share it, whatever they are called.
        content: SHA-256 of the canonical ``tokenizer.json`` and the special tokens.
        special_tokens: Where special tokens go around one text and between two.
    """

    name: str
    fingerprint: Fingerprint
    content: dict[str, Any] = field(hash=False)
    special_tokens: SpecialTokens
    _backend: Any = field(repr=False, compare=False)

    def encode(self, text: str) -> Pieces:
        """Pieces of one text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Pieces]:
        """Pieces of each text; other threads run meanwhile."""
        return [
            _pieces(encoding)
            for encoding in self._backend.encode_batch(texts, add_special_tokens=False)
        ]

    def encode_flat(self, texts: Sequence[str]) -> tuple[Int32, Int32, list[int]]:
        """As `encode_batch`, with the pieces of all texts (N) one after the other.

        Returns:
            Their ids, *shape* (N,); their offsets, *shape* (N, 2); how many each text has.
        """
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        ids = [encoding.ids for encoding in encodings]
        spans = chain.from_iterable(encoding.offsets for encoding in encodings)
        return (
            np.fromiter(chain.from_iterable(ids), np.int32),
            np.fromiter(chain.from_iterable(spans), np.int32).reshape(-1, 2),
            [*map(len, ids)],
        )


def load_tokenizer(name_or_path: str, hub_timeout_seconds: float = 5.0) -> LoadedTokenizer:
    """Load a bundled tokenizer, a folder, or one from the Hugging Face hub or its cache.

    Args:
        name_or_path: ``parsebank-wordpiece-en``, a folder, or a name on the hub.
        hub_timeout_seconds: How long to wait for the hub's first answer.

    Raises:
        UnknownTokenizerError: There is no such tokenizer, it cannot be read, it is not a fast
            one, or the hub does not answer.
    """
    backend, special_names = _load_backend(name_or_path, hub_timeout_seconds)
    backend.no_truncation()
    backend.no_padding()
    special = special_tokens_of(backend, special_names)
    if special is None:
        reason = "its special tokens are not of the form prefix A separator B suffix"
        raise _unknown(name_or_path, reason)
    content = tokenizer_content(backend, special)
    return LoadedTokenizer(name_or_path, fingerprint(content), content, special, backend)


def kept_tokenizer(name_or_path: str, hub_timeout_seconds: float = 5.0) -> LoadedTokenizer:
    """As `load_tokenizer`, but one whose files are as they were is not read again.

    Raises:
        UnknownTokenizerError: As `load_tokenizer`.
    """
    return _kept(name_or_path, hub_timeout_seconds, _state(name_or_path))


@lru_cache(maxsize=KEPT_TOKENIZERS)
def _kept(name: str, timeout: float, _state: tuple[object, ...]) -> LoadedTokenizer:
    return load_tokenizer(name, timeout)


def _state(name: str) -> tuple[object, ...]:
    """What changes with the files of a folder."""
    folder = bundled_tokenizers().get(name) or _local_folder(name)
    if folder is None:
        return ()
    files = ((path.name, path.stat()) for path in sorted(folder.iterdir()))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in files)


def bundled_tokenizers() -> dict[str, Path]:
    """The tokenizers that ship with Parsebank."""
    folder = Path(str(files("service") / "resources" / "tokenizers"))
    return {path.parent.name: path.parent for path in sorted(folder.glob("*/tokenizer.json"))}


def lasting_name(name_or_path: str) -> str:
    """A tokenizer's folder as a path that means the same to another process; else the name."""
    try:
        path = Path(name_or_path).expanduser()
        return str(path.resolve()) if path.is_dir() else name_or_path
    except (ValueError, RuntimeError, OSError):
        return name_or_path


def _load_backend(name: str, timeout: float) -> tuple[Any, dict[str, str]]:
    """The Rust tokenizer and the names of its special tokens by role (``pad_token``...)."""
    folder = bundled_tokenizers().get(name) or _local_folder(name)
    if folder is None:
        _require_on_hub(name, timeout)
        return _through_transformers(name, name)
    config = _read_config(name, folder)
    if config.get("tokenizer_class") in _PLAIN_CLASSES and (folder / "tokenizer.json").exists():
        return _read_tokenizer_json(name, folder), _special_names(config)
    if is_plain_bert(folder, config):
        return _read_vocabulary(name, folder, config), SPECIAL_NAMES
    return _through_transformers(name, str(folder))


def _local_folder(name: str) -> Path | None:
    """The folder of this name; ``None`` if it can only be a name on the hub."""
    try:
        path = Path(name).expanduser()
        is_folder = bool(name) and path.is_dir()
    except (ValueError, RuntimeError, OSError):
        raise _unknown(name, "it is neither a name nor a path") from None
    if is_folder:
        return path
    if _HUB_NAME.fullmatch(name) is None:
        raise _unknown(name, "there is no such folder")
    return None


def _read_config(name: str, folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    if not path.exists():
        return {}
    try:
        config = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _unknown(name, f"{path} is not JSON ({error})") from None
    return config if isinstance(config, dict) else {}


def _read_tokenizer_json(name: str, folder: Path) -> Any:
    path = folder / "tokenizer.json"
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise _unknown(name, f"{path} cannot be read ({error})") from None


def _read_vocabulary(name: str, folder: Path, config: dict[str, Any]) -> Any:
    try:
        return read_bert(folder, config)
    except Exception as error:  # the library raises bare Exception for an unreadable file
        raise _unknown(name, f"its vocab.txt cannot be read ({_first_line(error)})") from None


def _special_names(config: dict[str, Any]) -> dict[str, str]:
    """Special tokens of ``tokenizer_config.json``, where each is a string or an object."""
    names = {role: value for role, value in config.items() if role.endswith("_token") and value}
    contents = {
        role: value.get("content") if isinstance(value, dict) else value
        for role, value in names.items()
    }
    return {role: value for role, value in contents.items() if isinstance(value, str)}


def _through_transformers(name: str, source: str) -> tuple[Any, dict[str, str]]:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, use_fast=True)
    except (OSError, ValueError, KeyError, ImportError, RecursionError) as error:
        raise _unknown(name, f"it cannot be loaded ({_first_line(error)})") from None
    if not tokenizer.is_fast:
        raise _unknown(name, "it has no fast version, and only those give character offsets")
    return tokenizer.backend_tokenizer, dict(tokenizer.special_tokens_map)


def _require_on_hub(name: str, timeout: float) -> None:
    """Ask the hub once, briefly, unless its cache already has the tokenizer.

    Loading would retry for minutes on a machine without a network.
    """
    if _is_cached(name):
        return
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise _unknown(name, "it is not in the cache, and HF_HUB_OFFLINE forbids the hub")
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=timeout)
    except Exception as error:  # every network, proxy and HTTP failure has its own class
        raise _unknown(name, f"it is not cached, and the hub said: {_first_line(error)}") from None


def _is_cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    names = ("tokenizer_config.json", "tokenizer.json", "vocab.txt")
    return any(isinstance(try_to_load_from_cache(name, file), str) for file in names)


def _unknown(name: str, reason: str) -> UnknownTokenizerError:
    error = unknown_name("tokenizer", name, bundled_tokenizers(), UnknownTokenizerError)
    message = (
        f"{error.message} For {name!r}: {reason}. Give a folder that holds tokenizer.json or "
        "vocab.txt, or a name that is in the Hugging Face cache or reachable on the hub."
    )
    return UnknownTokenizerError(message, **error.detail)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _pieces(encoding: Any) -> Pieces:
    ids = np.array(encoding.ids, dtype=np.int32)
    offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
    return ids, offsets
