"""Utterances with an intent and slots, in the forms of ATIS and SNIPS, MultiATIS++ and mTOP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from clients.benchmarks.base import Item, Names, Part
from clients.benchmarks.tags import check_tokens, tag_names, to_bio
from syntax.errors import NoLabelError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, LabelValue, Mode, Segment

LABELS: Final = (LabelSpec("intent", "class"), LabelSpec("slots", "tags", (), "utterance"))
FIELDS: Final = ("utterance",)
MODES: Final[tuple[Mode, ...]] = TOKEN_MODES
REJECTS: Final = {
    "empty_token": "an utterance with a token that is empty or white space only",
    "label": "another number of tags than of tokens, or a tag that is none",
    "no_label": "an utterance without intent",
    "example": "a line with another number of fields than the form has",
    "invalid_character": "a line that is not UTF-8",
}

ReadPart = Callable[[Part, Mode], Iterator[Item]]


def slot_names(parts: Sequence[Part], *, read_part: ReadPart) -> Names:
    items = (item for part in parts for item in read_part(part, MODES[0]))
    intents: set[str] = set()
    tags: set[str] = set()
    for item in items:
        if isinstance(item, Example):
            intents.add(cast("str", item.labels["intent"]))
            tags.update(cast("tuple[str, ...]", item.labels["slots"]))
    return {"intent": tuple(sorted(intents)), "slots": tag_names(tags)}


def utterance(
    example_id: str, tokens: Sequence[str], tags: Sequence[str], intent: str, where: str
) -> Example:
    check_tokens(tokens, tags, where)
    if not intent:
        raise NoLabelError(f"{where} has no intent")
    labels: dict[str, LabelValue] = {"intent": intent, "slots": to_bio(tags)}
    return Example(example_id, (Segment(tokens=tuple(tokens)),), labels)


def divided(line: str) -> list[str]:
    r"""Words between spaces and TABs; other white space, such as U+00A0, is text.

    >>> divided("add it  to\u00a0my list ")
    ['add', 'it', 'to\xa0my', 'list']
    """
    return [word for word in line.replace("\t", " ").split(" ") if word]
