"""Deletion of texts: their parses, and the examples that use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from featurestore.store import FeatureStore
from featurestore.tables.card import DatasetCard
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import list_parts, one_array
from featurestore.tables.files import FileGoneError, FileReader
from featurestore.tables.snapshot import DataFile
from featurestore.tables.states import states_tables
from syntax.errors import SpecError, StoreError, UnknownDatasetError, UnknownKeyError

Place = tuple[str, str, str, str]
"""Dataset, tokenizer, split and language."""


@dataclass(frozen=True)
class DeletedExamples:
    """Examples of one split and language that use a deleted parse."""

    dataset: str
    tokenizer: str
    split: str
    lang: str
    examples: int


@dataclass
class Deleted:
    """Result of a deletion, or of a dry run the expected one.

    Attributes:
        pins: Pins whose version still holds such an example, or may hold one because it cannot be
            read. Until they are forgotten, a vacuum keeps it on disk.
        same_text: Keys of other parses of the same texts (by another parser, or in another mode
            or language); they stay.
    """

    dry_run: bool
    keys: list[str]
    examples: int = 0
    datasets: list[DeletedExamples] = field(default_factory=list)
    pins: list[str] = field(default_factory=list)
    same_text: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def delete_parses(store: FeatureStore, keys: Sequence[str], dry_run: bool = False) -> Deleted:
    """Delete parses and every example that uses one: both hold the text.

    Drops of these examples and the states that encoders left for them go first, then the examples,
    and a parse only when no example uses it. So the same call finishes the work of a killed one,
    for as long as anything is left: examples keep the key and the text of a parse that is gone,
    such as one in a damaged file. A second look finds an example that another writer appends in the
    meantime. Older versions of the tables keep the texts on disk until `vacuum_store` deletes their
    files, and pinned versions for as long as the pin.

    Raises:
        UnknownKeyError: Neither a parse nor an example has a key; nothing was deleted.
        StoreBusyError: Writers kept winning; what was deleted so far stays deleted.
    """
    report = Deleted(dry_run, list(dict.fromkeys(keys)))
    store.flush()
    texts = {text for text, _ in texts_of(store, report.keys).values()}
    same_text = store.parses.keys_of_texts(texts)
    report.same_text = [key for key in same_text if key not in report.keys]
    examples = _Examples(store, report.keys)
    report.pins = examples.pins()
    counts = _delete(store, examples, report)
    report.datasets = [DeletedExamples(*place, count) for place, count in sorted(counts.items())]
    report.examples = sum(counts.values())
    return report


def texts_of(store: FeatureStore, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Text and language of parses, by key; of those that are gone, as the examples have them."""
    store.parses.refresh()
    records = store.parses.get_many(keys)
    texts = {key: (record.parse.text, record.lang) for key, record in records.items()}
    if missing := [key for key in keys if key not in texts]:
        texts.update({key: (text, lang) for key, text, lang in _in_examples(store, "key", missing)})
    if missing := [key for key in keys if key not in texts]:
        raise unknown_parses(missing)
    return texts


