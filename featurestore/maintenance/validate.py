"""Proof that what is stored is sound: every parse a forest, every stored matrix the derived one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from featurestore.maintenance.changed import ChangedExample, changed_examples
from featurestore.maintenance.log_repair import log_faults, table_locations, unlisted_files
from featurestore.maintenance.validate_deep import (
    check_key,
    forget_searches,
    label_columns,
    message_of,
    repeated_places,
    repeated_rows,
    row_name,
    unknown_fingerprints,
    wrong_examples,
    wrong_labels,
)
from featurestore.maintenance.validate_groups import (
    examples_are_sound,
    features_are_sound,
    labels_are_sound,
    parses_are_sound,
)
from featurestore.records import key_bytes
from featurestore.store import FeatureStore
from featurestore.tables.card import DatasetCard
from featurestore.tables.delta import Table
from featurestore.tables.encode.blobs import matrix_blobs
from featurestore.tables.encode.columns import binary_numbers, list_parts
from featurestore.tables.encode.parses import decode_parses, unpack_parses
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.fingerprints import read_content
from featurestore.tables.log import LOG
from featurestore.tables.schema import DROPS, FINGERPRINTS, MATRIX_BLOBS, PARSES, PINS, VECTORS
from featurestore.tables.states import STATES, states_tables
from syntax.errors import InputError, SpecError, StoreError
from syntax.trees.tree import DependencyTree

_NAMES: Final = ("example_id", "example_key", "seq")
_EXAMPLE: Final = (*_NAMES, "parser", "texts", "parse_keys", "segment_lengths")

_LISTED: Final = 100
"""Problems that a report lists; all are counted."""


@dataclass(frozen=True)
class Problem:
    """One unsound row.

    Attributes:
        table: Path of the table below the store.
        row: Key of the parse, or id of the example.
        message: What is wrong.
    """

    table: str
    row: str
    message: str


@dataclass
class Validation:
    """What was checked and what was found.

    Attributes:
        parses, examples: Rows that were checked.
        matrices: Segments whose stored matrices were compared with derived ones.
        problems: Unsound rows, the first hundred of them.
        problem_count: All unsound rows.
        changed: Names of examples that have several contents; no problem, but rarely wanted.
        repeated: Parses and examples in several rows, as racing writers leave them; no problem.
        same_place: Places in the order of a split (``seq``) that several examples have; no problem.
        unreadable: Files that are damaged or gone; each is a problem, too.
        unlisted: Data files that no version has: of writers that were stopped, or of the newest
            entries of a log, if these are gone. No problem, since a stopped writer leaves such.
    """

    parses: int = 0
    examples: int = 0
    matrices: int = 0
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    changed: list[ChangedExample] = field(default_factory=list)
    repeated: int = 0
    same_place: int = 0
    unreadable: int = 0
    unlisted: int = 0

    def add(self, problem: Problem) -> None:
        """Count a problem, and list it if there is room."""
        self.problem_count += 1
        if len(self.problems) < _LISTED:
            self.problems.append(problem)


def validate_store(
    store: FeatureStore, deep: bool = False, watch: Callable[[int], None] | None = None
) -> Validation:
    """Read every row of every table and check it; names torn, changed and missing files.

    Args:
        store: The store.
        deep: Also derive again what was derived: keys from texts, vectors from parses; lay tokens,
            tags and spans against their texts; and look up every fingerprint. Takes about twice as
            long.
        watch: Called with the number of parses or examples that were checked, after some at a time.

    Raises:
        StoreError: A log cannot be read now.
    """
    report, progress = Validation(), watch or (lambda _: None)
    forget_searches()
    if not _logs_are_readable(store, report):
        return report
    for rows in _row_groups("parses", store.parses.table, PARSES.schema.names, report):
        _check_parses(rows, report, deep)
        progress(rows.num_rows)
    compares = deep and _finds_parses(store, report)
    for card, table in store.features.tables():
        columns = [*_EXAMPLE, *VECTORS, *MATRIX_BLOBS, *label_columns(card)]
        for rows in _row_groups(f"datasets/{card.path}", table, columns, report):
            _check_examples(card, rows, report)
            for row, message in _deep_faults(store, card, rows, compares) if deep else ():
                report.add(Problem(f"datasets/{card.path}", row, message))
            progress(rows.num_rows)
    described = store.fingerprints.table
    for rows in _row_groups("fingerprints", described, FINGERPRINTS.schema.names, report):
        for at in range(rows.num_rows):
            row = rows.slice(at, 1)
            with _reported(report, "fingerprints", row, "fingerprint"):
                read_content(*(row[name][0].as_py() for name in ("fingerprint", "content")))
    _check_states(store, report)
    for _ in _row_groups("drops", store.drops.table, DROPS.schema.names, report):
        pass  # every row that can be read is sound
    _check_pins(store, report)
    _look_up(store, report, deep)
    return report


def _logs_are_readable(store: FeatureStore, report: Validation) -> bool:
    """Whether the newest version of each table can be opened; damage to logs is reported."""
    needed = 0
    for name, location in table_locations(store.root.location):
        for fault in log_faults(name, location):
            report.add(Problem(name, fault.file, fault.message))
            needed += fault.action != "forget"
        report.unlisted += len(unlisted_files(location, location.child(LOG)))
    if needed:
        message = "no row was checked, since logs are damaged: run `parsebank store repair`"
        report.add(Problem("store", "logs", message))
    return not needed


def _finds_parses(store: FeatureStore, report: Validation) -> bool:
    """Whether parses can be looked up by key; if not, that counts as one problem."""
    try:
        store.parses.contains(["0" * 32])
    except StoreError as error:
        message = f"examples are not compared with their parses: {error}"
        report.add(Problem("parses", "key", message))
        return False
    return True


def _look_up(store: FeatureStore, report: Validation, deep: bool) -> None:
    """Checks over whole tables; a failed query is itself a problem."""
    try:
        report.changed = changed_examples(store)
        report.repeated, report.same_place = repeated_rows(store), repeated_places(store)
        for name, fingerprint in unknown_fingerprints(store) if deep else ():
            message = "nobody described what this fingerprint stands for"
            report.add(Problem(name, fingerprint, message))
    except StoreError as error:
        message = f"what only whole tables show was not all looked up: {error}"
        report.add(Problem("store", "keys", message))


def _row_groups(
    name: str, table: Table, columns: list[str], report: Validation
) -> Iterator[pa.Table]:
    """The rows of a table's whole files; the others are reported as problems."""
    reader = FileReader(table.location, keep_open=1, schema=table.layout.schema)
    for file in table.snapshot().files:
        if (fault := reader.fault(file)) is not None:
            report.unreadable += 1
            report.add(Problem(name, file.path, str(fault)))
            continue
        for group in range(len(reader.row_group_starts(file.path)) - 1):
            yield reader.row_group(file.path, group, columns)


