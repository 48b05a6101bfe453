"""Models and tokenizers by name, for as long as requests keep asking for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from service.parsers import ModelFile, ParserIdentity, find_parser, identify
from service.settings import Settings
from service.tokenizers import LoadedTokenizer, load_tokenizer


def choose_parser(
    settings: Settings, name: str | None, lang: str | None
) -> tuple[ModelFile, ParserIdentity, str]:
    """Model, identity, and the language of the text.

    The files are looked at each time (50 µs), so that a model can be added or replaced.

    Raises:
        UnknownParserError, UnknownLanguageError, ModelLoadError: As `find_parser`.
    """
    model = find_parser(settings, name, lang)
    spoken = lang or (model.langs[0] if name and model.langs else settings.lang)
    return model, identify(model), spoken


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

    async def _load(self, name: str) -> LoadedTokenizer:
        return await asyncio.to_thread(load_tokenizer, name, self._settings.hub_timeout_seconds)
