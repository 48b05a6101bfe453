"""The Python examples of docs/store.md run one after the other, as a reader would try them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from featurestore import Drop, FeatureStore, open_store

from .conftest import TOKENIZER

GUIDE = Path(__file__).parents[2] / "docs" / "store.md"
FOREIGN = ('"s3://bucket', "datasets.load_dataset")
"""Marks of examples that need what only other tests have: an object store, another library."""


@pytest.fixture
def written(tmp_path, monkeypatch, make_handle, records, rows) -> FeatureStore:
    """The store that the guide reads: NLI pairs in two languages, and a second dataset."""
    monkeypatch.chdir(tmp_path)
    with open_store("./parsebank-data") as store:
        store.parses.append(records)
        parts = [
            ("xnli", split, lang) for split in ("train", "dev", "test") for lang in ("en", "de")
        ]
        for name, split, lang in (*parts, ("trees", "train", "en")):
            handle = make_handle(
                name=name, split=split, lang=lang, tokenizer="bert-base-multilingual-cased"
            )
            store.features.append(handle, rows)
        yield store


def test_the_python_examples_run_in_sequence(written, make_handle, make_record, parses, rows):
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    own = [block for block in blocks if not any(mark in block for mark in FOREIGN)]
    assert len(own) >= 8
    names = {
        "records": [make_record(parse, 1000 + number) for number, parse in enumerate(parses)],
        "handle": make_handle(name="mine"),
        "rows": rows,
        "drops": [
            Drop(
                dataset="mine",
                tokenizer=TOKENIZER,
                split="train",
                lang="en",
                job="job-7",
                example_id="ex-101",
                example_key="",
                reason="sentence_too_long",
                message="1,001 words",
            )
        ],
    }
    for block in own:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert len(names["missing"]) == len(names["stated"])
    assert not names["stated"].without_states()
    names["store"].close()
