"""Versions of datasets that must stay readable: by name, or while a stream reads them."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from featurestore.records import Transaction
from featurestore.tables.files import FileGoneError, FileReader
from featurestore.tables.log import open_table
from featurestore.tables.root import StoreRoot
from featurestore.tables.schema import PINS
from featurestore.tables.snapshot import files_of, snapshot_of
from syntax.errors import SpecError, StoreError, UnknownDatasetError
from syntax.registry import unknown_name

_LOG: Final = logging.getLogger(__name__)

_WRITER: Final = "pins"
"""Application id of every change. Changes are counted, not versions of the table, which compactions
make too: of two changes that follow the same one, the second is refused."""

LEASE_HOURS: Final = 24.0
"""Duration of a lease; it is renewed once half of that is over."""

LOOK_SECONDS: Final = 600.0
"""Time between two looks of a stream at its files: a vacuum spares them for an hour at least."""


@dataclass(frozen=True)
class Pin:
    """A name for one version of one dataset table; its files are kept.

    Attributes:
        table: Folder of the table below ``datasets``, such as ``xnli/bert-base-...-5f0c``.
        by: The person or run that needs it.
        until: End of a lease, as ISO 8601 in UTC; empty for a pin that stays.
    """

    name: str
    table: str
    version: int
    by: str = ""
    until: str = ""


_FIELDS: Final = tuple(field.name for field in fields(Pin))


class PinTable:
    """Pins, as a list of what was pinned and unpinned; the last row of a name counts.

    Changes follow one another in the order of their commits: each is made of all that were
    committed before, and is decided again when another one wins. Clocks do not matter.
    """

    def __init__(self, root: StoreRoot) -> None:
        self.table = root.table(PINS, "pins")
        self._datasets = root.location.child("datasets")
        self._reader = FileReader(self.table.location)

    def add(self, pin: Pin) -> None:
        """Pin a version that can still be read; the same pin again changes nothing."""
        while True:
            last, rows = self._rows()
            there = _pins(rows).get(pin.name)
            if there is None:
                if not pin.name.strip() or pin.name.isdigit():
                    raise SpecError(
                        f"a pin cannot be called {pin.name!r}; give it a name that is no version, "
                        "such as paper-v1"
                    )
                self._check_readable(pin)
                if self._append(pin, True, last, rows):
                    self._keep_if_readable(pin)
                    return
            elif (there.table, there.version) != (pin.table, pin.version):
                raise SpecError(
                    f"the pin {pin.name!r} is version {there.version} of {there.table} already; "
                    "unpin it first, or choose another name",
                    name=pin.name,
                )
            else:
                return

    def lease(self, table: str, version: int, paths: Collection[str]) -> None:
        """Keep a version for the next hours, if a vacuum could take any of some of its files.

        Nothing is written while the newest version has these files too, nor where a pin, or
        another lease, keeps the version for long enough.
        """
        newest = open_table(self._datasets.child(table))
        if newest and {file.path for file in files_of(newest)}.issuperset(paths):
            return
        while True:
            last, rows = self._rows()
            enough, until = _in_hours(LEASE_HOURS / 2), _in_hours(LEASE_HOURS)
            if any(
                (pin.table, pin.version) == (table, version) and not _is_over(pin, enough)
                for pin in _pins(rows).values()
            ):
                return
            lease = Pin(f"stream:{table}@{version}", table, version, "streams", until)
            self._check_readable(lease)
            if self._append(lease, True, last, rows):
                self._keep_if_readable(lease)
                return

    def _check_readable(self, pin: Pin) -> None:
        if fault := self.fault(pin):
            raise FileGoneError(f"{pin.name!r} cannot be pinned: {fault}; pin a newer version")

    def _keep_if_readable(self, pin: Pin) -> None:
        """Take a new pin back if a vacuum that did not know it has deleted what it names."""
        try:
            self._check_readable(pin)
        except StoreError:
            with suppress(UnknownDatasetError):  # somebody else has removed it
                self.remove(pin.name)
            raise

    def remove(self, name: str) -> Pin:
        """Forget a pin; return it."""
        while True:
            last, rows = self._rows()
            pin = _named(name, _pins(rows))
            if self._append(pin, False, last, rows):
                return pin

    def get(self, name: str) -> Pin:
        return _named(name, self.all())

    def all(self) -> dict[str, Pin]:
        """Every pin by name, in the order of pinning."""
        return _pins(self._rows()[1])

    def versions(self, table: str, then: str) -> set[int]:
        """The pinned versions of a dataset's table; ``then`` is what to do again if one is lost.

        Raises:
            FileGoneError: A pinned version lacks files, or entries of the log.
        """
        own = [pin for pin in self.all().values() if pin.table == table]
        for pin in own:
            if fault := self.fault(pin):
                raise FileGoneError(
                    f"the pin {pin.name!r} cannot be kept: {fault}; forget it with "
                    f"`parsebank store unpin {pin.name}`, and {then}"
                )
        return {pin.version for pin in own}

    def _rows(self) -> tuple[int, list[dict[str, Any]]]:
        """The number of the last change, 0 before the first, and all rows in their order."""
        handle = self.table.open()
        if handle is None:
            return 0, []
        rows = [
            row
            for file in files_of(handle)
            for row in self._reader.columns(file.path, PINS.schema.names).to_pylist()
        ]
        return handle.transaction_version(_WRITER) or 0, sorted(rows, key=lambda row: row["at"])

    def _append(self, pin: Pin, kept: bool, last: int, rows: Sequence[dict[str, Any]]) -> bool:
        """Add a row after the last change; ``False`` if another change came first."""
        # The clock of another machine may be ahead; the order must hold all the same.
        at = max([time.time_ns(), *(row["at"] + 1 for row in rows)])
        row = {**asdict(pin), "kept": kept, "at": at}
        data = pa.Table.from_pylist([row], schema=PINS.schema)
        return self.table.append(data, Transaction(_WRITER, last + 1))

    def fault(self, pin: Pin) -> str | None:
        """The reason that the version of a pin cannot be read; ``None`` if it can."""
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
        except StoreError as error:
            raise StoreError(
                f"version {pin.version} of {pin.table}, which {pin.name!r} pins, cannot be read: "
                f"{error}. Try again; if its log is damaged, which `parsebank store validate` "
                f"says, `parsebank store unpin {pin.name}`"
            ) from error
        assert pinned is not None
        paths = [file.path for file in snapshot_of(pinned).files]
        gone = sum(not info.is_file for info in location.files.get_file_info(paths))
        told = f"{gone} of the {len(paths)} files of version {pin.version} of {pin.table} are gone"
        return f"{told}: it was vacuumed" if gone else None


class Lease:
    """Keeps the files of the version that a stream reads for as long as it calls `renew`.

    Nothing is written while the newest version has the files too; once a compaction or deletion has
    replaced one, the version is pinned for `LEASE_HOURS`, again and again.
    All streams over one version share that pin, and none takes it away: it ends by itself, so that
    a process that died keeps nothing for good.

    Args:
        table: Folder of the dataset's table below ``datasets``.
        looked: Time of the last look at the newest version, in seconds since 1970.
    """

    def __init__(
        self,
        root: StoreRoot,
        table: str,
        version: int,
        paths: Collection[str],
        looked: float = 0.0,
    ) -> None:
        self._root, self._table, self._version = root, table, version
        self._paths, self._looked = paths, looked
        self._is_warned = False

    def renew(self) -> None:
        """Look if the files need the lease, unless the last look was a short time ago.

        A store that cannot be written is streamed without one, with a warning.
        """
        if time.time() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.time()
        try:
            PinTable(self._root).lease(self._table, self._version, self._paths)
        except StoreError as error:
            if not self._is_warned:
                _LOG.warning(
                    "version %d of %s has been replaced, and this stream cannot keep a vacuum from "
                    "deleting its files: %s; vacuum with an --older-than above the length of your "
                    "run, or pin the version",
                    *(self._version, self._table, error),
                )
            self._is_warned = True


def _pins(rows: Sequence[dict[str, Any]]) -> dict[str, Pin]:
    pins: dict[str, Pin] = {}
    for row in rows:
        pins.pop(row["name"], None)
        if row["kept"]:
            pins[row["name"]] = Pin(**{name: row[name] for name in _FIELDS})
    now = _in_hours(0)
    return {name: pin for name, pin in pins.items() if not _is_over(pin, now)}


def _is_over(pin: Pin, when: str) -> bool:
    return bool(pin.until) and pin.until <= when


def _in_hours(hours: float) -> str:
    """A time from now, as `Pin.until` has it; such texts compare as their times do."""
    return datetime.fromtimestamp(time.time() + 3600 * hours, UTC).isoformat(timespec="seconds")


def _named(name: str, pins: dict[str, Pin]) -> Pin:
    if name not in pins:
        raise unknown_name("pin", name, list(pins), UnknownDatasetError)
    return pins[name]
