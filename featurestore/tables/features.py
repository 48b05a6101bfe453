"""The dataset tables: one per dataset and tokenizer, partitioned by split and language."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path, PurePath
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from featurestore.records import (
    DatasetHandle,
    DatasetInfo,
    ExampleRow,
    Part,
    Transaction,
    key_bytes,
)
from featurestore.tables.card import DatasetCard
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import empty_table
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.fingerprints import FingerprintTable
from featurestore.tables.index import KeyIndex, keys_of
from featurestore.tables.log import open_table
from featurestore.tables.lookup import KeyLookup
from featurestore.tables.root import StoreRoot
from featurestore.tables.rows import read_row_index
from featurestore.tables.snapshot import Snapshot, in_partition
from syntax.errors import SpecError, UnknownDatasetError, UnknownTokenizerError
from syntax.fingerprint import fingerprint
from syntax.registry import unknown_name

ROW_GROUP_PIECES: Final = 65_536
"""Wordpieces in a row group, about: an eighth of a megabyte of vectors, compressed. Streams read
chunks of four times as many; of a group that is cut by two chunks both decode all."""

ROW_GROUP_BYTES: Final = 1 << 20

REPLACED: Final = 500
"""Repeated examples that one commit removes."""


class FeatureTables:
    """The datasets of a store. Safe for threads; processes share the location."""

    def __init__(
        self, root: StoreRoot, fingerprints: FingerprintTable, refresh_seconds: float = 0.0
    ) -> None:
        self.location = root.location.child("datasets")
        self._root = root
        self._fingerprints = fingerprints
        self._refresh_seconds = refresh_seconds
        self._cards: dict[str, DatasetCard] = {}
        self._lookups: dict[tuple[str, str, str], KeyLookup] = {}
        self._lock = threading.Lock()

    def append(
        self,
        dataset: DatasetHandle,
        rows: Sequence[ExampleRow],
        transaction: Transaction | None = None,
    ) -> bool:
        """Append examples in one commit; the table is created when missing.

        Returns ``False`` for no rows, and for an applied transaction.
        """
        if not rows:
            return False
        card = self._agreed(DatasetCard.of(dataset))
        spec = dataset.spec
        data = encode_examples(card, spec.split, spec.lang, rows, dataset.matrices)
        pieces = sum(len(segment.input_ids) for row in rows for segment in row.segments)
        return self.append_encoded(
            dataset, data, transaction, max(1, ROW_GROUP_PIECES * len(rows) // max(1, pieces))
        )

    def append_encoded(
        self,
        dataset: DatasetHandle,
        data: pa.Table,
        transaction: Transaction | None = None,
        row_group: int = 1024,
    ) -> bool:
        """As `append`, of rows with all columns of the table, such as another dataset's."""
        card = self._agreed(DatasetCard.of(dataset))
        origin = {"tokenizer": dataset.tokenizer_fingerprint, **asdict(dataset.spec)}
        self._fingerprints.describe(fingerprint(origin), "split", origin)
        written = self._table(card).append(data, transaction, row_group=row_group)
        self._expire(card)
        return written

    def append_new(self, dataset: DatasetHandle, rows: Sequence[ExampleRow]) -> int:
        """Append, in one commit, the examples that their partition lacks, each once; count them.

        Two writers that race may both append an example; readers see one of the two.
        """
        spec = dataset.spec
        part = (spec.name, dataset.tokenizer_fingerprint, spec.split, spec.lang)
        by_key = {row.example_key: row for row in rows}
        held = self.existing(*part, list(by_key))
        new = [row for key, row in by_key.items() if key not in held]
        self.append(dataset, new)
        return len(new)

    def check(self, dataset: DatasetHandle) -> None:
        """Refuse a handle whose rows `append` would refuse."""
        self._agreed(DatasetCard.of(dataset))

    def existing(
        self, name: str, tokenizer: str, split: str, lang: str, example_keys: Sequence[str]
    ) -> set[str]:
        """The ``example_keys`` that a partition of a dataset holds; it need not exist."""
        card = self.card_of(name, tokenizer)
        if card is None or not example_keys:
            return set()
        lookup = self._lookup(name, card.folder, split, lang)
        lookup.refresh(force=True)  # other processes may have deleted what this one knows
        found = lookup.find(example_keys).found
        return {key for key, here in zip(example_keys, found.tolist(), strict=True) if here}

    def example_ids(
        self, name: str, tokenizer: str, split: str, lang: str, parser: str
    ) -> Iterator[list[str]]:
        """Ids of the examples of a partition that one parser parsed, file by file.

        Those in files that cannot be read count as missing. The dataset need not exist.
        """
        card = self.card_of(name, tokenizer)
        if card is None:
            return
        table = self._table(card)
        reader = FileReader(table.location)
        for file in in_partition(table.snapshot().files, {"split": split, "lang": lang}):
            with suppress(UnreadableFileError):
                rows = reader.columns(file.path, ["example_id", "parser"])
                yield rows.filter(pc.equal(rows["parser"], parser))["example_id"].to_pylist()

    def delete(self, card: DatasetCard, example_keys: Sequence[str]) -> None:
        """Remove examples from a dataset in one commit; older versions keep them until a vacuum."""
        table = self._table(card)
        table.delete("example_key", example_keys, _packed_row_group(table.snapshot()))
        self._expire(card)

    def card_of(self, name: str, tokenizer: str) -> DatasetCard | None:
        cards = (card for card in self._cards_of(name) if card.tokenizer_fingerprint == tokenizer)
        return next(cards, None)

    def version_of(self, card: DatasetCard) -> int:
        return self._table(card).snapshot().version

    def has_repeats(self, card: DatasetCard, version: int | None = None) -> bool:
        lookups = self._part_lookups(card, version)
        return any(lookup.has_repeats(version) for lookup in lookups)

    def unreadable(self, card: DatasetCard) -> frozenset[str]:
        """Files of a dataset that the last look for examples skipped: damaged or gone."""
        return frozenset(path for one in self._part_lookups(card) for path in one.unreadable)

    def repeats(self, card: DatasetCard) -> int:
        return sum(len(lookup.repeated_keys()) for lookup in self._part_lookups(card))

    def _part_lookups(self, card: DatasetCard, version: int | None = None) -> Iterator[KeyLookup]:
        for part in sorted({file.part for file in self._table(card).snapshot(version).files}):
            yield self._lookup(card.name, card.folder, *part)

    def compact(self) -> None:
        """Keep one row of each example, join small files, sort each partition by ``seq``."""
        for card, table, snapshot in list(self._all()):
            for split, lang in sorted({file.part for file in snapshot.files}):
                lookup = self._lookup(card.name, card.folder, split, lang)
                if repeated := lookup.repeated_keys():
                    _remove_repeats(table, {"split": split, "lang": lang}, repeated)
            table.sort("seq", row_group=_packed_row_group(snapshot))

    def infos(self) -> list[DatasetInfo]:
        infos = []
        for card, _, snapshot in self._all():
            rows: Counter[tuple[str, str]] = Counter()
            for file in snapshot.files:
                rows[file.part] += file.rows
            info = DatasetInfo(
                name=card.name,
                tokenizer=card.tokenizer,
                tokenizer_fingerprint=card.tokenizer_fingerprint,
                version=snapshot.version,
                fields=card.fields,
                labels=tuple(label.name for label in card.labels),
                parts=tuple(Part(*part, count) for part, count in sorted(rows.items())),
            )
            infos.append(info)
        return infos

    def find(self, name: str, tokenizer: str | None = None) -> tuple[DatasetCard, Table]:
        """A dataset by name, and by name, folder or fingerprint prefix of its tokenizer."""
        cards = list(self._cards_of(name))
        if not cards:
            known = self.location.folders()
            raise unknown_name(
                "dataset",
                name,
                known,
                UnknownDatasetError,
                remedy=f"`parsebank backfill` makes one in {self.location.uri}.",
            )
        chosen = [card for card in cards if tokenizer is None or _is(card, tokenizer)]
        if not chosen:
            known = [card.tokenizer for card in cards]
            raise unknown_name(
                f"tokenizer of dataset {name!r}", str(tokenizer), known, UnknownTokenizerError
            )
        if len(chosen) > 1:
            choices = [f"{card.tokenizer} ({card.tokenizer_fingerprint[:12]})" for card in chosen]
            raise SpecError(
                f"dataset {name!r} exists for several tokenizers; choose one of them with "
                f"`tokenizer=`, by name or fingerprint: {', '.join(choices)}",
                tokenizers=[card.tokenizer_fingerprint for card in chosen],
            )
        return chosen[0], self._table(chosen[0])

    def tables(self, name: str | None = None) -> list[tuple[DatasetCard, Table]]:
        names = self.location.folders() if name is None else [name]
        cards = [card for one in names for card in self._cards_of(one)]
        return [(card, self._table(card)) for card in cards]

    def _all(self) -> Iterator[tuple[DatasetCard, Table, Snapshot]]:
        for name in self.location.folders():
            for card in self._cards_of(name):
                table = self._table(card)
                yield card, table, table.snapshot()

    def _cards_of(self, name: str) -> Iterator[DatasetCard]:
        for folder in self.location.child(name).folders():
            card = self._card(name, folder)
            if card is not None:
                yield card

    def _card(self, name: str, folder: str) -> DatasetCard | None:
        path = f"{name}/{folder}"
        if path not in self._cards:
            table = open_table(self.location.child(name, folder))
            if table is None:
                return None
            self._cards[path] = DatasetCard.read(table)
        return self._cards[path]

    def _agreed(self, card: DatasetCard) -> DatasetCard:
        written = self._card(card.name, card.folder)
        if written is None:
            card.check_new()
            return card
        written.check_same(card)
        return written

    def _table(self, card: DatasetCard) -> Table:
        return self._root.table(card.layout(), "datasets", card.name, card.folder)

    def _lookup(self, name: str, folder: str, split: str, lang: str) -> KeyLookup:
        path = f"{name}/{folder}"
        with self._lock:
            if (path, split, lang) not in self._lookups:
                table = self._table(self._cards[path])
                self._lookups[path, split, lang] = KeyLookup(
                    table,
                    FileReader(table.location),
                    "example_key",
                    {"split": split, "lang": lang},
                    self._refresh_seconds,
                )
            return self._lookups[path, split, lang]

    def _expire(self, card: DatasetCard) -> None:
        with self._lock:
            for (path, _, _), lookup in self._lookups.items():
                if path == f"{card.name}/{card.folder}":
                    lookup.expire()


