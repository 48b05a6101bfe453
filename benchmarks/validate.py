"""What `store validate --deep` takes, beside deriving everything once, in one run.

    python -m benchmarks.validate [--examples 10000] [--rounds 3]

The store has the sentences of UD_English-EWT where PARSEBANK_DATA is set, else of the test
treebank, as parses under the keys of their texts, and pairs of them as examples, with matrices and
a class. *Deriving* makes the rows of both tables again, as a backfill that finds all parses makes
them: keys and packed records of parses; of the pieces of examples and the parses that their keys
name, vectors and matrices. It tokenizes, compares and writes nothing. CPU seconds of the process,
the best of the rounds, which take turns.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.result import write_result
from benchmarks.stream.corpus import SPECIAL, features_of, treebank
from featurestore import DatasetHandle, ExampleRow, FeatureStore, ParseRecord, open_store
from featurestore.maintenance.validate import validate_store
from featurestore.tables.card import DatasetCard
from featurestore.tables.delta import Table
from featurestore.tables.encode.columns import binary_numbers, list_parts
from featurestore.tables.encode.examples import encode_examples
from featurestore.tables.encode.parses import decode_parses, encode_parses
from featurestore.tables.files import FileReader
from featurestore.tables.schema import PARSE_COLUMNS
from syntax import fingerprint
from syntax.alignment import batch_features
from syntax.examples import DatasetSpec, LabelSpec
from syntax.fingerprint import parse_key

SHARD = 3_000
CLASSES = ("entailment", "neutral", "contradiction")
PARSER = fingerprint({"name": "benchmark"})
HANDLE = DatasetHandle(
    spec=DatasetSpec(
        *("pairs", "train", "en", ("premise", "hypothesis")),
        labels=(LabelSpec("label", "class", CLASSES),),
    ),
    tokenizer="pieces-of-four",
    tokenizer_fingerprint=fingerprint({"name": "pieces-of-four"}),
    special_tokens=SPECIAL,
)


def fill(store: FeatureStore, count: int) -> None:
    """Parses of all sentences, and pairs of them, in commits as a backfill makes them."""
    store.describe(PARSER, "parser", {"name": "benchmark"})
    store.describe(HANDLE.tokenizer_fingerprint, "tokenizer", {"name": HANDLE.tokenizer})
    by_key = {}
    for parse in treebank("train", "dev", "test"):
        key = parse_key(PARSER, "en", "sentence", parse.text)
        by_key[key] = ParseRecord(key, "en", PARSER, "sentence", parse)
    records = list(by_key.values())
    for start in range(0, len(records), SHARD):
        store.parses.append(records[start : start + SHARD])
    features = [features_of(record.parse) for record in records]
    pairs = np.random.default_rng(0).integers(0, len(records), (count, 2)).tolist()
    rows = [
        ExampleRow(
            seq=number,
            example_id=str(number),
            example_key=fingerprint({"number": number}),
            parser=PARSER,
            texts=tuple(records[at].parse.text for at in pair),
            parse_keys=tuple(records[at].key for at in pair),
            segments=tuple(features[at] for at in pair),
            labels={"label": CLASSES[number % len(CLASSES)]},
        )
        for number, pair in enumerate(pairs)
    ]
    for start in range(0, count, SHARD):
        store.features.append(HANDLE, rows[start : start + SHARD])


def derive(store: FeatureStore) -> None:
    """Make the rows of all parses and examples again."""
    for rows in groups(store.parses.table, PARSE_COLUMNS):
        records = decode_parses(rows)
        for record in records:
            parse_key(record.parser, record.lang, record.mode, record.parse.text)
        encode_parses(records)
    columns = ("seq", "example_id", "example_key", "parser", "texts", "parse_keys")
    for card, table in store.features.tables():
        for rows in groups(table, (*columns, "segment_lengths", "input_ids", "offsets", "label")):
            derive_examples(store, card, rows)


def groups(table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The row groups of a table, in the order of its files."""
    reader = FileReader(table.location, keep_open=1)
    for file in table.snapshot().files:
        for group in range(len(reader.row_group_starts(file.path)) - 1):
            yield reader.row_group(file.path, group, columns)


def derive_examples(store: FeatureStore, card: DatasetCard, rows: pa.Table) -> None:
    """The rows of some examples, from their pieces and parses."""
    _, keys = list_parts(rows["parse_keys"])
    _, lengths = list_parts(rows["segment_lengths"])
    asked = keys.to_pylist()
    records = store.parses.get_many(list(dict.fromkeys(asked)))
    features = batch_features(
        [records[key].parse for key in asked],
        binary_numbers(rows["input_ids"], "int32"),
        binary_numbers(rows["offsets"], "int32").reshape(-1, 2),
        lengths.to_pylist(),
    )
    left = rows.drop_columns(["segment_lengths", "input_ids", "offsets"]).to_pylist()
    made = [
        ExampleRow(
            *(row["seq"], row["example_id"], row["example_key"], row["parser"]),
            texts=tuple(row["texts"]),
            parse_keys=tuple(row["parse_keys"]),
            segments=tuple(features[2 * at : 2 * at + 2]),
            labels={"label": row["label"]},
        )
        for at, row in enumerate(left)
    ]
    encode_examples(card, "train", "en", made, matrices=True)


def validate(store: FeatureStore) -> None:
    check(validate_store(store))


def validate_deep(store: FeatureStore) -> None:
    check(validate_store(store, deep=True))


def check(report: Any) -> None:
    if report.problem_count or not report.examples:
        raise SystemExit(f"the store is not sound: {report}")


CALLS: dict[str, Callable[[FeatureStore], None]] = {
    "derive": derive,
    "validate": validate,
    "validate --deep": validate_deep,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Deep validation beside deriving everything.")
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    best = dict.fromkeys(CALLS, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        with open_store(folder) as store:
            fill(store, arguments.examples)
            parses = sum(file.rows for file in store.parses.table.snapshot().files)
        for _ in range(arguments.rounds):
            for name, call in CALLS.items():
                with open_store(folder) as store:
                    start = time.process_time()
                    call(store)
                    best[name] = min(best[name], time.process_time() - start)
    ratios = {name: seconds / best["derive"] for name, seconds in best.items()}
    print(f"{parses:,} parses, {arguments.examples:,} examples of two segments, with matrices")
    for name, seconds in best.items():
        print(f"  {name:16} {seconds:6.2f} s {ratios[name]:6.2f}")
    content = {
        "parses": parses,
        "examples": arguments.examples,
        "rounds": arguments.rounds,
        "seconds": {name: round(seconds, 3) for name, seconds in best.items()},
        "ratio": {name: round(ratio, 3) for name, ratio in ratios.items()},
    }
    write_result("validate", content, libraries=("pyarrow", "numpy"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
