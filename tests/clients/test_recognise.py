"""Which reader fits a path."""

from __future__ import annotations

import pytest

from clients.benchmarks import BENCHMARKS
from clients.benchmarks.recognise import fitting, recognised
from syntax.errors import UnknownNameError


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(("pairs", "xnli"), ("pawsx", "pawsx"), ("wikiann", "wikiann"), ("conll", "conll")),
        *(("snli", "snli"), ("mnli", "mnli"), ("cola", "cola"), ("sst2", "sst2")),
        *(("matis", "matis"), ("mtop", "mtop"), ("ud", "ud"), ("text", "text")),
        ("fce", "fce"),
    ],
)
def test_the_one_reader_that_fits_is_recognised(benchmark_files, folder, name):
    assert recognised(benchmark_files / folder) == name


def test_files_that_several_readers_fit_are_named_with_them(benchmark_files):
    with pytest.raises(UnknownNameError, match=r"the readers atis, snips fit .*atis; name the one"):
        recognised(benchmark_files / "atis")


def test_files_that_no_reader_fits_are_refused(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"\x00")
    with pytest.raises(UnknownNameError, match="no reader fits"):
        recognised(tmp_path)
    with pytest.raises(UnknownNameError, match="there is no file or folder"):
        recognised(tmp_path / "nowhere")


def test_general_reader_fits_only_if_no_other_does(benchmark_files):
    assert fitting(benchmark_files / "conll" / "valid.txt") == ["conll", "wikiann"]
    assert BENCHMARKS["text"].general


def test_a_file_of_another_kind_is_no_fit(tmp_path):
    (tmp_path / "dev-en.tsv").write_text("one\ttwo\tthree\n" * 5, "utf-8")
    (tmp_path / "utf16.txt").write_text("one\n", "utf-16")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "seq.in").write_text("go\n", "utf-8")
    assert fitting(tmp_path) == []


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(("xnli", "xnli"), ("pawsx", "pawsx"), ("wikiann", "wikiann"), ("cola", "cola")),
        *(("wikiann-lowresource", "wikiann"), ("conll2002", "conll"), ("conll2003", "conll")),
        *(("snli-sample", "snli"), ("xquad", "xquad"), ("mlqa", "mlqa"), ("tydiqa", "tydiqa")),
        ("race", "race"),
    ],
)
def test_real_folders_are_recognised(data_dir, folder, name):
    assert recognised(data_dir / "benchmarks" / folder) == name
