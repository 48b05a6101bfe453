"""A share of the texts as `dev`."""

from __future__ import annotations

import pytest

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.base import is_dev, with_dev_share
from clients.benchmarks.text import WHOLE_FILES
from syntax.errors import SpecError


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"Text {n}.\n" for n in range(2000)), "utf-8")
    return path


def ids(reader, path, split):
    return [item.example_id for item in reader.read(path, split, "en")]


def test_texts_are_divided_once_and_for_all(lines):
    reader = with_dev_share(BENCHMARKS["text"], 0.1)
    train, dev = ids(reader, lines, "train"), ids(reader, lines, "dev")
    assert sorted(train + dev) == sorted(ids(BENCHMARKS["text"], lines, "train"))
    assert 160 <= len(dev) <= 240  # 200 +- 3 standard deviations
    assert dev[:3] == ["lines-2", "lines-10", "lines-12"]
    lines.write_text("\n".join(lines.read_text("utf-8").splitlines()[:1000]), "utf-8")
    assert set(ids(reader, lines, "dev")) <= set(dev)


def test_a_larger_share_contains_a_smaller_one():
    small, large = ({n for n in range(500) if is_dev(str(n), share)} for share in (0.1, 0.3))
    assert small < large


def test_rejections_are_divided_too(tmp_path):
    (tmp_path / "a.txt").write_text("\n" * 40, "utf-8")
    reader = with_dev_share(BENCHMARKS["text"], 0.5)
    assert len(ids(reader, tmp_path, "train")) + len(ids(reader, tmp_path, "dev")) == 40


def test_files_are_divided_as_wholes(tmp_path):
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text("One.\nTwo.\n", "utf-8")
    reader = with_dev_share(WHOLE_FILES, 0.5)
    train, dev = ids(reader, tmp_path, "train"), ids(reader, tmp_path, "dev")
    assert sorted(map(int, train + dev)) == list(range(30))
    assert [part.split for part in reader.parts(tmp_path)] == ["dev", "train"]


def test_impossible_shares_and_splits_are_refused(lines, benchmark_files):
    for share in (0, 1, -0.5, float("nan")):
        with pytest.raises(SpecError, match="expected more than 0 and less than 1"):
            with_dev_share(BENCHMARKS["text"], share)
    with pytest.raises(SpecError, match="the splits are train and dev; got 'test'"):
        ids(with_dev_share(BENCHMARKS["text"], 0.1), lines, "test")
    with pytest.raises(SpecError, match=r"has splits of its own \(dev"):
        with_dev_share(BENCHMARKS["ud"], 0.1).parts(benchmark_files / "ud")