def _remove_repeats(table: Table, partition: Mapping[str, str], keys: Sequence[str]) -> None:
    """Keep one row of each of these examples: the one that readers of the dataset see."""
    for start in range(0, len(keys), REPLACED):
        some = keys[start : start + REPLACED]
        table.replace(partial(_seen_rows, table, partition, some), "example_key", partition)


def _seen_rows(table: Table, partition: Mapping[str, str], keys: Sequence[str]) -> pa.Table:
    reader = FileReader(table.location, schema=table.layout.schema)
    index = read_row_index(reader, in_partition(table.snapshot().files, partition))
    wanted = KeyIndex()
    wanted.add(keys_of(key_bytes(list(keys))), 0)
    chosen = index.select(wanted.find(index.keys).found)
    columns = [name for name in table.layout.schema.names if name not in partition]
    if not len(chosen):  # all deleted
        return empty_table(table.layout.schema)
    rows = pa.concat_tables(
        reader.rows(chosen.paths[file], chosen.row[chosen.file == file], columns)
        for file in np.unique(chosen.file)
    )
    for name, value in partition.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return rows.select(table.layout.schema.names)


def _packed_row_group(snapshot: Snapshot) -> int:
    """Rows in a row group of a table that is rewritten; the log tells bytes, but not pieces."""
    rows = sum(file.rows for file in snapshot.files)
    size = sum(file.size for file in snapshot.files)
    return max(1, ROW_GROUP_BYTES * rows // max(1, size))


def _is(card: DatasetCard, tokenizer: str) -> bool:
    names = (card.tokenizer, PurePath(card.tokenizer).name)
    return (
        tokenizer in names
        or str(Path(tokenizer).resolve()) == card.tokenizer
        or (len(tokenizer) >= 6 and card.tokenizer_fingerprint.startswith(tokenizer))
    )
