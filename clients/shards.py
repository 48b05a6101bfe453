"""Shards of an array job, whose tasks each read all examples and send their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from syntax.errors import SpecError
from syntax.examples import Example, Rejection, Segment


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard ``number`` of ``total``, counted from 1.

    An example is in the shard that a hash of its longest text names; a rejected item, in that of
    its id. So the shards of a split depend on nothing but ``total``, equal examples are in one
    shard, and so are most examples that share a text, such as the questions about a passage.
    """

    number: int
    total: int

    @classmethod
    def read(cls, given: str) -> Shard:
        found = re.fullmatch(r"([0-9]+)/([0-9]+)", given)
        number, total = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= total:
            raise SpecError(
                f"the shard is {given!r}; expected K/N with K from 1 to N, as 1/16 to 16/16"
            )
        return cls(number, total)

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def has(self, item: Example | Rejection) -> bool:
        digest = blake2b(_named_by(item).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.total == self.number - 1

    def of(self, items: Iterable[Example | Rejection]) -> Iterator[Example | Rejection | None]:
        """Items of this shard, and ``None`` for each other one; refuses an empty sequence."""
        item = None
        for item in items:
            yield item if self.has(item) else None
        if item is None:
            raise SpecError("there are no examples to share between shards")


def _named_by(item: Example | Rejection) -> str:
    if isinstance(item, Rejection):
        return item.example_id
    return max(map(_content, item.segments), key=len, default="")


def _content(segment: Segment) -> str:
    if segment.tokens is not None:
        return "\n".join(segment.tokens)
    return segment.text if segment.text is not None else segment.conllu or ""
