from __future__ import annotations

from collections import Counter

from clients.benchmarks import SAMPLE
from clients.benchmarks.sample import make
from clients.benchmarks.sample.material import PATTERNS
from clients.demo import sample_texts
from syntax.examples import Example


def test_sample_files_equal_the_output_of_make():
    for split, content in make.files().items():
        assert (SAMPLE.bundled / f"{split}-en.tsv").read_text("utf-8") == content


def test_sample_has_400_training_and_100_dev_pairs_of_balanced_labels():
    for split, size in (("train", 400), ("dev", 100)):
        items = list(SAMPLE.read(None, split, "en"))
        assert len(items) == size
        assert all(isinstance(item, Example) for item in items)
        counts = Counter(item.labels["label"] for item in items)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_dev_shares_no_premise_with_train():
    premises = {
        split: {item.segments[0].text for item in SAMPLE.read(None, split, "en")} - {""}
        for split in ("train", "dev")
    }
    assert not premises["train"] & premises["dev"]


def test_three_premises_are_missing_on_purpose():
    empty = [
        item.example_id
        for split in ("train", "dev")
        for item in SAMPLE.read(None, split, "en")
        if not item.segments[0].text
    ]
    assert empty == ["train-137", "train-286", "dev-58"]


def test_every_pattern_is_used_with_every_label():
    assert len(PATTERNS) % len(make.LABELS), "labels take turns, so patterns must not keep step"


def test_fifty_sentences_come_with_it():
    texts = sample_texts()
    assert len(texts) == len(set(texts)) == 50
