"""Tables tell people who read them with other tools what they hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from featurestore import open_store
from featurestore.maintenance.delete import delete_parses
from featurestore.maintenance.inspect import all_tables
from featurestore.tables.schema import PARSES
from syntax.errors import StoreError


def test_every_table_and_column_is_described(every_table) -> None:
    names = [name for name, _ in all_tables(every_table)]
    assert {name.split("/")[0] for name in names} == {
        *("parses", "datasets", "drops", "fingerprints", "pins", "states")
    }
    for name in names:
        table = DeltaTable(f"{every_table.uri}/{name}")
        assert table.metadata().description
        for field in table.schema().fields:
            assert len(field.metadata["comment"]) > 5, (name, field.name)


def nullable(uri: str) -> set[str]:
    return {field.name for field in DeltaTable(uri).schema().fields if field.nullable}


def test_columns_that_never_are_null_say_so(every_table) -> None:
    assert nullable(f"{every_table.uri}/parses") == {"misc"}
    (examples,) = (Path(every_table.uri) / "datasets").glob("*/*")
    assert nullable(str(examples)) == {
        *("distance", "depth", "ancestor", "token_counts", "token_offsets"),
        *("label", "score", "note"),
    }
    assert nullable(f"{every_table.uri}/pins") == set()


def test_descriptions_survive_what_rewrites_a_table(every_table, records) -> None:
    before = DeltaTable(f"{every_table.uri}/parses").schema()
    every_table.compact()
    delete_parses(every_table, [records[35].key])
    every_table.compact()
    assert DeltaTable(f"{every_table.uri}/parses").schema() == before
    assert records[0].key in every_table.parses.get_many([records[0].key])


def test_null_is_refused_where_there_is_none(store, records) -> None:
    store.parses.append(records[:1])
    broken = pa.table({"key": pa.array([None], pa.string())})
    for name in PARSES.schema.names[1:]:
        broken = broken.append_column(name, pa.nulls(1, PARSES.schema.field(name).type))
    with pytest.raises(StoreError, match="null"):
        store.parses.table.append(broken)


def test_tables_without_descriptions_take_rows_as_before(tmp_path: Path, records) -> None:
    with open_store(tmp_path) as store:
        store.describe(records[0].parser, "parser", {"name": "gold"})
        DeltaTable.create(f"{tmp_path}/parses", PARSES.schema)
        store.parses.append(records)
        store.parses.append(records[:2])
        store.compact()
        assert len(store.parses.get_many([record.key for record in records])) == len(records)
    assert nullable(f"{tmp_path}/parses") == set(PARSES.schema.names)
