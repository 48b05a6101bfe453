"""The views that SQL sees, over the active files of the tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import duckdb
import pyarrow as pa

from featurestore.sql.remote import RemoteFiles
from featurestore.tables.card import ADDED_COLUMNS
from featurestore.tables.delta import Table, quoted
from featurestore.tables.schema import EXAMPLE_COLUMNS
from featurestore.tables.snapshot import arrow_dataset

SENTENCES: Final = """
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
        form[a:z] as form, lemma[a:z] as lemma, upos[a:z] as upos, xpos[a:z] as xpos,
        feats[a:z] as feats, head[a:z] as head, deprel[a:z] as deprel, misc[a:z] as misc,
        word_start[a:z] as word_start, word_end[a:z] as word_end,
    from bounded
"""

WORDS: Final = """
    create view words as
    select key, lang, parser, mode, sentence,
        unnest(generate_series(1, len(form))) as id, unnest(form) as form,
        unnest(lemma) as lemma, unnest(upos) as upos, unnest(xpos) as xpos,
        unnest(feats) as feats, unnest(head) as head, unnest(deprel) as deprel,
        unnest(misc) as misc, unnest(word_start) as word_start, unnest(word_end) as word_end,
    from sentences
"""

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
        select *, (z - length + 1)::bigint as a,
            vector(token_offsets)[2 * (last_token - tokens_here) + 1:2 * last_token] as bounds,
        from bounded
    )
    select dataset, tokenizer, split, lang, seq, example_id, example_key, parser,
        n - 1 as segment, texts[n] as text, parse_keys[n] as parse_key, length,
        vector(input_ids)[a:z] as input_ids, vector(head)[a:z] as head,
        vector(word_ids)[a:z] as word_ids, vector(sentence_ids)[a:z] as sentence_ids,
        upos_tags(upos)[a:z] as upos, deprel_tags(deprel)[a:z] as deprel,
        distance[n] as distance, depth[n] as depth, ancestor[n] as ancestor,
        list_transform(generate_series(1, tokens_here), lambda i: substring(
            texts[n], bounds[2 * i - 1] + 1, bounds[2 * i] - bounds[2 * i - 1])) as tokens,
    from placed
"""


def create_table_view(
    connection: duckdb.DuckDBPyConnection, name: str, table: Table, unique_by: str | None = None
) -> None:
    """A view over the newest version of a table; empty if there is no table.

    Args:
        connection: Where to create it.
        name: Name of the view.
        table: The table.
        unique_by: Key column of which racing writers left several rows; one of each is shown.
    """
    if table.location.is_local:
        source = _local_files(connection, table)
    else:
        source = _remote_files(connection, table)
    hidden = table.layout.hidden
    if hidden:
        source = source.project(", ".join(n for n in table.layout.schema.names if n not in hidden))
    if unique_by is not None:
        source.create_view(f"all_{name}")
        source = connection.sql(
            f"from all_{name} qualify row_number() over (partition by {unique_by}) = 1"
        )
    source.create_view(name)


def _local_files(connection: duckdb.DuckDBPyConnection, table: Table) -> duckdb.DuckDBPyRelation:
    files = table.snapshot().files
    if not files:
        return connection.from_arrow(table.layout.schema.empty_table())
    paths = ", ".join(quoted(_literal(f"{table.location.uri}/{file.path}")) for file in files)
    # A language may be called "no" and a split "2020": partitions are strings.
    return connection.sql(
        f"from read_parquet([{paths}], union_by_name = true, hive_types_autocast = false, "
        f"hive_partitioning = {bool(table.layout.partition_by)})"
    )


def _remote_files(connection: duckdb.DuckDBPyConnection, table: Table) -> duckdb.DuckDBPyRelation:
    """Through Arrow, which reads object stores without an extension of DuckDB."""
    files, schema = table.snapshot().files, table.layout.schema
    if not files:
        return connection.from_arrow(schema.empty_table())
    return connection.from_arrow(RemoteFiles.of(arrow_dataset(table.location, files, schema)))


def create_examples_view(
    connection: duckdb.DuckDBPyConnection, datasets: Sequence[tuple[str, str, str]]
) -> None:
    """The view ``examples``: all datasets, their columns united by name.

    Columns of one name that are of several types, such as labels of different kinds, are text.

    Args:
        connection: Where to create it.
        datasets: Name of the view, dataset and tokenizer of each.
    """
    empty = pa.schema([*((name, pa.string()) for name in ADDED_COLUMNS), *EXAMPLE_COLUMNS])
    connection.from_arrow(empty.empty_table()).create_view("no_examples")
    views = [connection.view(view) for view, _, _ in datasets]
    types = [_types(view) for view in views]
    selects = [
        f"select {quoted(name)} as dataset, {quoted(tokenizer)} as tokenizer, "
        f"{_columns(own, types)} from {view}"
        for (view, name, tokenizer), own in zip(datasets, types, strict=True)
    ]
    union = " union all by name ".join(["from no_examples", *selects])
    connection.execute(f"create view examples as {union}")


def _types(view: duckdb.DuckDBPyRelation) -> dict[str, str]:
    """Types by name in lower case: SQL takes ``Label`` and ``label`` for one column."""
    names = [name.lower() for name in view.columns]
    return dict(zip(names, map(str, view.types), strict=True))


def _columns(own: Mapping[str, str], types: Sequence[Mapping[str, str]]) -> str:
    """The columns of a view, as text where another view has another type of the same name."""
    hidden = [name for name in own if name in ADDED_COLUMNS]
    several = [name for name in own if len({other.get(name, own[name]) for other in types}) > 1]
    texts = [f"{_name(x)}::varchar as {_name(x)}" for x in several if x not in hidden]
    return "*" + _clause("exclude", map(_name, hidden)) + _clause("replace", texts)


def _clause(word: str, items: Iterable[str]) -> str:
    listed = ", ".join(items)
    return f" {word} ({listed})" if listed else ""


def _name(column: str) -> str:
    """A column as an SQL identifier."""
    escaped = column.replace('"', '""')
    return f'"{escaped}"'


def _literal(path: str) -> str:
    """A path as DuckDB's pattern that matches nothing else."""
    return re.sub(r"[\[*?]", r"[\g<0>]", path)
