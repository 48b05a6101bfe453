"""Quick checks of names in requests: the app takes more than a second of CPU to build."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from featurestore.tables.location import Location
from featurestore.tables.root import read_format
from service.parsers import find_parser
from service.settings import Settings, is_loopback
from service.tokenizer_cache import TokenizerCache
from syntax.errors import ParsebankError, SpecError
from syntax.subwords import POLICIES


def check_names(
    parsers: Iterable[tuple[str | None, str | None]] = (),
    tokenizers: Iterable[str] = (),
    policies: Iterable[str] = (),
    **fields: Any,
) -> None:
    """Refuse a folder that cannot be a store, and names that no request could use.

    Parsers are pairs of name and language; tokenizers are not looked up on the hub.
    """
    settings = Settings(**fields)
    check_store(settings)
    _check_any(lambda named: find_parser(settings, *named), parsers)
    _check_any(TokenizerCache(settings).folder, tokenizers)
    _check_any(POLICIES.resolve, policies)


def check_server(settings: Settings) -> None:
    from service.security.rates import parse_rate

    check_bind(settings)
    check_store(settings)
    if settings.rate_limit is not None:
        parse_rate(settings.rate_limit)


def check_store(settings: Settings) -> None:
    """Refuse a local folder that cannot be a store; an object store is not asked."""
    store = Location.of(settings.store)
    if store.is_local:
        read_format(store)


def check_bind(settings: Settings) -> None:
    guarded = settings.keys_file is not None or settings.allow_remote
    if not guarded and not is_loopback(settings.host):
        raise SpecError(
            f"{settings.host} is reachable from other machines, and whoever reaches it can read "
            "and write the store. Ask for keys (`parsebank keys add NAME --keys-file keys.json`, "
            "then --keys-file keys.json, PARSEBANK_KEYS_FILE), or pass --allow-remote "
            "(PARSEBANK_ALLOW_REMOTE=true) behind a proxy with authentication, or bind 127.0.0.1",
            host=settings.host,
        )


def _check_any(find: Callable[[Any], object], names: Iterable[Any]) -> None:
    """Raise the first error if all names have one: requests fail alone."""
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
