"""Versions of datasets that must stay readable, by name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa

from featurestore.records import Transaction
from featurestore.tables.files import FileGoneError, FileReader
from featurestore.tables.opening import open_table
from featurestore.tables.root import StoreRoot
from featurestore.tables.schema import PINS
from featurestore.tables.snapshot import snapshot_of
from syntax.errors import SpecError, UnknownDatasetError
from syntax.registry import unknown_name

_WRITER: Final = "pins"
"""Application id of every change: two changes of one version of the table cannot both win."""


@dataclass(frozen=True)
class Pin:
    """A name for one version of one dataset table; its files are kept.

    Attributes:
        name: Of the pin; one per store.
        table: Folder of the table below ``datasets``, such as ``xnli/bert-base-...-5f0c``.
        by: The person or run that needs it.
    """

    name: str
    table: str
    version: int
    by: str = ""


class PinTable:
    """Pins, as a list of what was pinned and unpinned; the last word on a name counts.

    Changes follow one another in the order of their commits: each is made of all that were
    committed before, and is decided again when another one wins. Clocks do not matter.
    """

    def __init__(self, root: StoreRoot) -> None:
        self.table = root.table(PINS, "pins")
        self._datasets = root.location.child("datasets")
        self._reader = FileReader(self.table.location)

    def add(self, pin: Pin) -> None:
        """Pin a version; the same pin again changes nothing.

        Raises:
            SpecError: The name is taken by another version, is empty, or could be a version.
            FileGoneError: The version cannot be read any more.
            StoreBusyError, StoreError: Nothing was written.
        """
        while True:
            version, rows = self._rows()
            there = _pins(rows).get(pin.name)
            if there is None:
                if not pin.name.strip() or pin.name.isdigit():
                    raise SpecError(
                        f"a pin cannot be called {pin.name!r}; give it a name that is no version, "
                        "such as paper-v1"
                    )
                if fault := self.fault(pin):
                    raise FileGoneError(
                        f"{pin.name!r} cannot be pinned: {fault}; pin a newer version"
                    )
                if self._append(pin, True, version, rows):
                    return
            elif (there.table, there.version) != (pin.table, pin.version):
                raise SpecError(
                    f"the pin {pin.name!r} is version {there.version} of {there.table} already; "
                    "unpin it first, or choose another name",
                    name=pin.name,
                )
            else:
                return

    def remove(self, name: str) -> Pin:
        """Forget a pin; the pin that it was.

        Raises:
            UnknownDatasetError: There is no such pin.
            StoreBusyError, StoreError: Nothing was written.
        """
        while True:
            version, rows = self._rows()
            pin = _named(name, _pins(rows))
            if self._append(pin, False, version, rows):
                return pin

    def get(self, name: str) -> Pin:
        """The pin of a name.

        Raises:
            UnknownDatasetError: There is none.
        """
        return _named(name, self.all())

    def all(self) -> dict[str, Pin]:
        """Every pin by name, in the order of pinning."""
        return _pins(self._rows()[1])

    def _rows(self) -> tuple[int, list[dict[str, Any]]]:
        """The newest version of the table, and its rows in the order of their commits."""
        snapshot = self.table.snapshot()
        rows = [
            row
            for file in snapshot.files
            for row in self._reader.columns(file.path, PINS.schema.names).to_pylist()
        ]
        return snapshot.version, sorted(rows, key=lambda row: row["at"])

    def _append(self, pin: Pin, kept: bool, version: int, rows: Sequence[dict[str, Any]]) -> bool:
        """Add the next row to those of a version; whether no other change came first."""
        # The clock of another machine may be ahead; the order must hold all the same.
        at = max([time.time_ns(), *(row["at"] + 1 for row in rows)])
        row = {**asdict(pin), "kept": kept, "at": at}
        # A writer that finds no table competes with one that finds it just made and empty.
        change = Transaction(_WRITER, max(version, 0) + 1)
        return self.table.append(pa.Table.from_pylist([row], schema=PINS.schema), change)

    def fault(self, pin: Pin) -> str | None:
        """Why the version of a pin cannot be read; ``None`` if it can."""
        location = self._datasets.child(pin.table)
        newest = open_table(location)
        if newest is None or not 0 <= pin.version <= newest.version():
            return f"there is no version {pin.version} of {pin.table}"
        if pin.version == newest.version():
            return None
        try:
            pinned = open_table(location, pin.version)
        except FileGoneError as error:
            return str(error)
        assert pinned is not None
        paths = [file.path for file in snapshot_of(pinned).files]
        gone = sum(not info.is_file for info in location.files.get_file_info(paths))
        told = f"{gone} of the {len(paths)} files of version {pin.version} of {pin.table} are gone"
        return f"{told}: it was vacuumed" if gone else None


def _pins(rows: Sequence[dict[str, Any]]) -> dict[str, Pin]:
    """What is pinned after these rows, in the order of pinning."""
    pins: dict[str, Pin] = {}
    for row in rows:
        pins.pop(row["name"], None)
        if row["kept"]:
            pins[row["name"]] = Pin(row["name"], row["table"], row["version"], row["by"])
    return pins


def _named(name: str, pins: dict[str, Pin]) -> Pin:
    if name not in pins:
        raise unknown_name("pin", name, list(pins), UnknownDatasetError)
    return pins[name]
