"""A process that writes parses and prints each key once it was acknowledged.

``append`` commits groups; ``same`` commits groups as transactions that its siblings commit too,
and prints those that were its own; ``put`` buffers and flushes; ``durable`` waits for each record;
``forget`` buffers and ends without closing the store.
"""

from __future__ import annotations

import sys

from featurestore import FeatureStore, ParseRecord, Transaction, open_store
from syntax import Parse, fingerprint


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
    return ParseRecord(key, "en", "f" * 32, "raw", parse)


def acknowledge(records: list[ParseRecord]) -> None:
    sys.stdout.write("".join(f"{record.key}\n" for record in records))
    sys.stdout.flush()


def write(mode: str, store: FeatureStore, name: str, number: int, records: list) -> bool:
    """Write one group; whether to acknowledge it."""
    if mode in ("append", "same"):
        return store.parses.append(records, Transaction(f"{name}/{number}"))
    for record in records:
        store.parses.put(record, durable=mode == "durable")
    if mode == "put":
        store.flush()
    return True


def main(mode: str, uri: str, name: str, groups: str, size: str) -> None:
    store = open_store(uri, buffer_rows=16, buffer_seconds=0.02)
    for number in range(int(groups)):
        records = [record_of(name, number, row) for row in range(int(size))]
        if write(mode, store, name, number, records):
            acknowledge(records)
    if mode != "forget":
        store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
