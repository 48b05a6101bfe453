"""Names of classes, tags and spans that only the rows of tables tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from clients.benchmarks.base import Names
from clients.benchmarks.rows import Row, Rows
from clients.benchmarks.rowvalues import names_of
from clients.benchmarks.tags import OUTSIDE
from syntax.errors import InputError, SpecError
from syntax.examples import LabelSpec


class NameSearch:
    """The names of labels in tables; what is wrong with a table is said when it is read.

    Args:
        columns: Each label, and the column that it is in.
    """

    def __init__(self, columns: Mapping[LabelSpec, str]) -> None:
        self._columns = columns
        self._lists: dict[LabelSpec, set[tuple[str, ...]]] = {label: set() for label in columns}
        self._seen: set[str] = set()
        self._failure: InputError | None = None

    def add(self, open_table: Callable[[], Rows]) -> None:
        """Take the names that a table lists for a column, else all that occur in it."""
        with self._noted():
            rows = open_table()
            for label, names in {**self._listed(rows), **self._occurring(rows)}.items():
                self._lists[label] |= {names} - {()}

    def names(self) -> Names:
        """The names of each label.

        Raises:
            SpecError: There is none of a class, or of tags.
            InputError: Nor could any row be read.
        """
        found = {label: _merged(lists) for label, lists in self._lists.items()}
        for label, names in found.items():
            if label.kind != "spans" and not names:
                raise self._nameless(label)
        return {label.name: names for label, names in found.items()}

    def _listed(self, rows: Rows) -> dict[LabelSpec, tuple[str, ...]]:
        return {x: rows.names[name] for x, name in self._columns.items() if name in rows.names}

    def _occurring(self, rows: Rows) -> dict[LabelSpec, tuple[str, ...]]:
        found: dict[LabelSpec, set[str]] = {
            label: set() for label, name in self._columns.items() if name not in rows.names
        }
        for row in self._readable(rows) if found else ():
            for label, names in found.items():
                names.update(names_of(label, row.get(self._columns[label])))
        return {label: _sorted(names - {""}) for label, names in found.items()}

    def _readable(self, rows: Rows) -> Iterator[Row]:
        with self._noted():
            for make_row in rows.rows:
                with self._noted():
                    row = make_row()
                    self._seen.update(row)
                    yield row

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            self._failure = self._failure or error

    def _nameless(self, label: LabelSpec) -> InputError:
        column = self._columns[label]
        if self._failure and not self._seen:
            return self._failure
        if self._seen and column not in self._seen:
            return SpecError(
                f"there is no column {column!r} for the label {label.name!r}; the columns are "
                f"{', '.join(sorted(self._seen))}"
            )
        return SpecError(
            f"no row has in the column {column!r} a label that could be read as of kind "
            f"{label.kind!r}; choose another column or kind, or state the names of {label.name!r}"
        )


def _merged(lists: set[tuple[str, ...]]) -> tuple[str, ...]:
    """A list on which all tables agree as it is, else all names in one order."""
    return next(iter(lists)) if len(lists) == 1 else _sorted(set().union(*lists))


def _sorted(names: set[str]) -> tuple[str, ...]:
    """``O`` first, then numbers by size, then the others."""
    return tuple(sorted(names, key=_rank))


def _rank(name: str) -> tuple[bool, bool, int, str]:
    return name != OUTSIDE, not name.isdecimal(), int(name) if name.isdecimal() else 0, name
