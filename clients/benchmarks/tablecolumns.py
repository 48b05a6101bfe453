"""Which columns of a table make an example."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from clients.benchmarks.base import Item, Names, attempt, rejection
from clients.benchmarks.rows import Row, Rows
from clients.benchmarks.rowvalues import WITH_TOKENS, is_missing, label_of, segment_of
from clients.benchmarks.tablenames import NameSearch
from syntax.errors import ExampleError, InputError, LabelError, SpecError
from syntax.examples import Example, LabelSpec, LabelValue, Mode, Segment
from syntax.labels import field_of

_NAMED: Final = frozenset({"class", "spans", "tags"})


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns that are the segments, labels and id of an example.

    Attributes:
        fields: Name of each segment.
        labels: Label columns.
        columns: The table's name of a field or label, where it is not the same.
        id: The column with the id; without one, rows are counted.

    Raises:
        SpecError: A name occurs twice, or ``columns`` or a label speaks of a field that is none.
    """

    fields: tuple[str, ...]
    labels: tuple[LabelSpec, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    id: str | None = None

    def __post_init__(self) -> None:
        names = [*self.fields, *(label.name for label in self.labels)]
        if not self.fields or len(set(names)) < len(names):
            raise SpecError(f"fields and labels are {names}; expected a field, and each name once")
        unknown = [name for name in self.columns if name not in names]
        unknown += [x.field for x in self.labels if x.field and x.field not in self.fields]
        if unknown:
            raise SpecError(f"{unknown[0]!r} is no field or label; those are {', '.join(names)}")

    @property
    def modes(self) -> tuple[Mode, ...]:
        """How the segments can be read; tags need the tokens that they are about."""
        tagged = any(label.kind == "tags" for label in self.labels)
        return WITH_TOKENS if tagged else ("raw", "sentence", *WITH_TOKENS)

    @property
    def unnamed(self) -> list[LabelSpec]:
        """The labels whose names only the data knows."""
        return [label for label in self.labels if label.kind in _NAMED and not label.names]

    def column(self, name: str) -> str:
        """The table's name of a field or label."""
        return self.columns.get(name, name)

    def items(
        self, open_table: Callable[[], Rows], numbers: Iterator[int], split: str, mode: Mode
    ) -> Iterator[Item]:
        """The examples and rejections of a table, which take their numbers from ``numbers``.

        A label that no row has is None in all of them: the table is blind.
        """
        blind = self._unlabelled(open_table)
        rows = open_table()
        for make_row, number in zip(rows.rows, numbers, strict=False):
            counted = f"{split}-{number}"
            try:
                row = make_row()
            except InputError as error:
                yield rejection(counted, error)
                continue
            example_id = self._id(row) or counted
            make = partial(self._example, example_id, row, mode, rows.names, blind)
            yield attempt(example_id, make)

    def _unlabelled(self, open_table: Callable[[], Rows]) -> frozenset[str]:
        """The labels that no row has; the table is read up to where each has been seen."""
        missing = {label.name: label for label in self.labels}
        rows = open_table().rows if missing else iter(())
        with suppress(InputError):  # told when the rows are read
            for make_row in rows:
                with suppress(InputError):
                    row = make_row()
                    missing = {
                        name: label
                        for name, label in missing.items()
                        if is_missing(label, row.get(self.column(name)))
                    }
                if not missing:
                    break
        return frozenset(missing)

    def names(self, tables: Iterable[Callable[[], Rows]]) -> Names:
        """The names of each unnamed label: those that the tables list, else all that occur.

        Args:
            tables: Each opens one.

        Raises:
            SpecError, InputError: As `NameSearch.names`.
        """
        search = NameSearch({label: self.column(label.name) for label in self.unnamed})
        for open_table in tables:
            search.add(open_table)
        return search.names()

    def _id(self, row: Row) -> str:
        value = None if self.id is None else row.get(self.id)
        return "" if value is None or isinstance(value, (list, dict)) else str(value)

    def _example(
        self,
        example_id: str,
        row: Row,
        mode: Mode,
        listed: Mapping[str, tuple[str, ...]],
        blind: frozenset[str],
    ) -> Example:
        self._check(row, example_id, blind)
        segments = tuple(
            segment_of(row[self.column(name)], mode, f"{name} of {example_id}")
            for name in self.fields
        )
        labels: dict[str, LabelValue | None] = dict.fromkeys(blind)
        repairs: tuple[str, ...] = ()
        for label in (label for label in self.labels if label.name not in blind):
            column = self.column(label.name)
            names = listed.get(column, label.names)
            where = f"{label.name} of {example_id}"
            text = ""
            if label.kind == "spans":
                self._check_spacing(row, label, mode, where)
                text = _text(segments[field_of(label, self.fields)])
            labels[label.name], repaired = label_of(label, row[column], names, where, text)
            repairs += repaired
        return Example(example_id, segments, labels, repairs)

    def _check_spacing(self, row: Row, label: LabelSpec, mode: Mode, where: str) -> None:
        text = row[self.column(label.field or self.fields[0])]
        if mode in WITH_TOKENS and isinstance(text, str) and " ".join(text.split()) != text:
            raise LabelError(
                f"{where} counts characters of a text that is not its tokens joined by single "
                "spaces; read it in mode raw or sentence"
            )

    def _check(self, row: Row, example_id: str, blind: frozenset[str]) -> None:
        names = [*self.fields, *(x.name for x in self.labels if x.name not in blind)]
        wanted = [*map(self.column, names), *([self.id] if self.id else [])]
        missing = [column for column in wanted if row.get(column) is None]
        if missing:
            raise ExampleError(
                f"{example_id} has nothing in the column {missing[0]!r}; its columns are "
                f"{', '.join(map(str, row))}"
            )
        if self.id and isinstance(row[self.id], (list, dict)):
            raise ExampleError(
                f"{example_id} has a {type(row[self.id]).__name__} in the column {self.id!r}; "
                "expected its id, a text or a number"
            )


def _text(segment: Segment) -> str:
    return " ".join(segment.tokens or ()) if segment.text is None else segment.text
