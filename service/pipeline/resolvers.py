"""Resolves the parser and tokenizer names of requests."""

from __future__ import annotations

import asyncio
import os

from service.parsers import ModelFile, ParserIdentity, find_parser, identify
from service.parsers.languages import language_code
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from service.tokenizers import LoadedTokenizer
from syntax.errors import ParsebankError

Choice = tuple[ModelFile, ParserIdentity, str]


class ParserResolver:
    """Resolves parser names and languages. Safe for threads.

    The model files are checked at each call (10 µs), so that a model can be added or replaced.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read: dict[ModelFile, tuple[Stamps, ParserIdentity]] = {}

    def choose(self, name: str | None, lang: str | None) -> Choice:
        """Resolve names; a changed model file is read whole for its checksum."""
        model = find_parser(self._settings, name, lang)
        # Stamps first: a file that changes while it is read is then read again.
        stamps = _stamps(model)
        identity = identify(model)
        if stamps is not None:
            self._read[model] = stamps, identity
        return model, identity, self._language(model, name, lang)

    def cached(self, name: str | None, lang: str | None) -> Choice | None:
        """Resolve as `choose`; ``None`` if the parser is unknown or a model file must be read."""
        try:
            model = find_parser(self._settings, name, lang)
        except ParsebankError:
            return None
        stamps, identity = self._read.get(model, (None, None))
        if identity is None or stamps != _stamps(model):
            return None
        return model, identity, self._language(model, name, lang)

    def _language(self, model: ModelFile, name: str | None, lang: str | None) -> str:
        chosen = lang or (model.langs[0] if name and model.langs else self._settings.lang)
        return language_code(chosen)


Stamps = tuple[tuple[int, int], ...]


def _stamps(model: ModelFile) -> Stamps | None:
    try:
        stats = [os.stat(file) for file in model.files]  # noqa: PTH116 - three times as fast
    except OSError:
        return None
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


class TokenizerResolver:
    """Resolves tokenizer names on one event loop, in front of a `TokenizerCache`."""

    def __init__(self, settings: Settings) -> None:
        self.cache = TokenizerCache(settings)
        self._loading: dict[str, asyncio.Task[LoadedTokenizer]] = {}

    async def get(self, name: str) -> LoadedTokenizer:
        """Load a tokenizer once for all waiting requests; a failed load is not remembered."""
        found = self.cache.cached(name)
        if found is not None:
            return found
        if name not in self._loading:
            loading = asyncio.create_task(asyncio.to_thread(self.cache.get, name), name=name)
            self._loading[name] = loading
            loading.add_done_callback(self._loaded)
        # Shielded: a cancelled request must not cancel the load of the others.
        return await asyncio.shield(self._loading[name])

    def _loaded(self, loading: asyncio.Task[LoadedTokenizer]) -> None:
        del self._loading[loading.get_name()]
        if not loading.cancelled():
            loading.exception()  # retrieved here, in case nobody waits any more
