"""Checks that what is stored is sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from featurestore.maintenance.log_repair import log_faults, table_locations, unlisted_files
from featurestore.maintenance.rules import (
    Rule,
    TextKeys,
    check_descriptions,
    check_examples,
    check_features,
    check_keys,
    check_parses,
    check_tokens,
    label_columns,
    unsound_rows,
)
from featurestore.sql.session import named_faults
from featurestore.store import FeatureStore
from featurestore.tables.delta import Table
from featurestore.tables.files import FileReader, UnreadableFileError
from featurestore.tables.log import LOG
from featurestore.tables.schema import DROPS, FINGERPRINTS, MATRIX_BLOBS, PARSES, PINS, VECTORS
from featurestore.tables.states import STATES, states_tables
from syntax.errors import StoreError

_EXAMPLE: Final = (
    *("example_id", "example_key", "seq", "parser", "texts", "parse_keys", "segment_lengths"),
    *VECTORS,
    *MATRIX_BLOBS,
)

_CHANGED: Final = """
    select dataset, tokenizer, split, lang, parser, example_id, count(distinct example_key)
    from examples group by all having count(distinct example_key) > 1 order by all
"""

_LISTED: Final = 100
"""Problems that a report lists; all are counted."""


@dataclass(frozen=True)
class Problem:
    """One unsound row, by the key of its parse or the id of its example."""

    table: str
    row: str
    message: str


@dataclass(frozen=True)
class ChangedExample:
    """One name with several contents (``rows``), each of which readers of the dataset see.

    A dataset is appended to and never changed, so that a version stays what it is: text, labels or
    options that come again under a known ``example_id``, but different, are one more example.
    """

    dataset: str
    tokenizer: str
    split: str
    lang: str
    parser: str
    example_id: str
    rows: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Validation:
    """Counts of what was checked, and the problems found.

    Attributes:
        matrices: Segments whose stored matrices were compared with derived ones.
        problems: Unsound rows, the first hundred of them.
        changed: Names of examples that have several contents; not problems, but rarely wanted.
        repeated: Parses and examples in several rows, as racing writers leave them; not problems.
        same_place: Places in the order of a split that several examples have; not problems.
        unreadable: Files that are damaged or gone; each is a problem, too.
        unlisted: Data files that no version has: of writers that were stopped, or of the newest
            entries of a log, if these are gone. Not problems, since a stopped writer leaves such.
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
        self.problem_count += 1
        if len(self.problems) < _LISTED:
            self.problems.append(problem)


def validate_store(
    store: FeatureStore, deep: bool = False, watch: Callable[[int], None] = lambda _: None
) -> Validation:
    """Check every row of every table; report torn, changed and missing files.

    With ``deep``, which takes about twice as long, also derive keys from texts and vectors from
    parses again; lay tokens, tags and spans against their texts; and look up every fingerprint.
    ``watch`` is called with numbers of parses or examples that were checked.
    """
    report = Validation()
    if not _logs_are_readable(store, report):
        return report
    rule: Rule = partial(check_parses, keys=TextKeys() if deep else None)
    columns = PARSES.schema.names
    for rows in _walk(report, "parses", store.parses.table, columns, "key", rule):
        report.parses += rows.num_rows
        watch(rows.num_rows)
    compares = deep and _finds_parses(store, report)
    for card, table in store.features.tables():
        rules: list[Rule] = [partial(check_examples, card)]
        if compares:
            rules.append(partial(check_features, store, card))
        if deep:
            rules.append(partial(check_tokens, card))
        columns = [*_EXAMPLE, *label_columns(card)]
        name = f"datasets/{card.path}"
        for rows in _walk(report, name, table, columns, "example_id", *rules):
            report.examples += rows.num_rows
            with_matrices = rows.num_rows - rows["distance"].null_count
            report.matrices += with_matrices * len(card.fields)
            watch(rows.num_rows)
    described = ("fingerprints", store.fingerprints.table, FINGERPRINTS.schema.names, "fingerprint")
    _check(report, *described, check_descriptions)
    for name, table in states_tables(store.root):
        key_rule = partial(check_keys, column="example_key")
        _check(report, name, table, STATES.schema.names, "example_key", key_rule)
    # Every row that can be read is sound; what is pinned follows from all rows together.
    _check(report, "drops", store.drops.table, DROPS.schema.names, "example_key")
    _check(report, "pins", store.pins.table, PINS.schema.names, "name")
    _check_pins(store, report)
    _look_up(store, report, deep)
    return report


