"""One bit in any data file is found, named, never read, and repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from featurestore import open_store

from .damages import check_many, fill


@pytest.mark.slow
def test_a_changed_bit_is_found_and_nothing_wrong_is_read(
    tmp_path: Path, handle, records, rows
) -> None:
    with open_store(tmp_path / "store") as store:
        fill(store, handle, records, rows)
    given = (records, rows)
    counts = check_many(tmp_path / "store", 4, 28, handle, given, repairs=1)
    assert sum(counts.values()) == 4
