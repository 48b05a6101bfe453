"""Text and sentences of web pages, by the recipe of MicroBERT's corpora (Gessler, Zeldes 2022).

It keeps four elements of a page, and ends sentences as spaCy's `Sentencizer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final
from unicodedata import category

BREAKING: Final = frozenset({"text", "figure", "caption", "p"})
"""Elements that begin and end a line; tags of all others are removed, their text stays."""

FULL_STOPS: Final = (
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？"
    "𐩖𐩗𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑩂𑩃𑪛𑪜𑱁𑱂𖩮𖩯𖫵𖬷𖬸𖭄𛲟𝪈｡。"
)

_FULL_STOP: Final = re.compile(f"[{re.escape(FULL_STOPS)}]")


def page_text(html: str) -> str:
    """Text of a page, without comments; lines end where an element of `BREAKING` begins or ends.

    >>> page_text("<p>Two <b>bold</b> cats &amp; a dog</p>").strip()
    'Two bold cats & a dog'
    """
    page = _Page()
    page.feed(html)
    page.close()
    return "".join(page.parts).replace("\r\n", "\n").replace("\r", "\n")


def sentences(text: str) -> Iterator[str]:
    """Sentences of a text, without outer white space; none is empty.

    A sentence ends with its line, or before the first character behind a full stop that is neither
    punctuation nor a full stop, white space or not.

    >>> list(sentences('He said: "Go!" (Now.) It is 3.5 km.'))
    ['He said: "Go!"', '(Now.)', 'It is 3.', '5 km.']
    """
    for line in text.split("\n"):
        start = at = 0
        while stop := _FULL_STOP.search(line, at):
            at = stop.end()
            while at < len(line) and _continues(line[at]):
                at += 1
            yield from _unless_empty(line[start:at])
            start = at
        yield from _unless_empty(line[start:])


def _continues(character: str) -> bool:
    return category(character).startswith("P") or character in FULL_STOPS


def _unless_empty(sentence: str) -> Iterator[str]:
    if stripped := sentence.strip():
        yield stripped


class _Page(HTMLParser):
    """Collects text and line breaks; `convert_charrefs`, the default, resolves entities."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(
        self,
        tag: str,
        attrs: list[tuple[str, str | None]],  # noqa: ARG002
    ) -> None:
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in BREAKING:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)
