"""Checks of what requests name, made before the app that would answer them is built.

A command with the service in its own process asks them first: the app takes more than a second of
CPU to build, and these a few tenths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from featurestore.tables.location import Location
from featurestore.tables.root import read_format
from service.parsers import find_parser
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from syntax.errors import ParsebankError
from syntax.subwords import POLICIES


def check_names(
    parsers: Iterable[tuple[str | None, str | None]] = (),
    tokenizers: Iterable[str] = (),
    policies: Iterable[str] = (),
    **fields: Any,
) -> None:
    """Refuse a folder that cannot be a store, and names of which no request could use any.

    Args:
        parsers: Name and language of the parser of each request, as `find_parser` takes them.
        tokenizers: Names and paths of tokenizers; those of the hub are not looked for.
        policies: Names of subword policies.
        **fields: Settings, as `service.app.create_app` takes them.

    Raises:
        StoreFormatError: The store is a file, or another program's or release's.
        UnknownNameError: No parser, no tokenizer or no policy of those named is known.
        SpecError: A setting or its value is invalid.
    """
    settings = Settings(**fields)
    store = Location.of(settings.store)
    if store.is_local:
        read_format(store)
    _check_any(partial(_find, settings), parsers)
    _check_any(TokenizerCache(settings).folder, tokenizers)
    _check_any(POLICIES.resolve, policies)


def _find(settings: Settings, named: tuple[str | None, str | None]) -> None:
    find_parser(settings, *named)


def _check_any(find: Callable[[Any], object], names: Iterable[Any]) -> None:
    """Raise the first error, if each of the names has one: requests fail alone."""
    failures: list[ParsebankError] = []
    for name in names:
        try:
            find(name)
        except ParsebankError as error:
            failures.append(error)
        else:
            return
    if failures:
        raise failures[0]