def _walk(
    report: Validation, name: str, table: Table, columns: list[str], key: str, *rules: Rule
) -> Iterator[pa.Table]:
    """The rows of a table's whole files, checked; other files are problems themselves."""
    reader = FileReader(table.location, keep_open=1, schema=table.layout.schema)
    for file in table.snapshot().files:
        if (fault := reader.fault(file)) is not None:
            report.unreadable += 1
            report.add(Problem(name, file.path, str(fault)))
            continue
        for group in range(len(reader.row_group_starts(file.path)) - 1):
            rows = reader.row_group(file.path, group, columns)
            for rule in rules:
                for row, message in unsound_rows(rows, key, rule):
                    report.add(Problem(name, row, message))
            yield rows


def _check(report: Validation, *walk: Any) -> None:
    for _ in _walk(report, *walk):
        pass


def _logs_are_readable(store: FeatureStore, report: Validation) -> bool:
    """Report damage to logs; ``True`` if the newest version of each table can be opened."""
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
    try:
        store.parses.contains(["0" * 32])
    except StoreError as error:
        message = f"examples are not compared with their parses: {error}"
        report.add(Problem("parses", "key", message))
        return False
    return True


def _look_up(store: FeatureStore, report: Validation, deep: bool) -> None:
    """Check whole tables; a failed query is itself a problem."""
    try:
        report.changed = changed_examples(store)
        report.repeated, report.same_place = repeated_rows(store), _repeated_places(store)
        for name, fingerprint in _unknown_fingerprints(store) if deep else ():
            message = "nobody described what this fingerprint stands for"
            report.add(Problem(name, fingerprint, message))
    except StoreError as error:
        message = f"what only whole tables show was not all looked up: {error}"
        report.add(Problem("store", "keys", message))


def _check_pins(store: FeatureStore, report: Validation) -> None:
    with suppress(UnreadableFileError):  # it is a problem already
        for pin in store.pins.all().values():
            try:
                fault = store.pins.fault(pin)
            except StoreError as error:
                fault = str(error)
            if fault:
                report.add(Problem("pins", pin.name, fault))


def _unknown_fingerprints(store: FeatureStore) -> Iterator[tuple[str, str]]:
    """Fingerprints of parsers and tokenizers without a description: table, fingerprint."""
    known = {kind: store.fingerprints.all(kind) for kind in ("parser", "tokenizer")}
    query = """
        select 'parses' as "table", parser from parses
        union select 'examples', parser from examples order by "table" desc, parser
    """
    with named_faults():
        rows = store.sql(query).fetchall()
    for table, parser in rows:
        if parser not in known["parser"]:
            yield table, parser
    for card, _ in store.features.tables():
        if card.tokenizer_fingerprint not in known["tokenizer"]:
            yield f"datasets/{card.path}", card.tokenizer_fingerprint


@named_faults()
def changed_examples(store: FeatureStore) -> list[ChangedExample]:
    """The names of examples that have several contents."""
    return [ChangedExample(*row) for row in store.sql(_CHANGED).fetchall()]


def repeated_rows(store: FeatureStore) -> int:
    """Number of parses and examples that have several rows."""
    return store.parses.repeats() + sum(
        store.features.repeats(card) for card, _ in store.features.tables()
    )


@named_faults()
def _repeated_places(store: FeatureStore) -> int:
    """Places in the order of a split, language and parser that several names have."""
    query = """
        select count(*) from (
            select dataset, tokenizer, split, lang, parser, seq from examples
            group by all having count(distinct example_id) > 1
        )
    """
    ((found,),) = store.sql(query).fetchall()
    return int(found)
