"""Readers of probing tasks: SentEval's files, and treebanks of Universal Dependencies."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from clients.benchmarks import BENCHMARKS, UD_PROBE, UD_PROBE_SHIFT
from clients.benchmarks.ud_probe import exchanged
from syntax.examples import Example, Rejection

SHIFT = BENCHMARKS["senteval_bigram_shift"]


def test_the_splits_of_a_file_are_told_by_its_lines(benchmark_files):
    folder = benchmark_files / "senteval"
    assert [part.split for part in SHIFT.parts(folder)] == ["dev", "test", "train"]
    first, second = SHIFT.read(folder, "dev", "en")
    assert (first.example_id, first.labels) == ("dev-6", {"label": "O"})
    assert second.segments[0].tokens == ("We", "both", "saw", "them", "boats", ".")


def test_a_file_alone_is_the_split_that_is_asked_for(benchmark_files):
    file = benchmark_files / "senteval" / "bigram_shift.txt"
    assert [item.example_id for item in SHIFT.read(file, "test", "en")] == ["test-8"]


def test_bad_lines_of_senteval_are_rejected_once_and_by_name(benchmark_files):
    folder = benchmark_files / "senteval"
    items = [item for split in ("train", "dev", "test") for item in SHIFT.read(folder, split, "en")]
    bad = {x.example_id: x.reason for x in items if isinstance(x, Rejection)}
    assert bad == {"train-3": "label", "train-4": "example", "train-5": "example"}
    assert len(items) == 8


def test_columns_between_label_and_sentence_are_left_out(tmp_path):
    (tmp_path / "past_present.txt").write_text("tr\tPAST\tmore\tIt sank .\n", "utf-8")
    (item,) = BENCHMARKS["senteval_past_present"].read(tmp_path, "train", "en")
    assert item.segments[0].tokens == ("It", "sank", ".")


def test_classes_that_are_numbers_or_words_are_those_of_the_file(benchmark_files):
    folder = benchmark_files / "senteval"
    depth, content = BENCHMARKS["senteval_tree_depth"], BENCHMARKS["senteval_word_content"]
    assert depth.labels_of(folder)[0].names == ("5", "6", "10")
    assert content.labels_of(folder)[0].names == ("boat", "gull")
    reasons = [x.reason for x in depth.read(folder, "train", "en") if isinstance(x, Rejection)]
    assert reasons == ["label"]


def test_labels_of_ud_probe_are_those_of_the_columns(benchmark_files):
    items = list(UD_PROBE.read(benchmark_files / "ud_probe", "dev", "en"))
    names = ("max_depth", "root_upos", "root_tense", "subj_number", "obj_number")
    assert [tuple(item.labels[name] for name in names) for item in items] == [
        ("2", "VERB", "Pres", "Plur", "Plur"),
        ("2", "VERB", None, "Sing", None),  # two values of Tense are none
        ("1", "VERB", None, None, None),
        ("1", "VERB", "Past", None, None),  # pronouns are no common nouns
        ("2", "ADV", None, None, None),
    ]


def test_gold_segments_of_ud_probe_are_those_of_ud(benchmark_files):
    folder = benchmark_files / "ud_probe"
    ours, theirs = (list(x.read(folder, "dev", "en")) for x in (UD_PROBE, BENCHMARKS["ud"]))
    assert [item.segments for item in ours] == [item.segments for item in theirs]


def test_shifted_sentences_differ_by_two_neighbours(benchmark_files):
    folder = benchmark_files / "ud_probe"
    plain = list(BENCHMARKS["ud"].read(folder, "dev", "en", "pretokenized"))
    shifted = list(UD_PROBE_SHIFT.read(folder, "dev", "en"))
    for before, after in zip(plain, shifted, strict=True):
        ours, theirs = after.segments[0].tokens, before.segments[0].tokens
        places = [at for at, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
        if after.labels["bigram_shift"] == "I":
            assert places == [places[0], places[0] + 1]
            assert ours[places[0]] == theirs[places[1]]
        else:
            assert not places
    assert shifted[2].labels == {"bigram_shift": None}  # "Stop !" has no neighbours to exchange


@pytest.mark.parametrize("tokens", ["A b .", 'He said " no no "', "Well had Had .", "A b"])
def test_sentences_without_neighbours_to_exchange(tokens):
    marks = tuple(token == "." for token in tokens.split())
    assert exchanged(tuple(tokens.split()), marks, Random(0)) is None


def test_half_of_a_treebank_is_shifted(data_dir):
    folder = data_dir / "treebanks" / "UD_French-Sequoia"
    items = [x for x in UD_PROBE_SHIFT.read(folder, "dev", "fr") if isinstance(x, Example)]
    counts = Counter(item.labels["bigram_shift"] for item in items)
    assert abs(counts["I"] - counts["O"]) < 0.2 * (counts["I"] + counts["O"])
    assert list(UD_PROBE_SHIFT.read(folder, "dev", "fr")) == items


@pytest.mark.parametrize("treebank", ["UD_Turkish-IMST", "UD_Coptic-Scriptorium"])
def test_every_language_has_roots(data_dir, treebank):
    folder = data_dir / "treebanks" / treebank
    (part,) = UD_PROBE.chosen(folder, "dev")
    items = [x for x in UD_PROBE.items(part, "gold") if isinstance(x, Example)]
    rows = (line.split("\t") for line in part.files[0].read_text("utf-8").splitlines())
    roots = Counter(row[3] for row in rows if len(row) == 10 and row[7].startswith("root"))
    assert Counter(item.labels["root_upos"] for item in items) == roots
    assert any(item.labels["subj_number"] is None for item in items)
