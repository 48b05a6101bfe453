"""Datasets whose parses are noisy, by a parser of their own, derived without parsing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from featurestore.dataset.dataset import FeatureDataset
from featurestore.maintenance.rules import possible_keys
from featurestore.records import DatasetHandle, ExampleRow, ParseRecord
from featurestore.store import FeatureStore
from featurestore.tables.card import DatasetCard
from featurestore.tables.encode.columns import binary_numbers
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.schema import MATRIX_BLOBS
from syntax.alignment import batch_features
from syntax.errors import UnknownKeyError
from syntax.fingerprint import Fingerprint, fingerprint
from syntax.trees.noise import Noise, noisy_parse

EXAMPLES: Final = 1_000

_ROW: Final = ("seq", "example_id", "parser", "texts", "parse_keys")


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """Counts of a noisy copy of a dataset.

    Attributes:
        written: Rows that the noisy dataset did not hold yet.
        words: Words of the texts that were written.
        heads, labels: Words with another head, or another relation.
    """

    examples: int = 0
    written: int = 0
    words: int = 0
    heads: int = 0
    labels: int = 0

    def __add__(self, other: NoiseReport) -> NoiseReport:
        return NoiseReport(
            self.examples + other.examples,
            self.written + other.written,
            self.words + other.words,
            self.heads + other.heads,
            self.labels + other.labels,
        )


def add_noise(store: FeatureStore, data: FeatureDataset, noise: Noise, name: str) -> NoiseReport:
    """Write a copy of a dataset whose parses are noisy; what is written already stays.

    Under the dataset's own name it has the examples twice, as after a backfill by another parser:
    readers then choose one.
    """
    report = NoiseReport()
    for part in data.parts:
        chosen = np.flatnonzero(data.rows.part == data.rows.parts.index(part))
        copy = _Copy(store, data, noise, _handle(data, part, name))
        for start in range(0, len(chosen), EXAMPLES):
            report += copy.write(chosen[start : start + EXAMPLES])
    return report


def noisy_parser(store: FeatureStore, parser: str, noise: Noise) -> Fingerprint:
    """Describe the parser that gives another one's parses with noise; return its fingerprint."""
    content = {"backend": "noise", "version": 1, "of": parser, **noise.content}
    key = fingerprint(content)
    known = store.fingerprints.all("parser").get(parser, {})
    what = "+".join(sorted(set(noise.kinds)))
    title = f"{known.get('name', parser[:12])}~{what}-{noise.share:g}-{noise.seed}"
    described = {**known, **content, "name": title}
    described.pop("las", None)  # of the trees without noise
    if several := known.get("parsers"):  # of the texts of an example, in their order
        described["parsers"] = [noisy_parser(store, each, noise) for each in several]
    store.describe(key, "parser", described)
    return key


