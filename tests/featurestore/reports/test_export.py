"""Exports: read back by the libraries that others use."""

from __future__ import annotations

import io
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from featurestore import Drop
from featurestore.reports.export import export_conllu, export_dataset, export_spacy, parse_keys
from syntax import parse_conllu
from syntax.errors import SpecError
from syntax.trees.ud import DEPREL, UPOS


def test_an_export_is_what_load_dataset_reads(filled, rows, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    import datasets

    datasets.disable_progress_bars()
    exported = export_dataset(filled.dataset("pairs"), tmp_path / "out")
    assert exported.examples == len(rows)
    read = datasets.load_dataset(
        str(tmp_path / "out"), "en", split="train", cache_dir=str(tmp_path / "cache")
    )
    assert read["example_id"][:] == [row.example_id for row in rows]
    for found, row in zip(read, rows, strict=True):
        assert found["texts"] == list(row.texts)
        assert found["segment_lengths"] == [len(segment) for segment in row.segments]
        for name in ("input_ids", "head", "word_ids"):
            whole = np.concatenate([getattr(segment, name) for segment in row.segments])
            assert found[name] == whole.tolist()
        assert found["upos"] == [UPOS[tag] for segment in row.segments for tag in segment.upos]
        tags = [DEPREL[tag] for segment in row.segments for tag in segment.deprel]
        assert found["deprel"] == tags
        assert found["label"] == row.labels["label"]
        assert len(found["offsets"]) == len(found["head"])


def test_splits_and_languages_of_any_name_are_read_back(
    store, make_handle, rows, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    import datasets

    sizes = {"dev": 3, "dev-mixed": 4, "2020": 5}
    for split, size in sizes.items():
        store.features.append(make_handle(split=split, lang="no"), rows[:size])
    data = store.dataset("pairs", split="*")
    assert (len(data), data.spec.split) == (12, "*")
    assert len(export_dataset(data, tmp_path / "out").files) == 3
    found = datasets.load_dataset(
        str(tmp_path / "out"), "no", cache_dir=str(tmp_path / "cache" / "sets")
    )
    assert {split: len(found[split]) for split in found} == {"dev": 3, "dev_mixed": 4, "2020": 5}
    head = (tmp_path / "out" / "README.md").read_text(encoding="utf-8").split("---")[1]
    assert 'language:\n- "no"\n' in head


def test_the_card_tells_origin_and_what_is_missing(filled, records, tmp_path: Path) -> None:
    data = filled.dataset("pairs")
    tokenizer = data.card.tokenizer_fingerprint
    filled.drops.append(
        [Drop("pairs", tokenizer, "train", "en", "job", "lost", "", "empty_text", "it is empty")]
    )
    filled.describe(records[0].parser, "parser", {"name": "gold", "treebank": "UD_Tiny"})
    export_dataset(filled.dataset("pairs"), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for fact in (
        *('license_name: "Apache-2.0"', "written for the tests", "| train | en | 100 |"),
        *("entailment, neutral, contradiction", "1 examples: empty_text", tokenizer),
        "parser gold, treebank UD_Tiny, licence not recorded",
    ):
        assert fact in card


def test_export_refuses_a_folder_that_is_not_empty(filled, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(SpecError, match="not empty"):
        export_dataset(filled.dataset("pairs"), tmp_path / "out")


def test_docbin_has_a_document_per_text(filled, records, rows, tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
    filled.parses.append(records)
    keys = [key for row in rows for key in row.parse_keys]
    path = tmp_path / "trees.spacy"
    assert export_spacy(filled, keys, path) == len(set(keys))
    binary = spacy.tokens.DocBin().from_disk(path)
    parses = {record.key: record.parse for record in records}
    for document in binary.get_docs(spacy.vocab.Vocab()):
        parse = parses[document.user_data["key"]]
        assert document.user_data["text"] == parse.text
        assert [token.text for token in document] == parse.form
        above = [-1 if token.head.i == token.i else token.head.i for token in document]
        assert above == parse.parents().tolist()
    with pytest.raises(SpecError, match="exists"):
        export_spacy(filled, keys, path)


def test_conllu_has_a_document_per_text(filled, records, rows) -> None:
    filled.parses.append(records)
    file = io.StringIO()
    keys = list(parse_keys(filled.dataset("pairs")))
    assert keys == [key for row in rows for key in row.parse_keys]
    assert export_conllu(filled, keys, file) == len(set(keys))
    documents = file.getvalue().split("# newdoc id = ")[1:]
    parses = {record.key: record.parse for record in records}
    for document, key in zip(documents, dict.fromkeys(keys), strict=True):
        name, _, content = document.partition("\n")
        assert name == key
        found, whole = list(parse_conllu(content)), parses[key].sentences()
        assert [one.sent_id for one in found] == [f"{key}-{n + 1}" for n in range(len(whole))]
        plain = [replace(sentence, comments=sentence.comments[1:]) for sentence in found]
        assert plain == whole
