"""Processes that work on a store, and write each key to a file once it was acknowledged.

``append`` commits groups as transactions; ``same`` too, and acknowledges those that were its own;
``repeat`` commits groups without one; ``put`` buffers and flushes; ``durable`` waits for each
record; ``examples`` appends rows of a dataset; ``complete`` does so after their parses, as jobs do;
``delete`` deletes what that wrote, one by one; ``compact`` compacts;
``vacuum`` deletes every file out of use; ``read`` acknowledges what it can read; ``forget`` buffers
and ends without closing the store. What the store refuses to do is written to standard error.

``writer_process.py MODE URI NAME GROUPS SIZE OUT`` is one; `Writers` begins others.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np

from featurestore import (
    DatasetHandle,
    ExampleRow,
    FeatureStore,
    ParseRecord,
    Transaction,
    open_store,
)
from syntax import Parse, fingerprint
from syntax.alignment import segment_features
from syntax.batches import SpecialTokens
from syntax.errors import StoreBusyError, StoreError, UnknownKeyError
from syntax.examples import DatasetSpec

PARSER = "f" * 32
PRELOADED = (
    *("pyarrow", "pandas", "deltalake", "duckdb", "featurestore.store"),
    *("featurestore.tables.encode.examples", "featurestore.sql.session"),
    *(f"featurestore.maintenance.{name}" for name in ("vacuum", "delete")),
)
HANDLE = DatasetHandle(
    DatasetSpec("written", "train", "en", ("text",), (), "written for the tests", "Apache-2.0"),
    tokenizer="two pieces",
    tokenizer_fingerprint="e" * 32,
    special_tokens=SpecialTokens(prefix=(2,), separator=(3,), suffix=(3,), pad_id=0, vocab_size=9),
)


def record_of(name: str, number: int, row: int) -> ParseRecord:
    key = fingerprint([name, number, row])
    parse = Parse(
        text=f"{key} .",
        form=[key, "."],
        lemma=[key, "."],
        upos=["X", "PUNCT"],
        xpos=[None, None],
        feats=[None, None],
        head=[0, 1],
        deprel=["root", "punct"],
        word_start=[0, 33],
        word_end=[32, 34],
        token_start=[0, 33],
        token_end=[32, 34],
        token_first_word=[0, 1],
        sentence_start=[0],
        sentence_end=[34],
        sentence_first_word=[0],
    )
    return ParseRecord(key, "en", PARSER, "gold", parse)


def example_of(record: ParseRecord, seq: int) -> ExampleRow:
    """An example of one text, whose key is that of its parse."""
    ids, spans = np.array([5, 6], np.int32), np.array([[0, 32], [33, 34]], np.int32)
    segment = segment_features(record.parse, ids, spans)
    text, key = record.parse.text, record.key
    return ExampleRow(seq, key, key, record.parser, (text,), (key,), (segment,))


def write(mode: str, store: FeatureStore, name: str, number: int, records: list) -> bool:
    """Write one group; whether to acknowledge it."""
    if mode in ("append", "same"):
        return store.parses.append(records, Transaction(f"{name}/{number}"))
    if mode == "repeat":
        return store.parses.append(records)
    if mode == "complete":
        known = list(store.parses.get_many([record.key for record in records]).values())
        store.parses.append([record for record in records if record not in known])
        rows = [example_of(record, number * 1000 + row) for row, record in enumerate(records)]
        store.features.append_new(HANDLE, rows)
        store.parses.keep(records)
        return True
    if mode == "examples":
        rows = [example_of(record, number * 1000 + row) for row, record in enumerate(records)]
        return store.features.append(HANDLE, rows)
    for record in records:
        store.parses.put(record, durable=mode == "durable")
    if mode == "put":
        store.flush()
    return True


def look_after(mode: str, store: FeatureStore) -> None:
    """One round of upkeep, which may lose to another's."""
    from featurestore.maintenance.vacuum import vacuum_store

    try:
        if mode == "compact":
            store.compact()
        else:
            vacuum_store(store, older_than_hours=0)
    except StoreBusyError:
        pass


def work(mode: str, uri: str, name: str, groups: int, size: int, out: str) -> None:
    """Do what the module's docstring says, ``groups`` times."""
    store = open_store(uri, buffer_rows=16, buffer_seconds=0.02)
    acknowledged = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(groups):
        try:
            keys = take_turn(mode, store, name, number, size)
        except StoreError as error:
            print(error, file=sys.stderr)  # noqa: T201
        else:
            os.write(acknowledged, "".join(f"{key}\n" for key in keys).encode())
    if mode != "forget":
        store.close()


def take_turn(mode: str, store: FeatureStore, name: str, number: int, size: int) -> list[str]:
    """Do once what a process does; the keys to acknowledge."""
    if mode in ("compact", "vacuum"):
        look_after(mode, store)
        return []
    if mode == "read":
        keys = [key for (key,) in store.sql("select key from parses").fetchall()]
        return list(store.parses.get_many(keys))
    if mode == "delete":
        from featurestore.maintenance.delete import delete_parses

        with suppress(UnknownKeyError):
            return delete_parses(store, [record_of(name, 0, number).key]).keys
        return []
    records = [record_of(name, number, row) for row in range(size)]
    written = write(mode, store, name, number, records)
    return [record.key for record in records] if written else []


def begin(
    arguments: Sequence[Any], env: Mapping[str, str], user: int | None, largest_file: int | None
) -> None:
    """Be a process as `Writers.start` asks."""
    os.environ.update(env)
    out = arguments[-1]
    os.close(os.open(out, os.O_WRONLY | os.O_CREAT, 0o666))
    os.dup2(os.open(f"{out}.errors", os.O_WRONLY | os.O_CREAT), 2)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file,) * 2)
    if user is not None:
        for name in PRELOADED:  # which another user may not be able to read
            import_module(name)
        os.chown(out, user, -1)
        os.setuid(user)
    work(*arguments)


if __name__ == "__main__":
    mode, uri, name, groups, size, out = sys.argv[1:]
    work(mode, uri, name, int(groups), int(size), out)
