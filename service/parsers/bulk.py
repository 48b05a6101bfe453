"""Base of parsers that parse many texts at a time."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from service.parsers.base import Limits, Outcome, ParseInput, ParserIdentity
from syntax import Parse
from syntax.errors import ParsebankError, UnparsableTextError


class BulkParser(ABC):
    """A parser of lots: texts that are parsed together."""

    lot_words: ClassVar[int]

    lot_texts: ClassVar[int]

    def __init__(self, identity: ParserIdentity) -> None:
        self._identity = identity

    @property
    def identity(self) -> ParserIdentity:
        return self._identity

    def parse(self, item: ParseInput, limits: Limits) -> Parse:
        outcome = self._alone(item, limits)
        if isinstance(outcome, ParsebankError):
            raise outcome
        return outcome

    def parse_many(self, items: Sequence[ParseInput], limits: Limits) -> Iterator[Outcome]:
        for lot in self._lots(items):
            try:
                outcomes = self._together(lot, limits)
            except Exception:
                # Whichever text it was, the others are not to blame.
                outcomes = [self._alone(item, limits) for item in lot]
            yield from outcomes

    @abstractmethod
    def _together(self, items: Sequence[ParseInput], limits: Limits) -> list[Outcome]:
        """Outcomes of a lot; an exception may be the fault of any text."""

    def _alone(self, item: ParseInput, limits: Limits) -> Outcome:
        try:
            return self._together([item], limits)[0]
        except ParsebankError as error:
            return error
        except Exception as error:
            if out_of_memory(error):
                raise
            return UnparsableTextError(
                f"{self._identity.name} failed on this text: {type(error).__name__}: "
                f"{str(error)[:200]}; leave it out, or use another parser",
                parser=self._identity.name,
            )

    def _lots(self, items: Sequence[ParseInput]) -> Iterator[list[ParseInput]]:
        lot: list[ParseInput] = []
        words = 0
        for item in items:
            if lot and (len(lot) == self.lot_texts or words + item.words > self.lot_words):
                yield lot
                lot, words = [], 0
            lot.append(item)
            words += item.words
        if lot:
            yield lot


def out_of_memory(error: Exception) -> bool:
    """True if the machine or the GPU ran out of memory: not a fault of the text."""
    torch = sys.modules.get("torch")
    return isinstance(error, MemoryError) or (
        torch is not None and isinstance(error, torch.OutOfMemoryError)
    )
