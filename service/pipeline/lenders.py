"""Models and tokenizers by name, for as long as requests keep asking for them."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict

from service.parsers import ModelFile, ParserIdentity, find_parser, identify
from service.parsers.languages import language_code
from service.settings import Settings
from service.tokenizers import LoadedTokenizer, load_tokenizer
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
        """The parser that names lead to; a file that has changed is read whole for its checksum.

        Raises:
            UnknownParserError, UnknownLanguageError, ModelLoadError: As `find_parser`.
        """
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
    """Keeps the tokenizers that were used last; belongs to one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loading: OrderedDict[str, asyncio.Task[LoadedTokenizer]] = OrderedDict()

    async def get(self, name: str) -> LoadedTokenizer:
        """The tokenizer, loaded once however many requests wait for it.

        Raises:
            UnknownTokenizerError: As `load_tokenizer`; the next request tries again.
        """
        if name not in self._loading:
            self._loading[name] = asyncio.create_task(self._load(name))
        loading = self._loading[name]
        self._loading.move_to_end(name)
        try:
            # A request that goes away must not take the others' tokenizer with it.
            return await asyncio.shield(loading)
        except BaseException:
            if loading.done() and self._loading.get(name) is loading:
                del self._loading[name]
            raise
        finally:
            while len(self._loading) > self._settings.max_loaded_tokenizers:
                self._loading.popitem(last=False)

    def at_hand(self, name: str) -> LoadedTokenizer | None:
        """The tokenizer if it is loaded, without waiting; counts as a use of it."""
        loading = self._loading.get(name)
        if loading is None or not loading.done() or loading.exception() is not None:
            return None
        self._loading.move_to_end(name)
        return loading.result()

    async def _load(self, name: str) -> LoadedTokenizer:
        return await asyncio.to_thread(load_tokenizer, name, self._settings.hub_timeout_seconds)
