"""The views that SQL sees, over the active files of the tables."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from featurestore.tables.card import ADDED_COLUMNS
from featurestore.tables.delta import Table, quoted
from featurestore.tables.encode.columns import empty_table
from featurestore.tables.encode.examples import LARGEST_MATRIX
from featurestore.tables.files import FileReader
from featurestore.tables.schema import EXAMPLE_COLUMNS
from featurestore.tables.snapshot import DataFile, arrow_dataset, snapshot_of
from syntax.trees.parse import WORD_COLUMNS

_LOG: Final = logging.getLogger(__name__)

_PER_WORD: Final = (*WORD_COLUMNS, "misc", "word_start", "word_end")

SENTENCES: Final = f"""
    create view sentences as
    with numbered as (
        select *, unnest(generate_series(1, len(sentence_first_word))) as n,
        from parses
    ), bounded as (
        select *, sentence_first_word[n] + 1 as a,
            coalesce(sentence_first_word[n + 1], len(form)) as z,
        from numbered
    )
    select key, lang, parser, mode, n - 1 as sentence,
        substring(text, sentence_start[n] + 1, sentence_end[n] - sentence_start[n]) as text,
        {", ".join(f"{name}[a:z] as {name}" for name in _PER_WORD)}
    from bounded
"""

WORDS: Final = f"""
    create view words as
    with numbered as (
        select *, unnest(generate_series(1, len(head))) as id,
        from sentences
    )
    select key, lang, parser, mode, sentence, id,
        {", ".join(f"{name}[id] as {name}" for name in _PER_WORD)}
    from numbered
"""
"""An item of each list: of lists that are unnested, DuckDB reads all, whatever a query asks for."""

_SAME_IN_ALL: Final = ", ".join((*ADDED_COLUMNS, *(name for name, _ in EXAMPLE_COLUMNS)))
"""Columns of every dataset. Labels are left out: they may be called ``n`` or ``length``."""

SEGMENTS: Final = f"""
    create view segments as
    with numbered as (
        select {_SAME_IN_ALL}, unnest(generate_series(1, len(segment_lengths))) as n,
        from examples
    ), bounded as (
        select *, segment_lengths[n] as length, list_sum(segment_lengths[:n]) as z,
            list_sum(token_counts[:n])::bigint as last_token, token_counts[n] as tokens_here,
        from numbered
    ), placed as (
        select *, (z - length + 1)::bigint as a, vector(head)[a:z] as heads,
            vector(token_offsets)[2 * (last_token - tokens_here) + 1:2 * last_token] as bounds,
        from bounded
    )
    select dataset, tokenizer, split, lang, seq, example_id, example_key, parser,
        n - 1 as segment, texts[n] as text, parse_keys[n] as parse_key, length,
        vector(input_ids)[a:z] as input_ids, heads as head,
        vector(word_ids)[a:z] as word_ids, vector(sentence_ids)[a:z] as sentence_ids,
        upos_tags(upos)[a:z] as upos, deprel_tags(deprel)[a:z] as deprel,
        case when length <= {LARGEST_MATRIX} then piece_distance(heads) end as distance,
        piece_depth(heads) as depth,
        case when length <= {LARGEST_MATRIX} then piece_ancestor(heads) end as ancestor,
        list_transform(generate_series(1, tokens_here), lambda i: substring(
            texts[n], bounds[2 * i - 1] + 1, bounds[2 * i] - bounds[2 * i - 1])) as tokens,
    from placed