@dataclass(frozen=True)
class _Copy:
    store: FeatureStore
    data: FeatureDataset
    noise: Noise
    handle: DatasetHandle

    def write(self, examples: NDArray[np.int64]) -> NoiseReport:
        kept = [name for name in self.data.card.layout().schema.names if name not in _MADE]
        rows = self.data.columns([*kept, "example_key", "parser", "parse_keys"], examples)
        keys = [
            fingerprint(["noise.v1", noisy_parser(self.store, parser, self.noise), key])
            for parser, key in zip(
                rows["parser"].to_pylist(), rows["example_key"].to_pylist(), strict=True
            )
        ]
        spec = self.handle.spec
        part = (spec.name, self.handle.tokenizer_fingerprint, spec.split, spec.lang)
        held = self.store.features.existing(*part, keys)
        new = [at for at, key in enumerate(keys) if key not in held]
        report = NoiseReport(examples=len(keys), written=len(new))
        if not new:
            return report
        return report + self._append(rows.take(new), [keys[at] for at in new])

    def _append(self, rows: pa.Table, keys: list[str]) -> NoiseReport:
        before = self._records(rows)
        after = {record.key: self._noisy(record) for record in before}
        known = self.store.parses.contains([record.key for record in after.values()])
        new = [r for r, here in zip(after.values(), known, strict=True) if not here]
        self.store.parses.append(new)
        self.store.features.append_encoded(self.handle, self._encoded(rows, keys, after))
        self.store.parses.keep(list(after.values()))
        return _changes(before, list(after.values()))

    def _records(self, rows: pa.Table) -> list[ParseRecord]:
        keys = list(dict.fromkeys(rows["parse_keys"].combine_chunks().flatten().to_pylist()))
        found = self.store.parses.get_many(keys)
        for key in keys:
            if key not in found:
                raise UnknownKeyError(
                    f"the parse {key} is no longer in the store; send the backfill again", key=key
                )
        return list(found.values())

    def _noisy(self, record: ParseRecord) -> ParseRecord:
        parser = noisy_parser(self.store, record.parser, self.noise)
        made = replace(
            record, parser=parser, parse=noisy_parse(record.parse, self.noise, record.key)
        )
        keys = dict(zip(possible_keys(record), possible_keys(made), strict=True))
        return replace(made, key=keys.get(record.key) or fingerprint([parser, record.key]))

    def _encoded(
        self, rows: pa.Table, keys: Sequence[str], parses: dict[str, ParseRecord]
    ) -> pa.Table:
        spec = self.handle.spec
        card = replace(DatasetCard.of(self.handle), labels=())
        parsers = {
            parser: noisy_parser(self.store, parser, self.noise)
            for parser in rows["parser"].unique().to_pylist()
        }
        examples = list(_example_rows(rows, keys, parsers, parses))
        made = encode_examples(card, spec.split, spec.lang, examples, self.handle.matrices)
        layout = self.data.card.layout().schema
        columns = {name: (made if name in _MADE else rows)[name] for name in layout.names}
        return pa.table(columns, schema=layout)


def _example_rows(
    rows: pa.Table,
    keys: Sequence[str],
    parsers: dict[str, Fingerprint],
    parses: dict[str, ParseRecord],
) -> Iterator[ExampleRow]:
    parse_keys = rows["parse_keys"].combine_chunks().flatten().to_pylist()
    segments = iter(
        batch_features(
            [parses[key].parse for key in parse_keys],
            binary_numbers(rows["input_ids"], "int32"),
            binary_numbers(rows["offsets"], "int32").reshape(-1, 2),
            rows["segment_lengths"].combine_chunks().flatten().to_pylist(),
        )
    )
    for row, key in zip(rows.select(_ROW).to_pylist(), keys, strict=True):
        records = [parses[name] for name in row["parse_keys"]]
        yield ExampleRow(
            seq=row["seq"],
            example_id=row["example_id"],
            example_key=key,
            parser=parsers[row["parser"]],
            texts=tuple(row["texts"]),
            parse_keys=tuple(record.key for record in records),
            segments=tuple(next(segments) for _ in records),
        )


def _changes(before: Sequence[ParseRecord], after: Sequence[ParseRecord]) -> NoiseReport:
    pairs = [(old.parse, new.parse) for old, new in zip(before, after, strict=True)]
    return NoiseReport(
        words=sum(old.word_count for old, _ in pairs),
        heads=sum(a != b for old, new in pairs for a, b in zip(old.head, new.head, strict=True)),
        labels=sum(
            a != b for old, new in pairs for a, b in zip(old.deprel, new.deprel, strict=True)
        ),
    )


def _handle(data: FeatureDataset, part: tuple[str, str], name: str) -> DatasetHandle:
    card, spec = data.card, data.spec
    split, lang = part
    first = np.flatnonzero(data.rows.part == data.rows.parts.index(part))[:1]
    return DatasetHandle(
        spec=replace(
            spec, name=name, split=split, lang=lang, source=f"{spec.source} ({data.name}, noisy)"
        ),
        tokenizer=card.tokenizer,
        tokenizer_fingerprint=card.tokenizer_fingerprint,
        special_tokens=card.special_tokens,
        matrices=bool(data.columns([MATRIX_BLOBS[0]], first)[MATRIX_BLOBS[0]][0].is_valid),
    )


_MADE: Final = frozenset(
    {"split", "lang", "example_key", "parser", "parse_keys"}
    | {"head", "word_ids", "upos", "deprel", "sentence_ids"}
    | {*MATRIX_BLOBS}
)
"""Columns that noise changes, and those of the partition; all others are kept as they are."""
