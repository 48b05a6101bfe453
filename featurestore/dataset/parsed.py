"""A dataset together with the parses of its texts, which hold what features do not.

Features have the 37 universal relations and the universal tags, as small integers. The parses
also have whole relations (``nsubj:pass``), language-specific tags, and the words without a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from featurestore.dataset.dataset import FeatureDataset
from featurestore.records import ParseRecord
from featurestore.stream.window import Window, WindowReader
from featurestore.tables.encode.packed import unpack_record
from syntax.errors import SpecError, StoreError

if TYPE_CHECKING:
    from featurestore.store import FeatureStore
    from syntax.trees.parse import Parse

GOLD: Final = "gold"
"""The mode of parses that no parser made (`syntax.examples.Mode`)."""

PackedParses: TypeAlias = tuple[tuple[str, bytes], ...]
"""Key and packed record of the parse of each segment of an example."""

_AT_ONCE: Final = 4096

_COUNTED: Final = 65_536


class ParsedDataset(FeatureDataset):
    """A dataset whose streams give ``parses`` and ``is_gold``.

    ``parses`` is a list: for each sequence a tuple with the `syntax.trees.parse.Parse` of each
    segment of its example. ``is_gold``, bool (B,), says whether all of them are gold trees. Further
    values that the streams of ``data`` give, such as states of words, are kept.

    With a ``treebank``, a dataset of the same sentences in the same words, the parses are those of
    its examples with the same language and id; features, such as matrices, stay those of ``data``.
    """

    def __init__(
        self, store: FeatureStore, data: FeatureDataset, treebank: FeatureDataset | None = None
    ) -> None:
        super().__init__(store, data.card, data.version, data.rows, data.reader)
        self._data = data
        self.treebank = None if treebank is None else ParsedDataset(store, treebank)
        self._values: dict[tuple[str, bool], tuple[str, ...]] = {}

    def __reduce__(self) -> tuple[type[ParsedDataset], tuple[Any, ...], dict[str, Any]]:
        kept = self._kept_in_copies()
        if self.treebank is not None:
            kept |= {"treebank": self.treebank, "_places": self._places}
        return ParsedDataset, (self._store, self._data), kept

    @cached_property
    def fingerprints(self) -> dict[str, Any]:
        if self.treebank is None:
            return self._data.fingerprints
        return {**self._data.fingerprints, "treebank": self.treebank.fingerprints}

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """Where the treebank has each example; the words of both are compared. *Shape:* (N,)."""
        assert self.treebank is not None
        place_of = {name: place for place, name in enumerate(_names(self.treebank))}
        names = _names(self)
        if missing := [name for name in names if name not in place_of]:
            lang, first = missing[0]
            raise SpecError(
                f"{len(missing)} of {len(names)} examples of {self.name} are not in the treebank "
                f"{self.treebank.name}, the first {first!r} ({lang}); name a treebank of the "
                "same sentences, backfilled in the same languages and split"
            )
        found = np.array([place_of[name] for name in names], np.int64)
        own = ParsedDataset(self._store, self._data)
        for start in range(0, len(self), _AT_ONCE):
            examples = np.arange(start, min(start + _AT_ONCE, len(self)))
            pairs = zip(own.records(examples), self.treebank.records(found[examples]), strict=True)
            for example, (ours, theirs) in zip(examples.tolist(), pairs, strict=True):
                if _is_gold(ours):
                    raise SpecError(
                        f"example {names[example][1]!r} of {self.name} has gold trees, which a "
                        "model would read and find again; name a dataset that a parser made"
                    )
                if [*map(_words, ours)] != [*map(_words, theirs)]:
                    raise SpecError(
                        f"example {names[example][1]!r} of {self.name} has other words or another "
                        f"text than in the treebank {self.treebank.name}; backfill the treebank "
                        "with `--expand-words`, and its files without the lines of multiword "
                        "tokens with `--mode pretokenized`"
                    )
        return found

    def word_counts(self) -> NDArray[np.int64]:
        """Words of each example, of all its segments. *Shape:* (N,)."""
        return self._word_counts

    @cached_property
    def _word_counts(self) -> NDArray[np.int64]:
        found = np.zeros(len(self), np.int64)
        for start in range(0, len(self), _COUNTED):
            examples = np.arange(start, min(start + _COUNTED, len(self)))
            keys = self._parse_keys(examples)
            counts = self._store.parses.word_counts([*chain(*keys)])
            self._check_present(examples, keys, counts)
            found[examples] = [sum(counts[key] for key in own) for own in keys]
        return found

    def _parse_keys(self, examples: NDArray[np.int64]) -> list[list[str]]:
        if self.treebank is not None:
            return self.treebank._parse_keys(self._places[examples])
        keys: list[list[str]] = self.columns(["parse_keys"], examples)["parse_keys"].to_pylist()
        return keys

    def _check_present(
        self, examples: NDArray[np.int64], keys: list[list[str]], found: Container[str]
    ) -> None:
        for example, own in zip(examples, keys, strict=True):
            if missing := [key for key in own if key not in found]:
                name = self.columns(["example_id"], np.array([example]))["example_id"][0]
                raise StoreError(
                    f"the parse {missing[0]} of example {name.as_py()!r} is not in the store; "
                    "write it again: repeat the backfill of the dataset"
                )

    def records(self, examples: NDArray[np.int64]) -> list[tuple[ParseRecord, ...]]:
        """The parses of each segment of some examples, by positions in sequence order."""
        return [*map(_unpacked, self.packed(examples))]

    def packed(self, examples: NDArray[np.int64]) -> list[PackedParses]:
        """Like `records`, but not unpacked, which takes up a tenth of the memory."""
        keys = self._parse_keys(examples)
        found = self._store.parses.get_packed([*chain(*keys)])
        self._check_present(examples, keys, found)
        return [tuple((key, found[key]) for key in own) for own in keys]

    @cached_property
    def has_gold(self) -> bool:
        """``True`` if some example has gold trees alone."""
        return any(True for _ in self.parses(gold_only=True))

    def values(self, column: str, gold_only: bool = True) -> tuple[str, ...]:
        """The values of ``deprel``, ``xpos`` or ``upos`` in the parses, in alphabetical order."""
        asked = (column, gold_only)
        if asked not in self._values:
            found: set[str | None] = set()
            for parses in self.parses(gold_only):
                found.update(*(getattr(parse, column) for parse in parses))
            self._values[asked] = tuple(sorted(filter(None, found)))
        return self._values[asked]

    def parses(self, gold_only: bool = True) -> Iterator[tuple[Parse, ...]]:
        """The parses of each example, once; ``gold_only`` leaves out those that parsers made."""
        for records in self._every_record(gold_only):
            if _is_gold(records) or not gold_only:
                yield tuple(record.parse for record in records)

    def made_by_parsers(self) -> Iterator[tuple[Parse, ...]]:
        """The parses of each example whose trees are not all gold, once of one that is repeated."""
        for records in self._every_record(gold_only=False):
            if not _is_gold(records):
                yield tuple(record.parse for record in records)

    def _every_record(self, gold_only: bool) -> Iterator[tuple[ParseRecord, ...]]:
        """The parses of each example, once of one that is repeated.

        Gold trees are only looked for where the parser is `GOLD`, if that is anywhere: what parsers
        made may be a hundred times as much.
        """
        _, examples = np.unique(self.rows.keys, axis=0, return_index=True)
        named = [self.parsers.get(one, {}).get("name") == GOLD for one in self.rows.parsers]
        if gold_only and any(named):
            examples = examples[np.array(named)[self.rows.parser[examples]]]
        for start in range(0, len(examples), _AT_ONCE):
            yield from self.records(np.sort(examples)[start : start + _AT_ONCE])

    def open_reader(
        self, stored: bool, offsets: bool = False, tokens: bool = False
    ) -> WindowReader:
        return ParsesReader(self, self._data.open_reader(stored, offsets, tokens))


def _names(data: FeatureDataset) -> list[tuple[str, str]]:
    """Language and id of each example, in sequence order."""
    ids: list[str] = data.columns(["example_id"])["example_id"].to_pylist()
    langs = [data.rows.parts[part][1] for part in data.rows.part.tolist()]
    return [*zip(langs, ids, strict=True)]


def _words(record: ParseRecord) -> tuple[str, list[int], list[int], list[str]]:
    parse = record.parse
    return parse.text, parse.word_start, parse.word_end, parse.form


class ParsesReader:
    """Reads examples with their parses."""

    def __init__(self, data: ParsedDataset, reader: WindowReader) -> None:
        self._parsed, self._reader = data, reader

    def fetch(self, examples: NDArray[np.int64], is_wanted: Callable[[], bool]) -> None:
        self._reader.fetch(examples, is_wanted)

    def read(self, examples: NDArray[np.int64]) -> Window:
        window = self._reader.read(examples)
        own = {field.name: getattr(window, field.name) for field in fields(window)}
        return ParsedWindow(**own, packed=self._parsed.packed(examples))


@dataclass(frozen=True)
class ParsedWindow(Window):
    """Examples with their parses, which are unpacked batch by batch.

    Those of a whole pool would take up gigabytes, and the first batch would have to wait for them.
    """

    packed: list[PackedParses] = field(default_factory=list)

    def batch(self, start: int, end: int) -> Window:
        window = super().batch(start, end)
        records = [*map(_unpacked, self.packed[start:end])]
        parses = [tuple(record.parse for record in own) for own in records]
        gold = np.array([*map(_is_gold, records)], bool)
        return replace(window, labels={**window.labels, "parses": parses, "is_gold": gold})


def _unpacked(packed: PackedParses) -> tuple[ParseRecord, ...]:
    return tuple(unpack_record(key, content) for key, content in packed)


def _is_gold(records: tuple[ParseRecord, ...]) -> bool:
    return all(record.mode == GOLD for record in records)
