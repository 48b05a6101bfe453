"""Which models there are, and which of them answers to a name or a language."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from service.parsers.base import Backend, ModelFile, Parser, ParserIdentity
from service.parsers.udpipe.backend import UDPIPE
from service.settings import Settings
from syntax import Registry
from syntax.errors import ModelLoadError, UnknownLanguageError, UnknownParserError
from syntax.fingerprint import file_sha256
from syntax.registry import unknown_name

BACKENDS: Registry[Backend] = Registry("parser backend", UnknownParserError)
"""Backends by versioned name; a new way to read a library's output is a new version."""

BACKENDS.add("udpipe.v1", UDPIPE)


def bundled_models_dir() -> Path:
    """Folder of the models that ship with Parsebank."""
    return Path(str(files("service") / "resources" / "models"))


def list_models(settings: Settings) -> list[ModelFile]:
    """Every model, the operator's own first; of two with one name the first counts.

    Raises:
        ModelLoadError: A card is not readable JSON.
    """
    folders = [settings.models_dir, bundled_models_dir()]
    found: dict[str, ModelFile] = {}
    for folder in folders:
        if folder is not None and folder.is_dir():
            for model in _models_in(folder, folder.stat().st_mtime_ns):
                found.setdefault(model.name, model)
    return list(found.values())


def find_parser(settings: Settings, name: str | None = None, lang: str | None = None) -> ModelFile:
    """The model for a parser's name, a language, or both.

    A name is matched exactly (``udpipe/english-ewt`` or ``english-ewt``), else as a prefix
    (``english``), else as a language code (``en``).

    Args:
        settings: Says where models are and which one a language prefers.
        name: Parser as the caller names it.
        lang: ISO code; the settings' default when there is no name either.

    Raises:
        UnknownParserError: No model answers to the name.
        UnknownLanguageError: No model, or not the named one, serves the language.
    """
    models = list_models(settings)
    if name is None:
        return _for_language(settings, models, settings.lang if lang is None else lang)
    model = _by_name(settings, models, name)
    if lang is not None and model.langs and lang not in model.langs:
        raise UnknownLanguageError(
            f"the parser {model.name!r} serves {', '.join(model.langs)}, not {lang!r}; "
            "leave out one of the two",
            name=lang,
            known=list(model.langs),
        )
    return model


def identify(model: ModelFile) -> ParserIdentity:
    """The identity of a model, from its file's checksum; nothing is loaded.

    Raises:
        ModelLoadError: The file is missing or differs from the checksum in its card.
    """
    found = checksum(model)
    if model.sha256 not in (None, found):
        raise ModelLoadError(
            f"{model.path} has SHA-256 {found}, but its card says {model.sha256}; "
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
    return ParserIdentity(model.name, model.langs, content)


def checksum(model: ModelFile) -> str:
    """SHA-256 of a model's file; of several files, that of their names and checksums.

    Raises:
        ModelLoadError: A file is missing.
    """
    if not model.parts:
        return _checksum(model.path)
    content = {part.relative_to(model.path).as_posix(): _checksum(part) for part in model.parts}
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def load_parser(model: ModelFile, device: str = "auto") -> Parser:
    """Load a model into this process.

    Args:
        model: The model.
        device: ``auto``, ``cpu`` or ``cuda``, for backends that can use a GPU.

    Raises:
        ModelLoadError: The file is missing, corrupt, or not the one that its card describes.
    """
    return BACKENDS[model.backend].load(model, identify(model), device)


@lru_cache(maxsize=16)
def _models_in(folder: Path, mtime_ns: int) -> tuple[ModelFile, ...]:  # noqa: ARG001 - cache key
    """The models of a folder, read again when a file has come or gone."""
    return tuple(model for backend in BACKENDS.values() for model in backend.find(folder))


def _by_name(settings: Settings, models: list[ModelFile], name: str) -> ModelFile:
    for model in models:
        if name in (model.name, _short(model)):
            return model
    for model in models:
        if name and (model.name.startswith(name) or _short(model).startswith(name)):
            return model
    if any(name in model.langs for model in models):
        return _for_language(settings, models, name)
    raise unknown_name("parser", name, [model.name for model in models], UnknownParserError)


def _short(model: ModelFile) -> str:
    """The name without its backend's."""
    return model.name.partition("/")[2]


def _for_language(settings: Settings, models: list[ModelFile], lang: str) -> ModelFile:
    if preferred := settings.parsers.get(lang):
        return _by_name(settings, [m for m in models if preferred != lang], preferred)
    for model in models:
        if lang in model.langs:
            return model
    known = {code for model in models for code in model.langs}
    raise unknown_name("language", lang, known, UnknownLanguageError)


def _checksum(path: Path) -> str:
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise ModelLoadError(f"the model file {path} is missing", path=str(path)) from None
    return _checksum_of(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _checksum_of(path: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001 - cache key
    return file_sha256(path)
