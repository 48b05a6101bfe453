"""One example id, several contents: counted and named, and both are read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from featurestore.maintenance.validate import changed_examples, validate_store
from syntax import fingerprint


@pytest.mark.slow
def test_changed_content_is_counted_and_named(filled, handle, rows, run) -> None:
    assert changed_examples(filled) == []
    version = filled.dataset("pairs").version
    changed = replace(rows[7], labels={**rows[7].labels, "note": "another"})
    filled.features.append(handle, [replace(changed, example_key=fingerprint("changed"))])
    (found,) = changed_examples(filled)
    assert (found.dataset, found.split, found.example_id, found.rows) == (
        *("pairs", "train", "ex-7", 2),
    )
    assert len(filled.dataset("pairs")) == 101
    assert len(filled.dataset("pairs", version=version)) == 100
    report = validate_store(filled)
    assert (report.problem_count, report.changed) == (0, [found])
    listed = run("inspect", "--changed", "--json")
    assert json.loads(listed.stdout) == [found.to_json()]
    told = run("validate")
    assert told.exit_code == 0
    assert "1 example ids have several contents: store inspect --changed" in told.stdout


def test_equal_content_and_other_parsers_or_languages_are_not_changes(
    store, make_handle, rows, records, make_row
) -> None:
    english, french = make_handle(), make_handle(lang="fr")
    store.features.append(english, rows[:5])
    store.features.append(english, rows[:5])  # as racing writers do
    store.features.append(french, rows[:5])
    store.features.append(english, [make_row(0, records[:2], parser="c" * 32)])
    assert changed_examples(store) == []
