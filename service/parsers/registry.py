"""The available models, and the choice of one by name or language."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from service.parsers.base import Backend, ModelFile, Parser, ParserIdentity
from service.parsers.discovery import models_in
from service.parsers.files import regular_file, unreadable
from service.parsers.languages import language_code, language_of
from service.parsers.records import card_las
from service.parsers.spacy.backend import SPACY
from service.parsers.stanza.backend import STANZA
from service.parsers.text.backend import TEXT_PARSER
from service.parsers.udpipe.backend import UDPIPE
from service.parsers.udpipe2.backend import UDPIPE_SERVICE
from service.parsers.words.backend import WORD_PARSER
from syntax import Registry
from syntax.errors import ModelLoadError, UnknownLanguageError, UnknownParserError
from syntax.fingerprint import file_sha256
from syntax.registry import unknown_name

if TYPE_CHECKING:
    from service.settings import Settings

BACKENDS: Registry[Backend] = Registry("parser backend", UnknownParserError)
"""Backends by versioned name; a new way to read a library's output is a new version."""

BACKENDS.add("parsebank.v2", TEXT_PARSER)
BACKENDS.add("udpipe.v1", UDPIPE)
BACKENDS.add("stanza.v1", STANZA)
BACKENDS.add("parsebank.v1", WORD_PARSER)
BACKENDS.add("spacy.v1", SPACY)
BACKENDS.add("udpipe2.v1", UDPIPE_SERVICE)


_INDEXES_KEPT: Final = 16


@cache
def bundled_models_dir() -> Path:
    return Path(str(files("service") / "resources" / "models"))


def list_models(settings: Settings) -> list[ModelFile]:
    """Every model, the operator's own first; of two with one name the first counts."""
    return list(_index(settings).models)


def find_parser(settings: Settings, name: str | None = None, lang: str | None = None) -> ModelFile:
    """The model for a parser's name, a language, or both.

    A name is matched without regard to case: exactly (``udpipe/english-ewt``), as a language code
    (``en``, ``eng``), without its backend (``english-ewt``), by its first words (``english``), and
    at last by its first letters. Where several match, the first in `list_models` is taken.

    Raises:
        UnknownParserError: No model answers to the name.
        UnknownLanguageError: No model, or not the named one, serves the language.
    """
    index = _index(settings)
    preferred = {language_code(code): choice for code, choice in settings.parsers.items()}
    if name is None:
        return _for_language(index, settings.lang if lang is None else lang, preferred)
    model = _by_name(index, name, preferred)
    if lang is not None and model.langs and not serves(model, lang):
        raise UnknownLanguageError(
            f"the parser {model.name!r} serves {', '.join(model.langs)}, not {lang!r}; "
            "leave out one of the two",
            name=lang,
            known=list(model.langs),
        )
    return model


def serves(model: ModelFile, lang: str) -> bool:
    return language_code(lang) in map(language_code, model.langs)


def identify(model: ModelFile) -> ParserIdentity:
    """Identity of a model, from its file's checksum; nothing is loaded."""
    if model.problem is not None:
        raise ModelLoadError(model.problem, path=str(model.path))
    found = checksum(model)
    if model.sha256 not in (None, found):
        raise ModelLoadError(
            f"{model.path} has SHA-256 {found}, but {model.sha256} is recorded; "
            "fetch or train the model again",
            path=str(model.path),
            sha256=found,
        )
    backend = BACKENDS[model.backend]
    content = {
        "backend": model.backend,
        "version": backend.version(),
        "model": model.name,
        "sha256": found,
        "options": dict(backend.options),
    }
    facts = {**model.card, "las": card_las(model.card)}
    origin = {fact: str(facts[fact]) for fact in ("treebank", "licence", "las") if facts.get(fact)}
    return ParserIdentity(model.name, model.langs, content, origin)