"""

MADE_OF: Final = {"sentences": "parses", "words": "parses", "segments": "examples"}
"""Views over other views, and the table behind each."""

NAMES: Final = frozenset({*MADE_OF, *MADE_OF.values(), "drops", "fingerprints"})

_COPY: Final = "number among the rows of one key"
"""A column that exists only while repeated rows are left out; no label has its name."""


class TableRelations:
    """Tables of a store as relations of one connection, of no content with ``only_counts``.

    Only what people may ask for becomes a view, because DuckDB suggests views for a mistyped name.

    Attributes:
        files: The local files that the relations read.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, only_counts: bool = False) -> None:
        self.files: list[str] = []
        self._connection, self._only_counts = connection, only_counts

    def of(
        self,
        table: Table,
        handle: DeltaTable | None,
        unique_by: str | None = None,
        without: Set[str] = frozenset(),
    ) -> duckdb.DuckDBPyRelation:
        """A version of a table, with one row of each key; empty without a handle."""
        files = () if handle is None else snapshot_of(handle).files
        if self._only_counts and unique_by is None:
            # Reading a million parses' footers would take 0.6 s and 180 MB.
            return self._nulls(table, sum(file.rows for file in files if file.path not in without))
        damaged = FileReader(table.location).unreadable(file.path for file in files)
        for file in files:
            if file.path in damaged:
                _LOG.error("%s; its %s rows are left out", damaged[file.path], file.rows)
        paths = [file for file in files if file.path not in without | damaged.keys()]
        if handle is None or not paths:
            rows = self._connection.from_arrow(empty_table(table.layout.schema))
            return _shown(table, rows)
        if table.location.is_local:
            found = self._local(table, paths)
        else:  # through Arrow, which reads object stores without an extension of DuckDB
            from featurestore.sql.remote import RemoteFiles

            remote = RemoteFiles.of(arrow_dataset(table.location, paths, table.layout.schema))
            found = self._connection.from_arrow(remote)
        found = _shown(table, found)
        if unique_by is not None:
            number = f"row_number() over (partition by {unique_by})"
            found = found.project(f'*, {number} as "{_COPY}"').filter(f'"{_COPY}" = 1')
            found = found.project(f'* exclude ("{_COPY}")')
        return found

    def _nulls(self, table: Table, rows: int) -> duckdb.DuckDBPyRelation:
        empty = _shown(table, self._connection.from_arrow(empty_table(table.layout.schema)))
        columns = zip(empty.columns, empty.types, strict=True)
        nulls = ", ".join(f"null::{kind} as {_name(name)}" for name, kind in columns)
        return self._connection.sql(f"select {nulls} from range({rows})")

    def _local(self, table: Table, files: Sequence[DataFile]) -> duckdb.DuckDBPyRelation:
        """Local files, of which DuckDB opens one for the columns: all have the same."""
        paths = [f"{table.location.uri}/{file.path}" for file in files]
        # DuckDB takes a path for a pattern: these match nothing else.
        patterns = [re.sub(r"[\[*?]", r"[\g<0>]", path) for path in paths]
        self.files.extend(dict.fromkeys([*paths, *patterns]))  # DuckDB asks for leave to read both
        listed = ", ".join(map(quoted, patterns))
        # A language may be called "no" and a split "2020": partitions are strings.
        return self._connection.sql(
            f"from read_parquet([{listed}], "
            f"hive_types_autocast = false, hive_partitioning = {bool(table.layout.partition_by)})"
        )


def _shown(table: Table, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    hidden = table.layout.hidden
    names = [name for name in table.layout.schema.names if name not in hidden]
    return rows.project(", ".join(names)) if hidden else rows


def create_examples_view(
    connection: duckdb.DuckDBPyConnection,
    datasets: Sequence[tuple[duckdb.DuckDBPyRelation, str, str]],
) -> None:
    """The view ``examples``: all datasets, columns united by name, as text if types differ."""
    columns = [*((name, pa.string()) for name in ADDED_COLUMNS), *EXAMPLE_COLUMNS]
    empty = connection.from_arrow(empty_table(pa.schema(columns)))
    relations = [empty, *(relation for relation, _, _ in datasets)]
    names: dict[str, str] = {}
    for name in (name for relation in relations for name in relation.columns):
        names.setdefault(name.lower(), name)
    types = {**_label_types(relations), **_types(empty)}
    union = empty.project(_columns(names, types, empty))
    for relation, name, tokenizer in datasets:
        added = {"dataset": quoted(name), "tokenizer": quoted(tokenizer)}
        union = union.union(relation.project(_columns(names, types, relation, added)))
    union.create_view("examples")


def _types(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    """Types by name in lower case: SQL takes ``Label`` and ``label`` for one column."""
    names = [name.lower() for name in relation.columns]
    return dict(zip(names, map(str, relation.types), strict=True))


def _label_types(relations: Iterable[duckdb.DuckDBPyRelation]) -> dict[str, str]:
    """Type of each column of any relation; text where several have it with several types."""
    types: dict[str, str] = {}
    for relation in relations:
        for name, kind in _types(relation).items():
            types[name] = kind if types.get(name, kind) == kind else "VARCHAR"
    return types


def _columns(
    names: Mapping[str, str],
    types: Mapping[str, str],
    relation: duckdb.DuckDBPyRelation,
    added: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Columns as one relation of a union gives them: NULL where it has none of that name."""
    sources = {**{name.lower(): _name(name) for name in relation.columns}, **added}
    return ", ".join(
        f"{sources.get(key, 'null')}::{types[key]} as {_name(name)}" for key, name in names.items()
    )


def _name(column: str) -> str:
    escaped = column.replace('"', '""')
    return f'"{escaped}"'
