"""Versions of datasets that somebody still needs, by name."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import pyarrow as pa

from featurestore.files import FileReader
from featurestore.root import StoreRoot
from featurestore.tables.schema import PINS
from syntax.errors import SpecError, UnknownDatasetError
from syntax.registry import unknown_name


@dataclass(frozen=True)
class Pin:
    """A name for one version of one dataset table; its files are kept.

    Attributes:
        name: Of the pin; one per store.
        table: Folder of the table below ``datasets``, such as ``xnli/bert-base-...-5f0c``.
        version: Version of the table.
        by: Who needs it: a person, a run.
    """

    name: str
    table: str
    version: int
    by: str = ""


class PinTable:
    """Pins, as a list of what was pinned and unpinned; the last word on a name counts."""

    def __init__(self, root: StoreRoot) -> None:
        self.table = root.table(PINS, "pins")
        self._reader = FileReader(self.table.location)

    def add(self, pin: Pin) -> None:
        """Pin a version; the same pin again changes nothing.

        Raises:
            SpecError: The name is taken by another version.
            StoreBusyError, StoreError: Nothing was written.
        """
        there = self.all().get(pin.name)
        if there is None:
            self._append(pin, kept=True)
        elif (there.table, there.version) != (pin.table, pin.version):
            raise SpecError(
                f"the pin {pin.name!r} is version {there.version} of {there.table} already; unpin "
                "it first, or choose another name",
                name=pin.name,
            )

    def remove(self, name: str) -> Pin:
        """Forget a pin; the pin that it was.

        Raises:
            UnknownDatasetError: There is no such pin.
            StoreBusyError, StoreError: Nothing was written.
        """
        pin = self.get(name)
        self._append(pin, kept=False)
        return pin

    def get(self, name: str) -> Pin:
        """The pin of a name.

        Raises:
            UnknownDatasetError: There is none.
        """
        pins = self.all()
        if name not in pins:
            raise unknown_name("pin", name, list(pins), UnknownDatasetError)
        return pins[name]

    def all(self) -> dict[str, Pin]:
        """Every pin by name, in the order of pinning."""
        files = self.table.snapshot().files
        rows = [
            row
            for file in files
            for row in self._reader.columns(file.path, PINS.schema.names).to_pylist()
        ]
        pins: dict[str, Pin] = {}
        for row in sorted(rows, key=lambda row: row["at"]):
            pins.pop(row["name"], None)
            if row["kept"]:
                pins[row["name"]] = Pin(row["name"], row["table"], row["version"], row["by"])
        return pins

    def _append(self, pin: Pin, kept: bool) -> None:
        row = {**asdict(pin), "kept": kept, "at": time.time_ns()}
        self.table.append(pa.Table.from_pylist([row], schema=PINS.schema))
