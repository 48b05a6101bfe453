"""Processes that write, compact, remove repeats and vacuum, killed at random points.

One store takes the blows of many trials. After each, who opens the store now must find every
record that was acknowledged, and now and then who had it open all along; at the end nothing is
there twice.
"""

from __future__ import annotations

import pytest

from featurestore import open_store

from .trials import CASTS, Trials, assert_settled

TRIALS = 25
"""Kills of writers and compactions on each of eight stores, beside five of a vacuum."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cast", list(CASTS))
def test_nothing_acknowledged_is_lost(tmp_path, writers, cast, seed) -> None:
    trials = Trials(tmp_path, writers, f"{cast} {seed}")
    with open_store(trials.uri) as reader:
        for number in range(1, TRIALS + 1):
            trials.run(CASTS[cast])
            if number % 5 == 0:
                # Alone: files that went out of use a moment ago may belong to a commit under way.
                trials.run(["vacuum"])
                trials.check(reader)
            with open_store(trials.uri) as fresh:
                trials.check(fresh)
    with open_store(trials.uri) as store:
        assert len(trials.parses) + len(trials.examples) > TRIALS
        assert_settled(store, trials)


@pytest.mark.slow
def test_a_process_killed_in_mid_compaction_leaves_every_row(tmp_path, writers) -> None:
    trials = Trials(tmp_path, writers, "a few")
    with open_store(trials.uri) as store:
        for modes in (CASTS["repeats"], ["examples", "compact"], ["vacuum"]):
            trials.run(modes)
            trials.check(store)
        assert_settled(store, trials)
