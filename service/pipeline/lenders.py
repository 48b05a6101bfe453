"""Models and tokenizers by name, for as long as requests keep asking for them."""

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
"""Model, its identity, and the language of the text."""


class ParserDesk:
    """Chooses parsers by the names in a request. Safe for threads.

    Model files are looked at each time (10 µs), so that one can be added or replaced.

    Args:
        settings: Where models are, and which one a language prefers.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read: dict[ModelFile, tuple[Stamps, ParserIdentity]] = {}

    def choose(self, name: str | None, lang: str | None) -> Choice:
        """The parser that names lead to; a file that has changed is read whole for its checksum."""
        model = find_parser(self._settings, name, lang)
        # Stamps first: a file that changes while it is read is then read again.
        stamps = _stamps(model)
        identity = identify(model)
        if stamps is not None:
            self._read[model] = stamps, identity
        return model, identity, self._spoken(model, name, lang)

    def at_hand(self, name: str | None, lang: str | None) -> Choice | None:
        """The same, unless a file would have to be read for it, or there is no such parser."""
        try:
            model = find_parser(self._settings, name, lang)
        except ParsebankError:
            return None
        stamps, identity = self._read.get(model, (None, None))
        if identity is None or stamps != _stamps(model):
            return None
        return model, identity, self._spoken(model, name, lang)

    def _spoken(self, model: ModelFile, name: str | None, lang: str | None) -> str:
        """The language of the texts."""
        chosen = lang or (model.langs[0] if name and model.langs else self._settings.lang)
        return language_code(chosen)


Stamps = tuple[tuple[int, int], ...]
"""Time of the last change and size of each file of a model."""


def _stamps(model: ModelFile) -> Stamps | None:
    try:
        stats = [os.stat(file) for file in model.files]  # noqa: PTH116 - three times as fast
    except OSError:
        return None
    return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


class TokenizerDesk:
    """The tokenizers for requests; belongs to one event loop.

    Attributes:
        cache: Those that were used last.
    """

    def __init__(self, settings: Settings) -> None:
        self.cache = TokenizerCache(settings)
        self._loading: dict[str, asyncio.Task[LoadedTokenizer]] = {}

    async def get(self, name: str) -> LoadedTokenizer:
        """The tokenizer, loaded once however many requests wait for it.

        Raises:
            UnknownTokenizerError: As `TokenizerCache.get`; the next request tries again.
        """
        found = self.cache.cached(name)
        if found is not None:
            return found
        if name not in self._loading:
            loading = asyncio.create_task(asyncio.to_thread(self.cache.get, name), name=name)
            self._loading[name] = loading
            loading.add_done_callback(self._loaded)
        # A request that goes away must not take the others' tokenizer with it.
        return await asyncio.shield(self._loading[name])

    def _loaded(self, loading: asyncio.Task[LoadedTokenizer]) -> None:
        del self._loading[loading.get_name()]
        if not loading.cancelled():
            loading.exception()  # told to those who wait, who may all have gone away

    def at_hand(self, name: str) -> LoadedTokenizer | None:
        """The tokenizer if it is loaded and was not replaced, without waiting."""
        try:
            return self.cache.cached(name)
        except ParsebankError:
            return None