def checksum(model: ModelFile) -> str:
    """SHA-256 of a model's file; of several files, that of their names and checksums."""
    if not model.parts:
        return _checksum(model.path)
    content = {part.relative_to(model.path).as_posix(): _checksum(part) for part in model.parts}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def load_parser(model: ModelFile, device: str = "auto") -> Parser:
    """Load onto ``auto``, ``cpu`` or ``cuda``, for backends that can use a GPU."""
    return BACKENDS[model.backend].load(model, identify(model), device)


@dataclass(frozen=True)
class _Index:
    """Models, and the first of them under each name and language code."""

    models: tuple[ModelFile, ...]
    names: dict[str, ModelFile]
    short_names: dict[str, ModelFile]
    codes: dict[str, ModelFile]


_indexes: dict[tuple[int, ...], tuple[tuple[tuple[ModelFile, ...], ...], _Index]] = {}
"""Indexes by the ids of the folders' lists, which are kept so that ids stay unique."""


def _index(settings: Settings) -> _Index:
    folders = (settings.models_dir, bundled_models_dir())
    parts = tuple(models_in(folder, BACKENDS) for folder in folders if folder is not None)
    key = tuple(map(id, parts))
    if key not in _indexes:
        if len(_indexes) >= _INDEXES_KEPT:
            _indexes.clear()
        _indexes[key] = (parts, _indexed(parts))
    return _indexes[key][1]


def _indexed(parts: Iterable[Iterable[ModelFile]]) -> _Index:
    found: dict[str, ModelFile] = {}
    for model in chain.from_iterable(parts):
        found.setdefault(model.name, model)
    models = tuple(found.values())
    backwards = [model for model in models[::-1] if not BACKENDS[model.backend].remote]
    # A model of one language answers for it before one of several.
    one_last = sorted(backwards, key=lambda model: len({*map(language_code, model.langs)}) == 1)
    return _Index(
        models,
        {model.name.lower(): model for model in models[::-1]},
        {model.name.lower().partition("/")[2]: model for model in backwards},
        {language_code(code): model for model in one_last for code in model.langs},
    )


def _by_name(index: _Index, name: str, preferred: Mapping[str, str]) -> ModelFile:
    wanted = name.lower()
    if wanted in index.names:
        return index.names[wanted]
    if language_code(wanted) in index.codes:
        return _for_language(index, wanted, preferred)
    if wanted in index.short_names:
        return index.short_names[wanted]
    found = _beginning(index, f"{wanted}-") or (_beginning(index, wanted) if wanted else None)
    if found is None:
        raise unknown_name(
            "parser",
            name,
            [model.name for model in index.models],
            UnknownParserError,
            remedy="`parsebank models list --remote` shows what can be pulled.",
        )
    return found


def _beginning(index: _Index, start: str) -> ModelFile | None:
    for model in index.models:
        name = model.name.lower()
        if BACKENDS[model.backend].remote:
            continue
        if name.startswith(start) or name.startswith(start, name.find("/") + 1):
            return model
    return None


def _for_language(index: _Index, lang: str, preferred: Mapping[str, str]) -> ModelFile:
    code = language_code(lang)
    if choice := preferred.get(code):
        return _by_name(index, choice, {})
    if code not in index.codes:
        known = sorted({known for model in index.models for known in model.langs})
        named = language_of(lang.replace(" ", "_"))
        hint = f" Did you mean {named!r}?" if named else ""
        raise UnknownLanguageError(
            f"no parser serves the language {lang!r}, only {', '.join(known) or 'none'}.{hint} "
            f"`parsebank models list --remote --lang {named or lang}` shows what can be pulled",
            name=lang,
            known=known,
        )
    return index.codes[code]


def _checksum(path: Path) -> str:
    status = regular_file(path)
    try:
        return _checksum_of(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise unreadable(path, error) from None


@lru_cache(maxsize=4096)
def _checksum_of(path: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001 - cache key
    return file_sha256(path)
