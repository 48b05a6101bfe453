"""Whole answers, kept as bytes for requests that come again word for word."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal

from service.pipeline.lenders import ParserDesk, TokenizerDesk
from service.pipeline.plan import Plan
from service.settings import Settings
from syntax.errors import ParsebankError

RECHECK_SECONDS: Final = 1.0
_ENTRY_BYTES: Final = 1_000
"""What an entry takes beside its content, about."""

_LARGEST_SHARE: Final = 8
"""An answer that would fill more than this part of the memory is not kept."""

_CHOICES: Final = 256

VARIES: Final = "Accept, Accept-Encoding"
"""``Vary`` of what could be compressed, and of 304, which does not know whether it could."""


@dataclass(frozen=True)
class Origin:
    """What an answer depends on that is not in its request, and the names that led there.

    Attributes:
        parser, lang, tokenizer: Names in the request.
        chosen: Fingerprint of the parser and language of the texts, as the names led to.
        tokenizer_fingerprint: Of the tokenizer, if there is one.
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
class ReadyAnswer:
    """An answer whose texts were all stored, as it is sent.

    Attributes:
        content: The body, compressed if the caller wanted that.
        headers: Raw headers, the length included.
        etag: Its entity tag, which is among the headers too.
        texts: How many it answers.
        origin: What it depends on.
    """

    content: bytes = field(repr=False)
    headers: tuple[tuple[bytes, bytes], ...]
    etag: str
    texts: int
    origin: Origin

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return len(self.content) + _ENTRY_BYTES

    @cached_property
    def unchanged_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The headers that tell a caller that what it has is still right."""
        kept = [pair for pair in self.headers if not pair[0].startswith((b"content-", b"vary"))]
        return (*kept, (b"vary", VARIES.encode()))


class ReadyAnswers:
    """Keeps the answers that were asked for last. Belongs to one event loop.

    An answer holds for as long as the names of its request lead to the same parser and the same
    tokenizer; the parses behind it cannot change, for a parse key covers all that made them. They
    can be deleted: then all answers go (`forget`).

    Args:
        settings: How much memory.
        parsers: Tells where the names in a request lead.
        tokenizers: The tokenizers in use; a tokenizer that had to go takes its answers with it.
        recheck_seconds: How long a name may lead to the parser that it last led to, before the
            models are looked at again.

    Attributes:
        size: Bytes in use.
        generation: How often all answers were let go of.
        lookups: Requests that found an answer, and those that did not.
    """

    def __init__(
        self,
        settings: Settings,
        parsers: ParserDesk,
        tokenizers: TokenizerDesk,
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        self._parsers = parsers
        self._tokenizers = tokenizers
        self.recheck_seconds = recheck_seconds
        self._room = settings.ready_answers_mb << 20
        self._answers: OrderedDict[bytes, ReadyAnswer] = OrderedDict()
        self._choices: OrderedDict[tuple[str | None, str | None], _Choice] = OrderedDict()
        self.size = 0
        self.generation = 0
        self.lookups: Counter[Literal["hit", "miss"]] = Counter()

    def __len__(self) -> int:
        return len(self._answers)

    async def get(self, key: bytes) -> ReadyAnswer | None:
        """The answer kept under a key, if it still holds."""
        answer = self._answers.get(key)
        if answer is not None and not await self._holds(answer.origin):
            self._drop(key)
            answer = None
        self.lookups["hit" if answer is not None else "miss"] += 1
        if key in self._answers:
            self._answers.move_to_end(key)
        return answer

    def put(self, key: bytes, answer: ReadyAnswer, generation: int | None = None) -> None:
        """Keep an answer, and let go of those asked for longest ago.

        Args:
            key: Its `ready_key`.
            answer: The answer.
            generation: The generation in which its parses were looked up; in a later one they may
                have been deleted, and the answer is not kept.
        """
        self._drop(key)
        if generation not in (None, self.generation) or answer.size * _LARGEST_SHARE > self._room:
            return
        self._answers[key] = answer
        self.size += answer.size
        while self.size > self._room:
            self._drop(next(iter(self._answers)))

    def forget(self) -> None:
        """Let go of all answers: parses behind them may have been deleted."""
        self.generation += 1
        self._answers.clear()
        self.size = 0

    def _drop(self, key: bytes) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.size -= answer.size

    async def _holds(self, origin: Origin) -> bool:
        if origin.tokenizer is not None:
            tokenizer = self._tokenizers.at_hand(origin.tokenizer)
            if tokenizer is None or tokenizer.fingerprint != origin.tokenizer_fingerprint:
                return False
        return await self._chosen(origin.parser, origin.lang) == origin.chosen

    async def _chosen(self, parser: str | None, lang: str | None) -> tuple[str, str] | None:
        """What a request's names lead to; ``None`` if to nothing."""
        now = asyncio.get_running_loop().time()
        choice = self._choices.get((parser, lang))
        if choice is None or now - choice.since >= self.recheck_seconds:
            looking = asyncio.create_task(asyncio.to_thread(self._choose, parser, lang))
            choice = self._choices[parser, lang] = _Choice(now, looking)
            while len(self._choices) > _CHOICES:
                self._choices.popitem(last=False)
        if choice.looking.done():
            return choice.looking.result()
        # A caller that goes away must not take the others' look with it.
        return await asyncio.shield(choice.looking)

    def _choose(self, parser: str | None, lang: str | None) -> tuple[str, str] | None:
        try:
            _, identity, spoken = self._parsers.choose(parser, lang)
        except ParsebankError:
            return None
        return identity.fingerprint, spoken


@dataclass(frozen=True)
class _Choice:
    """A look at the models: when it began, and what it finds."""

    since: float
    looking: asyncio.Task[tuple[str, str] | None]


def ready_key(body: bytes, *shape: str) -> bytes:
    """Key of an answer: the request's exact bytes, and what else decides how it is rendered."""
    digest = blake2b("\0".join(shape).encode(), digest_size=16)
    digest.update(b"\0")
    digest.update(body)
    return digest.digest()
