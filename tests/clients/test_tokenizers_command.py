"""``parsebank tokenizers train``, and a backfill with what it made."""

from __future__ import annotations

import json

import pytest

from featurestore import open_store
from syntax.batches import AssemblySpec


@pytest.fixture
def train(invoke, tmp_path):
    def train(*arguments: object, lang: str = "en", split: str = "train"):
        options = ("--split", split, "--lang", lang, "--out", tmp_path / "own", "--json")
        result = invoke("tokenizers", "train", *arguments, *options)
        facts = {}
        if result.exit_code == 0:
            facts = {row["what"]: row["value"] for row in json.loads(result.stdout)}
        return result, facts

    return train


def test_a_corpus_of_pages_makes_a_tokenizer(train, benchmark_files, tmp_path):
    result, facts = train("microbert", "--path", benchmark_files / "microbert", lang="wo")
    assert result.exit_code == 0, result.output
    assert (facts["texts"], facts["tokens"], facts["types"]) == (12, 41, 36)
    assert facts["rejected: invalid_character"] == 1
    record = json.loads((tmp_path / "own" / "training.json").read_text("utf-8"))
    assert record["fingerprint"] == facts["fingerprint"]
    assert record["corpus"]["parts"] == [["train", "wo"]]
    assert record["corpus"]["rejected"] == {"invalid_character": 1}
    assert str(tmp_path) not in json.dumps(record)


def test_options_and_other_readers(train, tmp_path, benchmark_files):
    options = ("--cased", "--vocab-size", 60)
    result, facts = train("ud", "--path", benchmark_files / "ud", *options, split="dev")
    assert result.exit_code == 0, result.output
    assert facts["pieces"] <= 60
    again, _ = train("ud", "--path", benchmark_files / "ud")
    assert again.exit_code == 1
    assert "own exists already; name a new folder with --out" in again.output


def test_a_tokenizer_of_both_sides_of_translations(train, benchmark_files):
    options = ("--path", benchmark_files / "parallel", "--kind", "words")
    result, facts = train("parallel", *options, "--vocab-size", 9, split="dev", lang="en,de")
    assert result.exit_code == 0, result.output
    assert facts["pieces"] == 9
    refused, _ = train("parallel", *options, "--cased", split="dev")
    assert refused.exit_code == 1


@pytest.mark.slow
def test_an_own_tokenizer_serves_a_backfill_at_once(invoke, train, tmp_path):
    (tmp_path / "texts").mkdir()
    text = "The mill stands by the river.\nBees dance.\n\nThe river turns the wheel of the mill.\n"
    (tmp_path / "texts" / "a.txt").write_text(text, "utf-8")
    result, facts = train("text", "--path", tmp_path / "texts", "--mode", "sentence")
    assert result.exit_code == 0, result.output
    assert facts["rejected: empty_text"] == 1
    store, own = tmp_path / "store", tmp_path / "own"
    options = ("--lang", "en", "--tokenizer", own, "--store", store, "--mode", "sentence")
    for share, split in ((), "train"), (("--dev-share", "0.5"), "dev"):
        arguments = ("--path", tmp_path / "texts", "--split", split, *share)
        done = invoke("backfill", "text", *arguments, *options)
        assert done.exit_code == 0, done.output
    data = open_store(store).dataset("text", split="train", lang="en")
    assert data.card.tokenizer_fingerprint == facts["fingerprint"]
    assert data.labels == ()
    (batch,) = data.stream(batch_size=4, assembly=AssemblySpec(max_length=512, joint_root=False))
    assert sorted(batch["example_id"]) == ["a-1", "a-2", "a-4"]
    assert (batch["input_ids"][:, 0] == 1).all()
    assert (batch["parents"][:, 0] == -1).all()


@pytest.mark.slow
def test_tokens_are_cut_before_the_parse(invoke, train, tmp_path):
    path = tmp_path / "table.jsonl"
    tokens = ["The", "mill", "stands", "by", "the", "river", "and", "Ann", "grinds", "corn", "."]
    path.write_text(json.dumps({"text": tokens}) + "\n", "utf-8")
    assert train("table", "--path", path, "--mode", "pretokenized")[0].exit_code == 0
    options = ("--split", "train", "--lang", "en", "--mode", "pretokenized", "--max-pieces", "12")
    places = ("--tokenizer", tmp_path / "own", "--store", tmp_path / "store")
    done = invoke("backfill", "table", "--path", path, *options, *places)
    assert done.exit_code == 0, done.output
    assert "table train en: 1 examples cut to --max-pieces" in done.stderr
    data = open_store(tmp_path / "store").dataset("table", split="train", lang="en")
    (batch,) = data.stream(batch_size=1, max_length=512)
    assert batch["input_ids"].shape[1] <= 12
    # One root: the rest was parsed as a sentence of its own.
    assert int((batch["parents"][0] == 0).sum()) >= 1
