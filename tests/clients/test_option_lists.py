"""Lists in options: with commas, or one option after the other."""

from __future__ import annotations

import json
from functools import partial

import pytest


@pytest.mark.parametrize(
    "matrices",
    [("--matrices", "distance,depth"), ("--matrices", "distance", "--matrices", "depth")],
)
def test_parse_command_accepts_a_list_of_matrices(parsebank, matrices) -> None:
    result = parsebank("parse", "Bees dance.", *matrices, "--format", "json")
    assert list(json.loads(result.stdout)["items"][0]["matrices"]) == ["distance", "depth"]


def test_jobs_command_accepts_a_list_of_states(parsebank) -> None:
    for states in (("done,failed",), ("done", "--state", "failed")):
        assert parsebank("jobs", "list", "--state", *states).exit_code == 0
    unknown = parsebank("jobs", "list", "--state", "done,lost")
    assert unknown.exit_code == 1
    assert "unknown state of jobs 'lost'" in unknown.stderr


def test_benchmarks_command_accepts_lists_of_parts(invoke) -> None:
    check = partial(invoke, "benchmarks", "check", "sample")
    both = check("--split", "train,dev", "--lang", "en")
    parts = [line.split("\t")[:3] for line in both.stdout.splitlines() if "\texamples\t" in line]
    assert parts == [["sample", "train", "en"], ["sample", "dev", "en"]]
    assert both.stdout == check("--split", "train", "--split", "dev", "--lang", "en").stdout
    refused = check("--lang", "en,xx")
    assert refused.exit_code == 1
    assert "'xx'" in refused.stderr


def test_an_empty_item_is_refused(parsebank) -> None:
    result = parsebank("backfill", "sample", "--split", "dev", "--lang", "en,")
    assert result.exit_code == 1
    assert "'en,' has an empty item" in result.stderr
