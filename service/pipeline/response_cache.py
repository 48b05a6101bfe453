"""Whole responses, kept as they were sent for requests that come again byte for byte."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Literal

from featurestore import FeatureStore
from service.pipeline.plan import Plan
from service.pipeline.resolvers import ParserResolver, TokenizerResolver
from service.settings import Settings

_ENTRY_BYTES: Final = 1_000

_LARGEST_SHARE: Final = 8
"""Responses over this fraction (1/8) of the memory limit are not stored."""


@dataclass(frozen=True)
class Origin:
    """All that a response depends on beside its request: parser, tokenizer and store.

    Attributes:
        parser, lang, tokenizer: Names in the request.
        chosen: Fingerprint of the parser, and language of the texts.
        generation: `ParseTable.generation` before the parses were looked up.
    """

    parser: str | None
    lang: str | None
    tokenizer: str | None
    chosen: tuple[str, str]
    tokenizer_fingerprint: str | None
    generation: int
    texts: int

    @classmethod
    def of(cls, plan: Plan) -> Origin:
        request, tokenizer = plan.request, plan.tokenizer
        return cls(
            request.parser,
            request.lang,
            request.tokenizer,
            (plan.parser.fingerprint, plan.lang),
            None if tokenizer is None else tokenizer.fingerprint,
            plan.generation,
            len(plan.keys),
        )


@dataclass(frozen=True)
class CachedResponse:
    """The body and the raw headers of a response whose texts were all stored."""

    content: bytes = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...]
    origin: Origin

    @property
    def size(self) -> int:
        return len(self.content) + _ENTRY_BYTES


class ResponseCache:
    """The most recently used responses. Belongs to one event loop.

    A response is valid while the names in its request resolve to the same parser and tokenizer,
    and no parse was deleted: a parse key covers everything that made the parse.
    """

    def __init__(
        self,
        settings: Settings,
        store: FeatureStore,
        parsers: ParserResolver,
        tokenizers: TokenizerResolver,
    ) -> None:
        self._store = store
        self._parsers = parsers
        self._tokenizers = tokenizers
        self._room = settings.response_cache_mb << 20
        self._responses: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self.size = 0
        self.lookups: Counter[Literal["hit", "miss"]] = Counter()

    def __len__(self) -> int:
        return len(self._responses)

    def get(self, key: bytes) -> CachedResponse | None:
        response = self._responses.get(key)
        if response is not None and not self._is_valid(response.origin):
            self._drop(key)
            response = None
        if response is not None:
            self._responses.move_to_end(key)
        self.lookups["miss" if response is None else "hit"] += 1
        return response

    def put(self, key: bytes, response: CachedResponse) -> None:
        """Store a response, if no parse was deleted meanwhile."""
        self._drop(key)
        is_old = response.origin.generation != self._store.parses.generation
        if is_old or response.size * _LARGEST_SHARE > self._room:
            return
        self._responses[key] = response
        self.size += response.size
        while self.size > self._room:
            self._drop(next(iter(self._responses)))

    def forget(self) -> None:
        self._responses.clear()
        self.size = 0

    def _drop(self, key: bytes) -> None:
        response = self._responses.pop(key, None)
        if response is not None:
            self.size -= response.size

    def _is_valid(self, origin: Origin) -> bool:
        if origin.generation != self._store.parses.generation:
            return False
        if origin.tokenizer is not None:
            tokenizer = self._tokenizers.cache.cached(origin.tokenizer)
            if tokenizer is None or tokenizer.fingerprint != origin.tokenizer_fingerprint:
                return False
        choice = self._parsers.cached(origin.parser, origin.lang)
        return choice is not None and (choice[1].fingerprint, choice[2]) == origin.chosen


def response_key(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.digest()
