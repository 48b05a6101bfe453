"""Readers of classified sentences and pairs: SNLI, MultiNLI, CoLA, SST-2, PrOnto."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from clients.benchmarks import BENCHMARKS, COLA, MNLI, SNLI, SST2
from syntax.errors import SpecError
from syntax.examples import Example, Rejection


def texts(item: object) -> list[str | None]:
    assert isinstance(item, Example)
    return [segment.text for segment in item.segments]


def reasons(items: list) -> list[str]:
    return [item.reason if isinstance(item, Rejection) else "" for item in items]


def test_a_record_of_snli_is_a_pair(benchmark_files):
    items = list(SNLI.read(benchmark_files / "snli", "dev", "en"))
    assert texts(items[0]) == ["A girl mends a net.", 'The "net" is old.']
    assert items[0].labels == {"label": "neutral"}
    assert [item.example_id for item in items] == [f"dev-{n}" for n in range(1, 8)]


def test_records_of_snli_without_label_or_text_are_rejected_by_name(benchmark_files):
    items = list(SNLI.read(benchmark_files / "snli", "dev", "en"))
    assert reasons(items) == ["", "no_label", "", "example", "example", "label", "example"]
    assert items[1].message == "snli_1.0_dev.jsonl, line 2 has no gold label ('-' stands for none)"
    assert items[4].message.endswith("is a JSON list; expected an object")


@pytest.mark.parametrize("line", ["", "[" * 100_000, "nul", '"text"', '{"gold_label": 1}'])
def test_bad_lines_do_not_stop_a_reader(tmp_path, line):
    good = json.dumps({"gold_label": "neutral", "sentence1": "A.", "sentence2": "B."})
    (tmp_path / "snli_1.0_train.jsonl").write_text(f"{line}\n{good}\n", "utf-8")
    bad, last = SNLI.read(tmp_path, "train", "en")
    assert bad.reason == "example"
    assert texts(last) == ["A.", "B."]


def test_half_of_a_surrogate_pair_is_rejected_by_name(tmp_path):
    record = {"gold_label": "neutral", "sentence1": "A.", "sentence2": "\ud83c"}
    (tmp_path / "snli_1.0_train.jsonl").write_text(json.dumps(record), "utf-8")
    assert reasons(list(SNLI.read(tmp_path, "train", "en"))) == ["invalid_character"]


def test_multinli_has_matched_and_mismatched_splits(benchmark_files):
    folder = benchmark_files / "mnli"
    assert [part.split for part in MNLI.parts(folder)] == ["dev_matched", "test_mismatched"]
    (hidden,) = MNLI.read(folder, "test_mismatched", "en")
    assert hidden.labels == {"label": None}
    (matched,) = MNLI.read(folder, "validation_matched", "en")
    assert matched.labels == {"label": "contradiction"}


def test_a_line_of_cola_is_a_sentence(benchmark_files):
    items = list(COLA.read(benchmark_files / "cola", "dev", "en"))
    assert texts(items[0]) == ['The cook burnt the "soup".']
    assert [item.labels["label"] for item in items[:2]] == ["1", "0"]
    assert reasons(items[2:]) == ["label", "example"]


def test_the_authors_splits_of_cola_have_names(benchmark_files, tmp_path):
    for name in ("in_domain_train", "in_domain_dev", "out_of_domain_dev"):
        (tmp_path / f"{name}.tsv").touch()
    assert [part.split for part in COLA.parts(tmp_path)] == ["dev", "dev_out_of_domain", "train"]


def test_blind_tests_are_kept_without_label(benchmark_files):
    (cola,) = COLA.read(benchmark_files / "cola", "test", "en")
    (sst,) = SST2.read(benchmark_files / "sst2", "test", "en")
    assert (cola.example_id, texts(cola)) == ("test-1", ["The ship sank slowly."])
    assert (sst.example_id, texts(sst)) == ("test-2", ["slow but moving . "])
    assert cola.labels == sst.labels == {"label": None}


@pytest.mark.parametrize("reader", [COLA, SST2])
def test_a_line_of_a_blind_test_without_its_number_is_rejected(tmp_path, reader):
    (tmp_path / "test.tsv").write_text("0\tA.\n\nno\tB.\n3\tC.\tmore\n4\tD.\n", "utf-8")
    items = list(reader.read(tmp_path, "test", "en"))
    assert reasons(items) == ["", "example", "example", "example", ""]


def test_a_line_without_label_among_others_is_rejected(tmp_path):
    (tmp_path / "test.tsv").write_text("ab\t1\t\tA.\n7\tB.\n", "utf-8")
    assert reasons(list(COLA.read(tmp_path, "test", "en"))) == ["", "no_label"]


def test_records_without_gold_labels_are_blind_where_the_file_has_none(tmp_path):
    pair = {"sentence1": "A.", "sentence2": "B."}
    for name, lines in {
        "test": [pair, pair],
        "dev": [pair | {"gold_label": "-"}, pair, pair | {"gold_label": "neutral"}],
    }.items():
        path = tmp_path / f"snli_1.0_{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert [x.labels for x in SNLI.read(tmp_path, "test", "en")] == [{"label": None}] * 2
    assert reasons(list(SNLI.read(tmp_path, "dev", "en"))) == ["no_label", "no_label", ""]


def test_the_header_of_sst_is_no_example(benchmark_files):
    items = list(SST2.read(benchmark_files / "sst2", "dev", "en"))
    assert [item.example_id for item in items] == ["dev-2", "dev-3", "dev-4"]
    assert texts(items[1]) == ["2 "]
    assert reasons(items) == ["", "", "label"]


def test_mentions_are_capped_and_whole(benchmark_files):
    reader = BENCHMARKS["pronto_nonpronominal_mention"]
    items = list(reader.read(benchmark_files / "pronto", "dev", "en"))
    assert [dict(item.labels) for item in items[:3]] == [
        {"label": "2", "mentions": 2.0},
        {"label": "0", "mentions": 0.0},
        {"label": "3", "mentions": 11.0},
    ]
    assert reasons(items) == ["", "", "", "label"]


def test_pairs_of_verses_carry_their_sense(benchmark_files):
    same, different = BENCHMARKS["pronto_same_sense"].read(benchmark_files / "pronto", "dev", "en")
    assert texts(same) == ["He gave bread .", "They give thanks ."]
    assert same.labels == {"label": "same", "sense": "give.01"}
    assert different.labels == {"label": "different", "sense": "go.02"}


def kept(items: list) -> list[str]:
    return [item.example_id for item in items if isinstance(item, Example)]


def test_disjoint_splits_of_pronto_share_no_verse_and_test_is_as_released(benchmark_files):
    reader, path = BENCHMARKS["pronto_same_sense_disjoint"], benchmark_files / "pronto"
    items = {split: list(reader.read(path, split, "en")) for split in ("train", "dev", "test")}
    assert items["test"] == list(BENCHMARKS["pronto_same_sense"].read(path, "test", "en"))
    verses = {
        split: {text for item in of if isinstance(item, Example) for text in texts(item)}
        for split, of in items.items()
    }
    assert not verses["train"] & verses["dev"]
    assert not (verses["train"] | verses["dev"]) & verses["test"]
    assert kept(items["train"]) == [f"train-{n}" for n in (2, 4, 5, 6, 7, 8)]


def test_a_pair_that_is_left_out_of_a_disjoint_split_says_where_its_verse_is(benchmark_files):
    reader = BENCHMARKS["pronto_same_sense_disjoint"]
    items = list(reader.read(benchmark_files / "pronto", "train", "en"))
    assert reasons(items)[:3] == ["example", "", "example"]
    assert [items[at].message for at in (0, 2)] == [
        "a text of it is in dev, too",
        "a text of it is in test, too",
    ]


def test_disjoint_splits_need_the_whole_folder(benchmark_files):
    reader = BENCHMARKS["pronto_same_sense_disjoint"]
    path = benchmark_files / "pronto/same_sense_dev.tsv"
    with pytest.raises(SpecError, match="came without the other splits"):
        list(reader.read(path, "dev", "en"))


@pytest.mark.parametrize(
    ("task", "expected"),
    [("proper_noun_subject", ["", "", "label"]), ("sentence_mood", ["", "", "example"])],
)
def test_other_lines_of_pronto_are_rejected_by_name(benchmark_files, task, expected):
    items = BENCHMARKS[f"pronto_{task}"].read(benchmark_files / "pronto", "dev", "en")
    assert reasons(list(items)) == expected


@pytest.mark.parametrize(
    ("split", "counts"),
    [("train", {"1": 6023, "0": 2528}), ("dev", {"1": 721, "0": 322}), ("test", {None: 1063})],
)
def test_every_real_line_of_cola_is_read(data_dir, split, counts):
    items = list(COLA.read(data_dir / "benchmarks/cola", split, "en"))
    examples = [item for item in items if isinstance(item, Example)]
    assert Counter(item.labels["label"] for item in examples) == counts
    lines = (data_dir / f"benchmarks/cola/cola_{split}.tsv").read_text("utf-8").splitlines()
    assert len(items) == len(lines)
    assert [texts(x) for x in examples] == [[x.split("\t")[-1]] for x in lines]
