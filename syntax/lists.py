"""Lists as people write them, and a parser for each language: one reader for all commands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from syntax.errors import SpecError, UnknownNameError

_ITEM: Final = re.compile(r'(?:\([^()]*\)|"[^"]*"|[^,])*')
"""Text up to the next comma outside parentheses and double quotes."""

_LANGUAGE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*):(.+)")
"""A language, and its parser. Names of parsers have a slash before any colon."""


def listed(given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Items of one text with commas, of several texts, or of both.

    A comma inside parentheses or double quotes divides nothing; an empty item is an error.

    >>> listed("en,fr"), listed(["en", "fr, de"]), listed(None)
    (('en', 'fr'), ('en', 'fr', 'de'), ())
    >>> listed('distance,sla_mask(threshold=4, window=2),"a, b"')
    ('distance', 'sla_mask(threshold=4, window=2)', 'a, b')
    """
    texts = (given,) if isinstance(given, str) else given or ()
    return tuple(item for text in texts for item in _items(text))


def _items(text: str) -> Iterable[str]:
    at = 0
    while at <= len(text):
        found = _ITEM.match(text, at)
        assert found is not None, "an item may be empty"
        item = found[0].replace('"', "").strip()
        if not item:
            raise SpecError(f"{text!r} has an empty item; write a list as en,fr")
        yield item
        at = found.end() + 1


@dataclass(frozen=True, slots=True)
class ParserChoice:
    """Name or fingerprint of a parser for ``each`` language, and for all ``other`` ones.

    >>> choice = ParserChoice.read("en:udpipe/english-ewt,fr:udpipe/french-gsd")
    >>> choice.of("fr"), choice.of("de")
    ('udpipe/french-gsd', None)
    >>> str(ParserChoice.read("stanza/en,fr:udpipe/french-gsd"))
    'fr:udpipe/french-gsd,stanza/en'
    """

    each: Mapping[str, str] = field(default_factory=dict)
    other: str | None = None

    @classmethod
    def read(cls, given: str | Iterable[str] | None) -> Self:
        """Read ``en:NAME,fr:NAME``, ``NAME``, several of these, or a mapping."""
        if isinstance(given, Mapping):
            return cls(dict(given))
        each: dict[str, str] = {}
        other: str | None = None
        for item in listed(given):
            named = _LANGUAGE.fullmatch(item)
            lang, parser = named.groups() if named else (None, item)
            if (other if lang is None else each.get(lang)) not in (None, parser):
                raise SpecError(
                    f"{item!r} is a second parser for {lang or 'all languages'}; choose one for "
                    "each language, as `parser=en:NAME,fr:NAME`"
                )
            if lang is None:
                other = parser
            else:
                each[lang] = parser
        return cls(each, other)

    def of(self, lang: str) -> str | None:
        """The parser of a language; ``None`` where any will do."""
        return self.each.get(lang, self.other)

    def check(self, langs: Collection[str]) -> None:
        """Refuse a choice for a language that is not read, which would be without effect."""
        for lang, parser in self.each.items():
            if lang not in langs:
                raise UnknownNameError(
                    f"the parser {parser!r} is chosen for {lang!r}, which is not read here; the "
                    f"languages are {', '.join(sorted(langs))}",
                    name=lang,
                    known=sorted(langs),
                )

    def __str__(self) -> str:
        each = [f"{lang}:{parser}" for lang, parser in self.each.items()]
        return ",".join([*each, *filter(None, [self.other])])