def _check_parses(rows: pa.Table, report: Validation, deep: bool) -> None:
    report.parses += rows.num_rows
    if parses_are_sound(rows, deep):
        return
    for index in range(rows.num_rows):
        row = rows.slice(index, 1)
        with _reported(report, "parses", row, "key"):
            check_parse(row, deep)


def check_parse(row: pa.Table, deep: bool) -> None:
    """Check one parse.

    Raises:
        InputError, StoreError: Something is wrong with it.
    """
    (record,) = decode_parses(row)
    key_bytes([str(record.key)])
    parse = record.parse
    for start, end in parse.word_ranges():
        DependencyTree(parse.head[start:end], [name or "_" for name in parse.deprel[start:end]])
    ends = [*parse.word_end, *parse.token_end, *parse.sentence_end]
    if max(ends, default=0) > len(parse.text):
        raise InputError("a character offset lies outside the text")
    if unpack_parses([record.key], row["record"]) != [record]:
        raise StoreError("the packed record differs from the columns")
    if deep:
        check_key(record)


def _check_states(store: FeatureStore, report: Validation) -> None:
    for name, table in states_tables(store.root):
        for rows in _row_groups(name, table, STATES.schema.names, report):
            for key in rows["example_key"].to_pylist():
                try:
                    key_bytes([str(key)])
                except SpecError as error:
                    report.add(Problem(name, str(key), str(error)))


