"""Relations and event arguments of ACE 2005, as the GATE release (Ahmad et al. 2021) reads them.

Each file lists pairs of mentions in a sentence; the subject of an event argument is its trigger::

    {"id": "...", "token": ["Kim", "works", "there"], "stanford_pos": ["PROPN", "VERB", "ADV"],
     "stanford_ner": ["PER", "O", "O"], "stanford_deprel": ["nsubj", "root", "advmod"],
     "stanford_head": ["2", "0", "2"], "relation": "ORG-AFF", "subj_type": "PER",
     "subj_start": 0, "subj_end": 0, "obj_type": "ORG", "obj_start": 2, "obj_end": 2}

Ends are inclusive; heads count from 1, 0 is the root; the ``stanford_`` columns hold UD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from clients.benchmarks.base import Benchmark, Item, Names, Part, attempt, named_parts, register
from clients.benchmarks.documents import UniqueIds, guarded, records_of, text_of
from clients.benchmarks.lines import check_characters
from clients.benchmarks.tags import OUTSIDE, check_tokens
from syntax.errors import ExampleError, InputError, LabelError
from syntax.examples import TOKEN_MODES, Example, LabelSpec, LabelValue, Mode, Segment, SpanLabel
from syntax.labels import token_offsets
from syntax.trees.conllu import format_conllu
from syntax.trees.sentence import Sentence, Token, Word

RELATION: Final = LabelSpec("relation", "class")
SUBJECT: Final = LabelSpec("subject", "spans", field="text")
OBJECT: Final = LabelSpec("object", "spans", field="text")
NER: Final = LabelSpec("ner", "tags", field="text")

SPAN_REVERSED: Final = "span_reversed"
"""Repair: the start and end of a mention were swapped."""

_LANGS: Final = {"Arabic": "ar", "English": "en", "Chinese": "zh"}
_KEYS: Final = {
    "relation": "relation",
    "subject": "subj_type",
    "object": "obj_type",
    "ner": "stanford_ner",
}

_BREAK = re.compile(r"[\t\n\r]")
_FILE: Final = r"(?P<lang>English|Arabic|Chinese|[a-z]{2,3})/(?P<split>train|dev|test)\.json"


def _find(folder: Path) -> Sequence[Part]:
    found = named_parts(folder, patterns=(_FILE,))
    return [replace(part, lang=_LANGS.get(part.lang, part.lang)) for part in found]


def _read(part: Part, mode: Mode) -> Iterator[Item]:
    unique = UniqueIds()
    for path in part.files:
        yield from guarded(path, _items(path, part.split, unique, mode))


def _items(path: Path, split: str, unique: UniqueIds, mode: Mode) -> Iterator[Item]:
    for number, record in enumerate(records_of(path, "item"), 1):
        given = record.get("id") if isinstance(record, dict) else None
        unnamed = given is None or isinstance(given, list | dict)
        example_id = unique.of(f"{split}-{number}" if unnamed else str(given))
        where = f"{path.name}, record {number}"
        yield attempt(example_id, _example, record, where, mode)


def _example(example_id: str, record: Any, where: str, mode: Mode) -> Example:
    tokens, ner = (_strings(record, key, where) for key in ("token", "stanford_ner"))
    check_tokens(tokens, ner, where)
    subject, turned = _mention(record, "subj", tokens, where)
    object_, also_turned = _mention(record, "obj", tokens, where)
    labels: dict[str, LabelValue] = {
        "relation": text_of(record, "relation", where),
        "subject": (subject,),
        "object": (object_,),
        "ner": ner,
    }
    segment = _segment(record, tokens, where) if mode == "gold" else Segment(tokens=tokens)
    return Example(example_id, (segment,), labels, (SPAN_REVERSED,) * (turned + also_turned))


def _strings(record: Any, key: str, where: str) -> tuple[str, ...]:
    values = record.get(key) if isinstance(record, dict) else None
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ExampleError(f"{where}: {key!r} is {values!r}; expected a list of strings")
    for value in values:
        check_characters(value, f"{where}: {key!r}")
    return tuple(values)


def _mention(
    record: dict[str, Any], role: str, tokens: Sequence[str], where: str
) -> tuple[SpanLabel, bool]:
    """Characters of a mention; true if its ends had to be swapped."""
    ends = record.get(f"{role}_start"), record.get(f"{role}_end")
    words = [end for end in ends if type(end) is int and 0 <= end < len(tokens)]
    if len(words) < 2:
        raise LabelError(
            f"{where}: {role}_start and {role}_end are {ends[0]!r} and {ends[1]!r}; expected the "
            f"positions of two of its {len(tokens)} words"
        )
    offsets = token_offsets(tokens)
    start, end = int(offsets[min(words), 0]), int(offsets[max(words), 1])
    return SpanLabel(start, end, text_of(record, f"{role}_type", where)), words[0] > words[1]


def _segment(record: dict[str, Any], tokens: Sequence[str], where: str) -> Segment:
    columns = [_strings(record, f"stanford_{key}", where) for key in ("pos", "head", "deprel")]
    if {len(column) for column in columns} != {len(tokens)}:
        raise ExampleError(f"{where}: expected a pos, head and deprel for each of its tokens")
    if any(_BREAK.search(value) for column in (tokens, *columns) for value in column):
        raise ExampleError(f"{where}: a tab or line break in a token or tag fits into no CoNLL-U")
    rows = zip(tokens, *columns, strict=True)
    words = tuple(
        Word(number, form, upos=pos or None, head=_head(head, where), deprel=deprel or None)
        for number, (form, pos, head, deprel) in enumerate(rows, 1)
    )
    sentence = Sentence(words, tuple(Token(word.form, (word.id,)) for word in words))
    _ = sentence.tree  # proven before anything is sent
    return Segment(conllu=format_conllu([sentence]))


def _head(head: str, where: str) -> int:
    if not head.isdecimal():
        raise ExampleError(f"{where}: the head {head!r} is no number; expected 0 for the root")
    return int(head)


def _names_in(parts: Sequence[Part]) -> Names:
    found: dict[str, set[str]] = {name: set() for name in _KEYS}
    for record in (x for part in parts for file in part.files for x in _readable(file)):
        for name, key in _KEYS.items():
            value = record.get(key)
            values = value if isinstance(value, list) else [value]
            found[name].update(x for x in values if isinstance(x, str))
    return {
        name: tuple(sorted(names, key=lambda each: (each != OUTSIDE, each)))
        for name, names in found.items()
    }


def _readable(path: Path) -> Iterator[dict[str, Any]]:
    """The records before a syntax error; reading the file reports the faults of the others."""
    with suppress(InputError):
        yield from (record for record in records_of(path, "item") if isinstance(record, dict))


ACE: Final = register(
    Benchmark(
        name="ace",
        fields=("text",),
        labels=(RELATION, SUBJECT, OBJECT, NER),
        modes=("gold", *TOKEN_MODES),
        layout="a .json file, or a folder of files {English|Arabic|Chinese}/{split}.json",
        source="ACE 2005 (LDC2006T06) in the format of Ahmad et al. 2021, GATE",
        licence="LDC User Agreement",
        find=_find,
        read_part=_read,
        ids="the record's own, else `{split}-{record}`; a second record of the same id is `{id}#2`",
        rejects={
            "example": "a record without one of the columns, or of another form",
            "label": "a mention that is not in the sentence; not as many tags as tokens",
            "empty_token": "a token that is empty or white space",
            **dict.fromkeys(
                ("no_root", "multiple_roots", "cycle", "head_out_of_range"),
                "in mode `gold`: heads that form no tree; the other modes read the sentence",
            ),
            "invalid_character": "bytes that are not UTF-8",
        },
        langs=tuple(_LANGS.values()),
        quirks=(
            "the names of relations, types and tags are those of all files under the path",
            "a mention that ends before it begins is turned round (`span_reversed`)",
            "mentions are characters of the tokens joined by spaces",
        ),
        names_in=_names_in,
    )
)
