"""Exports of datasets: a folder for ``datasets.load_dataset``, CoNLL-U, and spaCy's documents."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from featurestore.dataset.dataset import FeatureDataset
from featurestore.reports.card import dataset_card
from featurestore.store import FeatureStore
from featurestore.tables.encode.columns import binary_numbers, list_column, list_parts
from featurestore.tables.schema import TOKENS, VECTORS
from syntax.errors import SpecError
from syntax.extras import missing_extra
from syntax.trees.conllu import format_conllu
from syntax.trees.documents import spacy_columns
from syntax.trees.parse import Parse
from syntax.trees.ud import DEPREL, UPOS

_ROWS: Final = 2_000

_FILE_ROWS: Final = 100_000

_TAGS: Final = {"upos": UPOS, "deprel": DEPREL}
_PLAIN: Final = ("example_id", "texts", "parse_keys", "segment_lengths")


@dataclass(frozen=True)
class Exported:
    """Files of an export, and the number of examples in them."""

    files: tuple[Path, ...]
    examples: int


def export_dataset(data: FeatureDataset, folder: Path) -> Exported:
    """Write a dataset as Parquet with lists for vectors, and a dataset card (``README.md``).

    ``datasets.load_dataset(str(folder), LANG)`` reads it: one configuration per language. Pieces
    are neither truncated nor paired, as in the store; ``upos`` and ``deprel`` are names. Matrices
    are left out, since they follow from ``head``.
    """
    if folder.exists() and any(folder.iterdir()):
        raise SpecError(f"{folder} is not empty; name a new folder", path=str(folder))
    if not len(data):
        raise SpecError(f"dataset {data.name!r} has no examples to export", dataset=data.name)
    files = [file for part in np.unique(data.rows.part) for file in _write_part(data, part, folder)]
    (folder / "README.md").write_text(dataset_card(data), encoding="utf-8")
    return Exported(tuple(files), len(data))


def export_conllu(store: FeatureStore, keys: Iterable[str], file: TextIO) -> int:
    """Write stored parses as CoNLL-U, a document for each text; return their number.

    ``# newdoc id`` has the key, and ``# sent_id`` the key and the number of the sentence. Parses
    that are not in the store are left out.
    """
    written = 0
    for key, parse in _stored(store, keys):
        file.write(f"# newdoc id = {key}\n{format_conllu(parse.document(key))}")
        written += 1
    return written


def export_spacy(store: FeatureStore, keys: Iterable[str], path: Path) -> int:
    """Write stored parses as a ``spacy.tokens.DocBin``, a document for each text; count them.

    Multiword tokens become what `syntax.trees.documents.spacy_columns` says. ``user_data`` has the
    key. Parses that are not in the store are left out. spaCy writes the file at once, so all
    documents are in memory.
    """
    if path.exists():
        raise SpecError(f"{path} exists; name a new file", path=str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of spaCy's own imports
        try:
            from spacy.tokens import Doc, DocBin
            from spacy.vocab import Vocab
        except ImportError as error:
            raise missing_extra(f"documents of spaCy need spaCy ({error})", "spacy") from None
    binary, vocabulary = DocBin(store_user_data=True), Vocab()
    for key, parse in _stored(store, keys):
        document = Doc(vocabulary, **spacy_columns(parse))
        document.user_data["key"] = key
        binary.add(document)
    binary.to_disk(path)
    return len(binary)


def parse_keys(data: FeatureDataset) -> Iterator[str]:
    for rows in _chunks(data, np.arange(len(data)), ["parse_keys"]):
        yield from rows["parse_keys"].combine_chunks().flatten().to_pylist()


def _stored(store: FeatureStore, keys: Iterable[str]) -> Iterator[tuple[str, Parse]]:
    """Each key once, with its parse, if it is in the store."""
    for batch in _batches(list(dict.fromkeys(keys)), _ROWS):
        for key, record in store.parses.get_many(batch).items():
            yield key, record.parse


def _write_part(data: FeatureDataset, part: int, folder: Path) -> list[Path]:
    split, lang = data.rows.parts[part]
    rows = np.flatnonzero(data.rows.part == part)
    groups = _batches(rows, _FILE_ROWS)
    names = [f"{split}-{n:05}-of-{len(groups):05}.parquet" for n in range(len(groups))]
    paths = [folder / "data" / lang / name for name in names]
    for path, group in zip(paths, groups, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_file(data, group, path)
    return paths


def _write_file(data: FeatureDataset, rows: NDArray[np.intp], path: Path) -> None:
    labels = [label.name for label in data.labels]
    columns = [*_PLAIN, *VECTORS, *TOKENS, *labels]
    writer = None
    for chunk in _chunks(data, rows, columns):
        table = _readable(chunk, labels)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _chunks(data: FeatureDataset, rows: NDArray[np.intp], columns: list[str]) -> Iterator[pa.Table]:
    """Stored rows in the requested order, some at a time."""
    for chunk in _batches(rows, _ROWS):
        files = data.rows.file[chunk]
        tables, places = [], []
        for file in np.unique(files):
            here = np.flatnonzero(files == file)
            path = data.rows.paths[file]
            tables.append(data.reader.rows(path, data.rows.row[chunk[here]], columns))
            places.append(here)
        order = np.argsort(np.concatenate(places))
        yield pa.concat_tables(tables).take(pa.array(order))


def _readable(rows: pa.Table, labels: list[str]) -> pa.Table:
    offsets, values = list_parts(rows["segment_lengths"])
    pieces = np.add.reduceat(np.append(values.to_numpy(), 0), offsets[:-1])
    content: dict[str, Any] = {name: rows[name] for name in _PLAIN}
    for name, dtype in VECTORS.items():
        content[name] = _list(binary_numbers(rows[name], dtype), pieces, name)
    content["token_counts"] = rows["token_counts"]
    counts = [sum(row or ()) for row in rows["token_counts"].to_pylist()]
    content["token_offsets"] = _list(
        binary_numbers(rows["token_offsets"], "int32"), np.array(counts), "offsets"
    )
    return pa.table(content | {name: rows[name] for name in labels})


def _list(numbers: NDArray[Any], pieces: NDArray[np.int64], name: str) -> pa.ListArray:
    if name in _TAGS:
        names = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(_TAGS[name]))
        return list_column(pieces.tolist(), names.dictionary_decode())
    if name == "offsets":
        pairs = pa.FixedSizeListArray.from_arrays(pa.array(numbers), 2)
        return list_column(pieces.tolist(), pairs)
    return list_column(pieces.tolist(), pa.array(numbers))


def _batches(items: Any, size: int) -> list[Any]:
    return [items[start : start + size] for start in range(0, len(items), size)]