def _check_pins(store: FeatureStore, report: Validation) -> None:
    for _ in _row_groups("pins", store.pins.table, PINS.schema.names, report):
        pass  # what is pinned follows from all rows together
    with suppress(UnreadableFileError):  # it is a problem already
        for pin in store.pins.all().values():
            try:
                fault = store.pins.fault(pin)
            except StoreError as error:
                fault = str(error)
            if fault:
                report.add(Problem("pins", pin.name, fault))


@contextmanager
def _reported(report: Validation, table: str, row: pa.Table, column: str) -> Iterator[None]:
    """Count what is raised as a problem of a row: damaged bytes may fail anywhere."""
    try:
        yield
    except Exception as error:
        report.add(Problem(table, row_name(row, column), message_of(error)))


def _check_examples(card: DatasetCard, rows: pa.Table, report: Validation) -> None:
    report.examples += rows.num_rows
    if examples_are_sound(card, rows):
        with_matrices = rows.num_rows - rows["distance"].null_count
        report.matrices += with_matrices * len(card.fields)
        return
    for index in range(rows.num_rows):
        row = rows.slice(index, 1)
        with _reported(report, f"datasets/{card.path}", row, "example_id"):
            report.matrices += check_example(card, row)


def _deep_faults(
    store: FeatureStore, card: DatasetCard, rows: pa.Table, compares: bool
) -> Iterator[tuple[str, str]]:
    """Examples that do not fit their parses, tokens or labels: id, what is wrong."""
    if compares and not features_are_sound(store, card, rows):
        yield from wrong_examples(store, rows)
    if not labels_are_sound(card, rows):
        yield from wrong_labels(card, rows)


def check_example(card: DatasetCard, row: pa.Table) -> int:
    """Check one example; the number of segments whose matrices were compared.

    Raises:
        InputError, StoreError: Something is wrong with it.
    """
    _check_names(*(row[name][0].as_py() for name in _NAMES))
    _, values = list_parts(row["segment_lengths"])
    lengths = values.to_numpy()
    if len(lengths) != len(card.fields):
        raise StoreError(f"{len(lengths)} segments are stored for the fields {card.fields}")
    vectors = {name: binary_numbers(row[name], dtype) for name, dtype in VECTORS.items()}
    pieces = int(lengths.sum())
    for name, vector in vectors.items():
        expected = 2 * pieces if name == "offsets" else pieces
        if len(vector) != expected:
            raise StoreError(f"{name} holds {len(vector)} numbers; {expected} were expected")
    ids, count = vectors["input_ids"], card.special_tokens.vocab_size
    if len(wrong := ids[(ids < 0) | (ids >= count)]):
        raise StoreError(f"input_ids holds {wrong[0]}; ids of the tokenizer are 0 to {count - 1}")
    heads = np.split(vectors["head"], np.cumsum(lengths)[:-1])
    stored = [row[name][0].as_py() for name in MATRIX_BLOBS]
    if stored == [None] * len(MATRIX_BLOBS):
        return 0
    derived = [matrix_blobs(head) for head in heads]
    for name, blobs, column in zip(MATRIX_BLOBS, stored, zip(*derived, strict=True), strict=True):
        if blobs != list(column):
            raise StoreError(f"the stored {name} differs from the one derived from head")
    return len(heads)


def _check_names(example_id: str | None, key: str | None, seq: int | None) -> None:
    key_bytes([str(key)])
    if not example_id:
        raise StoreError(f"example_id is {example_id!r}; an example has a name that is not empty")
    if seq is None or seq < 0:
        raise StoreError(f"seq is {seq}; places in the order of a split are 0 or more")