def _in_examples(
    store: FeatureStore, column: Literal["key", "text"], values: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Key, text and language of the segments of examples that have one of some keys or texts."""
    query = f"""
        select distinct key, text, lang from (
            select unnest(parse_keys) as key, unnest(texts) as text, lang from examples
        ) where {column} in (select unnest($values))
    """
    return store.sql(query, {"values": list(values)}).fetchall()


def unknown_parses(keys: Sequence[str]) -> UnknownKeyError:
    return UnknownKeyError(
        f"the store has no parse under {', '.join(keys)}; keys are in the answers of /parse, and a "
        "parse may have been deleted since",
        keys=list(keys),
    )


def keys_of_text(store: FeatureStore, text: str) -> list[str]:
    """Keys of all parses of exactly this text, including those that only examples have."""
    kept = [key for key, _, _ in _in_examples(store, "text", [text])]
    keys = sorted({*store.parses.keys_of_texts([text]), *kept})
    if not keys:
        raise UnknownKeyError(
            "the store has no parse of this text; it must be given as it was sent, character for "
            "character (tokens are joined by single spaces)"
        )
    return keys


def keys_of_example(
    store: FeatureStore,
    dataset: str,
    example_id: str,
    split: str | None = None,
    lang: str | None = None,
) -> list[str]:
    """Parse keys of all texts of one example, of any tokenizer and parser."""
    wanted = {"dataset": dataset, "example_id": example_id, "split": split, "lang": lang}
    chosen = {name: value for name, value in wanted.items() if value is not None}
    where = " and ".join(f"{name} = ${name}" for name in chosen)
    query = f"select distinct split, lang, parse_keys from examples where {where}"
    rows = store.sql(query, chosen).fetchall()
    if not rows:
        raise UnknownKeyError(f"dataset {dataset!r} has no example {example_id!r} there")
    parts = sorted({f"{split}/{lang}" for split, lang, _ in rows})
    if len(parts) > 1:
        raise SpecError(
            f"{', '.join(parts)} of dataset {dataset!r} all have an example {example_id!r}; name "
            "the split and the language",
            parts=parts,
        )
    return list(dict.fromkeys(key for _, _, keys in rows for key in keys))


def _delete(store: FeatureStore, examples: _Examples, report: Deleted) -> Counter[Place]:
    """Delete in rounds until no example is found; count the examples by place."""
    counts: Counter[Place] = Counter()
    is_first = True
    while (found := list(examples.new())) or is_first:
        is_first = False
        for card, here in found:
            counts.update(here.values())
            if not report.dry_run:
                _delete_examples(store, card, sorted({key for _, key in here}))
        if report.dry_run:
            break
        store.parses.delete(report.keys)
    return counts


def _delete_examples(store: FeatureStore, card: DatasetCard, keys: Sequence[str]) -> None:
    beside = [table for path, table in states_tables(store.root) if f"/{card.path}/" in path]
    for table in (*beside, store.drops.table):
        reader, wanted = FileReader(table.location), pa.array(keys, pa.string())
        columns = (reader.columns(x.path, ["example_key"]) for x in table.snapshot().files)
        if any(pc.any(pc.is_in(rows["example_key"], wanted)).as_py() for rows in columns):
            table.delete("example_key", keys)
    store.features.delete(card, keys)  # last: a repeated deletion finds the others by them


class _Examples:
    """The examples that use one of some parses."""

    def __init__(self, store: FeatureStore, keys: Sequence[str]) -> None:
        self._store = store
        self._keys = pa.array(keys, pa.string())
        self._seen: set[tuple[str, str]] = set()

    def new(self) -> Iterator[tuple[DatasetCard, dict[tuple[Place, str], Place]]]:
        """By dataset, the examples in files that were not there the last time, each once."""
        for card, table in self._store.features.tables():
            found: dict[tuple[Place, str], Place] = {}
            reader = FileReader(table.location)
            for file in table.snapshot().files:
                if (card.path, file.path) not in self._seen:
                    self._seen.add((card.path, file.path))
                    place = (card.name, card.tokenizer, *file.part)
                    found.update({(place, key): place for key in self._in(reader, file)})
            if found:
                yield card, found

    def pins(self) -> list[str]:
        """The pins whose version holds such an example, or cannot be read."""
        tables = {card.path: table for card, table in self._store.features.tables()}
        return [
            pin.name
            for pin in self._store.pins.all().values()
            if pin.table in tables and self._may_be_in(tables[pin.table], pin.version)
        ]

    def _may_be_in(self, table: Table, version: int) -> bool:
        reader = FileReader(table.location)
        try:
            for file in table.snapshot(version).files:
                with suppress(FileGoneError):  # a missing file holds nothing
                    if self._in(reader, file):
                        return True
        except (StoreError, UnknownDatasetError):  # a broken pin must not keep a text in the store
            return True
        return False

    def _in(self, reader: FileReader, file: DataFile) -> list[str]:
        rows = reader.columns(file.path, ["example_key", "parse_keys"])
        bounds, values = list_parts(rows["parse_keys"])
        owners = np.repeat(np.arange(len(rows)), np.diff(bounds))
        used = pc.is_in(values, self._keys).to_numpy(zero_copy_only=False)
        keys = one_array(rows["example_key"])
        return list(map(str, keys.take(pa.array(np.unique(owners[used]))).to_pylist()))
