"""Processes that write, compact, delete and vacuum, killed at random points.

One store takes the blows of many trials. After each, who opens the store now must find every
record that was acknowledged, and now and then who had it open all along; at the end nothing is
there twice. `faults` does so for as long as wanted, and damages files too.
"""

from __future__ import annotations

import pytest

from .trials import CASTS, ROUNDS, run_store


@pytest.mark.slow
@pytest.mark.parametrize("cast", list(CASTS))
def test_nothing_acknowledged_is_lost(tmp_path, writers, cast) -> None:
    trials = run_store(tmp_path, writers, cast, cast)
    assert trials.counts["kills"] >= ROUNDS
    if cast != "deletions":  # which leave as much as they have time for
        assert len(trials.parses) + len(trials.examples) > ROUNDS
