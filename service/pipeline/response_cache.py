"""Whole answers, kept as bytes for requests that come again word for word."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal

from service.pipeline.plan import Plan
from service.pipeline.resolvers import ParserResolver, TokenizerResolver
from service.settings import Settings
from syntax.errors import ParsebankError

RECHECK_SECONDS: Final = 1.0
_ENTRY_BYTES: Final = 1_000
"""Approximate bytes of an entry beside its content."""

_LARGEST_SHARE: Final = 8
"""An answer larger than this fraction (1/8) of the memory limit is not stored."""

_CHOICES: Final = 256

VARIES: Final = "Accept, Accept-Encoding"
"""``Vary`` of answers that may be compressed, and of 304."""


@dataclass(frozen=True)
class Origin:
    """What an answer depends on beside its request: the parser and the tokenizer.

    Attributes:
        parser, lang, tokenizer: Names in the request.
        chosen: Fingerprint of the parser, and language of the texts.
        tokenizer_fingerprint: ``None`` without a tokenizer.
    """

    parser: str | None
    lang: str | None
    tokenizer: str | None
    chosen: tuple[str, str]
    tokenizer_fingerprint: str | None

    @classmethod
    def of(cls, plan: Plan) -> Origin:
        """The origin of a planned request's answer."""
        request, tokenizer = plan.request, plan.tokenizer
        return cls(
            request.parser,
            request.lang,
            request.tokenizer,
            (plan.parser.fingerprint, plan.lang),
            None if tokenizer is None else tokenizer.fingerprint,
        )


@dataclass(frozen=True)
class CachedResponse:
    """The bytes of an answer whose texts were all stored.

    Attributes:
        content: The body, compressed if the caller accepts that.
        headers: Raw headers, with the length and the entity tag.
        etag: The entity tag.
        origin: The parser and the tokenizer.
    """

    content: bytes = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...]
    etag: str
    texts: int
    origin: Origin

    @property
    def size(self) -> int:
        """Approximate bytes in memory."""
        return len(self.content) + _ENTRY_BYTES

    @cached_property
    def unchanged_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers of the answer 304."""
        kept = [pair for pair in self.headers if not pair[0].startswith((b"content-", b"vary"))]
        return (*kept, (b"vary", VARIES.encode()))


class ResponseCache:
    """The most recently used answers, as bytes. Belongs to one event loop.

    An answer is valid while the names in its request resolve to the same parser and tokenizer.
    The parses behind it cannot change, because a parse key covers everything that made the parse.
    When parses are deleted, `forget` drops all answers.

    Args:
        settings: The memory limit.
        parsers: Resolves the parser names in requests.
        tokenizers: The loaded tokenizers; answers of a tokenizer that was unloaded are invalid.
        recheck_seconds: Seconds for which a resolved name is trusted before the model files are
            checked again.

    Attributes:
        size: Bytes in use.
        generation: Number of calls of `forget`.
        lookups: Number of hits and misses.
    """

    def __init__(
        self,
        settings: Settings,
        parsers: ParserResolver,
        tokenizers: TokenizerResolver,
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        self._parsers = parsers
        self._tokenizers = tokenizers
        self.recheck_seconds = recheck_seconds
        self._room = settings.ready_answers_mb << 20
        self._answers: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._choices: OrderedDict[tuple[str | None, str | None], _Choice] = OrderedDict()
        self.size = 0
        self.generation = 0
        self.lookups: Counter[Literal["hit", "miss"]] = Counter()

    def __len__(self) -> int:
        return len(self._answers)

    async def get(self, key: bytes) -> CachedResponse | None:
        """The answer under a key, if it is still valid."""
        answer = self._answers.get(key)
        if answer is not None and not await self._is_valid(answer.origin):
            self._drop(key)
            answer = None
        self.lookups["hit" if answer is not None else "miss"] += 1
        if key in self._answers:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: bytes, answer: CachedResponse, generation: int | None = None) -> None:
        """Store an answer; the least recently used ones are evicted.

        Args:
            key: Its `response_key`.
            answer: The answer.
            generation: The generation in which its parses were looked up. An answer of an earlier
                generation is not stored, because its parses may have been deleted since.
        """
        self._drop(key)
        if generation not in (None, self.generation) or answer.size * _LARGEST_SHARE > self._room:
            return
        self._answers[key] = answer
        self.size += answer.size
        while self.size > self._room:
            self._drop(next(iter(self._answers)))

    def forget(self) -> None:
        """Drop all answers: parses behind them may have been deleted."""
        self.generation += 1
        self._answers.clear()
        self.size = 0

    def _drop(self, key: bytes) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.size -= answer.size

    async def _is_valid(self, origin: Origin) -> bool:
        if origin.tokenizer is not None:
            tokenizer = self._tokenizers.cached(origin.tokenizer)
            if tokenizer is None or tokenizer.fingerprint != origin.tokenizer_fingerprint:
                return False
        return await self._chosen(origin.parser, origin.lang) == origin.chosen

    async def _chosen(self, parser: str | None, lang: str | None) -> tuple[str, str] | None:
        """Fingerprint and language that a request's names resolve to; ``None`` if unknown."""
        now = asyncio.get_running_loop().time()
        choice = self._choices.get((parser, lang))
        if choice is None or now - choice.since >= self.recheck_seconds:
            looking = asyncio.create_task(asyncio.to_thread(self._choose, parser, lang))
            choice = self._choices[parser, lang] = _Choice(now, looking)
            while len(self._choices) > _CHOICES:
                self._choices.popitem(last=False)
        if choice.looking.done():
            return choice.looking.result()
        # Shielded: a caller that is cancelled must not cancel the lookup of the others.
        return await asyncio.shield(choice.looking)

    def _choose(self, parser: str | None, lang: str | None) -> tuple[str, str] | None:
        try:
            _, identity, spoken = self._parsers.choose(parser, lang)
        except ParsebankError:
            return None
        return identity.fingerprint, spoken


@dataclass(frozen=True)
class _Choice:
    """A lookup of the models: when it started, and its result."""

    since: float
    looking: asyncio.Task[tuple[str, str] | None]


def response_key(body: bytes, *shape: str) -> bytes:
    """Key of an answer: a digest of the request's bytes, format and encoding."""
    digest = blake2b("\0".join(shape).encode(), digest_size=16)
    digest.update(b"\0")
    digest.update(body)
    return digest.digest()
