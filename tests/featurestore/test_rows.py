"""The index of a dataset's rows beside its slow twin."""

from __future__ import annotations

from dataclasses import replace
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from featurestore import open_store
from featurestore.tables.files import FileReader
from featurestore.tables.rows import read_row_index

PARSERS = ("0" * 32, "f" * 32)
commits = st.lists(
    st.tuples(st.sampled_from(["train", "dev"]), st.lists(st.integers(0, 7), min_size=1)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=15)
@given(commits)
def test_rows_are_in_order_and_each_example_is_there_once(
    make_handle, make_row, records, commits
) -> None:
    """Also where several examples have a ``seq``, and several writers an example."""
    examples = [
        replace(make_row(number, records[:2], parser=PARSERS[number % 2]), seq=number // 3)
        for number in range(8)
    ]
    with TemporaryDirectory() as folder, open_store(folder) as store:
        for split, numbers in commits:
            store.features.append(make_handle(split=split), [examples[n] for n in numbers])
        ((_, table),) = store.features.tables()
        found = read_row_index(FileReader(table.location), table.snapshot().files)
    wanted = {(split, number) for split, numbers in commits for number in numbers}
    keys = [f"{high:016x}{low:016x}" for high, low in found.keys.tolist()]
    parts = [found.parts[part][0] for part in found.part]
    parsers = [found.parsers[parser] for parser in found.parser]
    expected = sorted(
        (split, examples[n].seq, examples[n].example_key, examples[n].parser) for split, n in wanted
    )
    assert list(zip(parts, keys, parsers, strict=True)) == [
        (split, key, parser) for split, _, key, parser in expected
    ]
