"""Readers of tagged tokens in columns: WikiAnn and CoNLL."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS, CONLL, FCE, WIKIANN
from syntax.errors import SpecError
from syntax.examples import Example, Rejection


def tagged(item: object) -> list[tuple[str, str]]:
    assert isinstance(item, Example)
    return list(zip(item.segments[0].tokens, item.labels["ner_tags"], strict=True))


def test_a_sentence_is_tokens_and_their_tags(benchmark_files):
    first, second, last = WIKIANN.read(benchmark_files / "wikiann", "dev", "en")
    assert tagged(first)[3:] == [("to", "O"), ("Port", "B-LOC"), ("Amber", "I-LOC"), (".", "O")]
    assert [token for token, _ in tagged(second)] == [
        *("''", '"', "Blue", "Heron", "Club", '"', "\u200b"),
    ]
    assert (last.example_id, tagged(last)) == ("dev-3", [("Mira", "B-PER")])


def test_the_language_is_taken_from_the_tokens_of_the_authors_files(benchmark_files):
    first, second = WIKIANN.read(benchmark_files / "wikiann", "dev", "de")
    assert tagged(first) == [("Ada", "B-PER"), ("Bell", "I-PER"), ("segelte", "O")]
    assert tagged(second) == [("Port", "B-LOC"), ("Amber", "I-LOC")]


def test_a_prefix_that_not_every_token_has_is_text(tmp_path):
    (tmp_path / "dev-de.tsv").write_text("de:Ada\tO\nBell\tO\n\nfr:Ada\tO\n", "utf-8")
    first, second = WIKIANN.read(tmp_path, "dev", "de")
    assert [token for token, _ in tagged(first) + tagged(second)] == ["de:Ada", "Bell", "fr:Ada"]


def test_parts_are_found_in_the_three_layouts(tmp_path):
    names = ("dev-en.tsv", "de/train", "wikiann-wo.bio", "maltese/wikiann-mt_test.bio", "other.tsv")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [(part.split, part.lang) for part in WIKIANN.parts(tmp_path)] == [
        *(("dev", "en"), ("test", "mt"), ("train", "de"), ("whole", "wo")),
    ]


def test_ids_count_sentences_whatever_is_rejected(benchmark_files):
    items = list(WIKIANN.read(benchmark_files / "wikiann-bad/empty-token.tsv", "dev", "en"))
    assert [item.example_id for item in items] == ["dev-1", "dev-2", "dev-3", "dev-4"]
    assert [getattr(x, "reason", None) for x in items] == [None, *["empty_token"] * 2, None]
    assert "empty-token.tsv, line 3: token 0 is empty or white space" in items[1].message


def test_lines_without_a_known_tag_reject_their_sentence_only(benchmark_files):
    items = list(WIKIANN.read(benchmark_files / "wikiann-bad/no-tag.tsv", "dev", "en"))
    assert [getattr(x, "reason", None) for x in items] == [*["label"] * 3, None]
    assert "no-tag.tsv, line 2: 'sailed' ends in no tag" in items[0].message
    assert "line 4: tags B-MISC; expected O, B-LOC" in items[1].message


def test_latin1_and_utf8_files_are_told_apart_and_read(benchmark_files):
    spanish = [token for x in CONLL.read(benchmark_files / "conll", "dev", "es")
               for token, _ in tagged(x)]  # fmt: skip
    assert spanish[1:6] == ["señor", "Ibáñez", "llegó", "a", "León"]
    dutch = [token for x in CONLL.read(benchmark_files / "conll", "train", "nl")
             for token, _ in tagged(x)]  # fmt: skip
    assert dutch[:4] == ["Één", "dag", "in", "België"]


def test_docstart_lines_are_no_tokens_and_no_sentences(benchmark_files):
    dutch = list(CONLL.read(benchmark_files / "conll", "train", "nl"))
    assert [item.example_id for item in dutch] == ["train-1", "train-2", "train-3"]
    assert all("-DOCSTART-" not in item.segments[0].tokens for item in dutch)
    english = list(CONLL.read(benchmark_files / "conll", "testb", "en"))
    assert [item.example_id for item in english] == ["test-1", "test-2"]


def test_iob1_with_chunks_in_another_column_becomes_bio(benchmark_files):
    first, _ = CONLL.read(benchmark_files / "conll", "testb", "en")
    assert [tag for _, tag in tagged(first)] == [
        *("B-PER", "I-PER", "B-PER", "O", "O", "B-LOC", "B-MISC"),
    ]


def test_a_column_after_the_tag_is_left_out(benchmark_files):
    (only,) = CONLL.read(benchmark_files / "conll/valid.txt", "dev", "en")
    assert tagged(only) == [("Ada", "B-PER"), ("waits", "O")]


def test_tags_that_spell_no_mentions_are_names_as_they_are(benchmark_files, tmp_path):
    first, second, _ = FCE.read(benchmark_files / "fce", "dev", "en")
    assert first.segments[0].tokens == ("She", "have", "a", "dog", ".")
    assert [item.labels["errors"] for item in (first, second)] == [tuple("ciccc"), tuple("ccic")]
    (tmp_path / "dev.tsv").write_text("She\tc\nruns\tO\n", "utf-8")
    (bad,) = FCE.read(tmp_path, "dev", "en")
    assert bad.reason == "label"
    assert (
        "ends in no tag; expected a token and, in the last column, a tag such as i" in bad.message
    )


def test_fce_is_read_in_six_tags_too(tmp_path):
    """As the release of syntax-aware local attention has it: spaces, tags that spell spans."""
    text = "i O\nhave B-R\nbeen I-R\nthe B-U\nat O\nhome B-M\n\nDogs O\nbark I-M\n"
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(text, "utf-8")
    names = ("O", "B-R", "I-R", "B-U", "I-U", "B-M")
    assert FCE.spec("dev", "en", path=tmp_path).labels[0].names == names
    first, second = FCE.read(tmp_path, "dev", "en")
    assert first.labels["errors"] == ("O", "B-R", "I-R", "B-U", "O", "B-M")
    assert second.labels["errors"] == ("O", "B-M"), "an end without a beginning begins a span"
    (single,) = FCE.labels_of(tmp_path / "dev.tsv")
    assert single.names == names


def test_fce_of_two_kinds_of_tags_is_refused(benchmark_files, tmp_path):
    assert FCE.labels_of(benchmark_files / "fce")[0].names == ("c", "i")
    (tmp_path / "train.tsv").write_text("She\tc\n", "utf-8")
    (tmp_path / "dev.tsv").write_text("She\tO\n", "utf-8")
    with pytest.raises(SpecError, match=r"tags of two kinds .*keep them apart"):
        FCE.labels_of(tmp_path)


def test_a_bad_byte_rejects_one_sentence_of_a_utf8_file(tmp_path):
    good = "Peña NP B-ORG\n\nLeón NP B-LOC\n\n".encode()
    (tmp_path / "esp.testa").write_bytes(good + b"Pe\xf1a NP B-ORG\n\n" + good)
    items = list(CONLL.read(tmp_path, "dev", "es"))
    assert [getattr(x, "reason", "") for x in items] == ["", "", "invalid_character", "", ""]
    assert items[2].message.startswith("esp.testa, line 5: byte 0xf1 at position 2 is not UTF-8")


def test_carriage_returns_and_missing_last_lines_change_nothing(tmp_path):
    text = "Ada NNP B-PER\nsits VBD O\n\n\n  \nBell NNP B-PER\n"
    for split, content in (("train", text), ("dev", text.replace("\n", "\r\n")[:-2])):
        (tmp_path / f"{split}.txt").write_bytes(content.encode())
    train, dev = (list(CONLL.read(tmp_path, split, "en")) for split in ("train", "dev"))
    assert [tagged(x) for x in train] == [tagged(x) for x in dev]
    assert len(train) == 2


def test_a_line_that_hides_another_behind_a_carriage_return_is_rejected(tmp_path):
    (tmp_path / "dev.txt").write_bytes(b"Ada B-PER\rsits O\n\nBell B-PER\n")
    bad, good = CONLL.read(tmp_path, "dev", "en")
    assert (bad.reason, good.example_id) == ("label", "dev-2")
    assert "has a CR behind its token" in bad.message


def test_reading_is_lazy(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("Ada O\n\n" * 3, "utf-8")
    items = CONLL.read(tmp_path, "train", "en")
    next(items)
    with path.open("a", encoding="utf-8") as file:
        file.write("Bell O\n\n" * 2000)
    assert sum(1 for _ in items) > 3


def independent(path: Path) -> tuple[int, int, Counter[str]]:
    """Sentences, tokens and mentions of a file, by regular expressions on its whole text."""
    lines = re.sub(r"(?m)^-DOCSTART-.*\n?", "", path.read_bytes().decode("utf-8")).split("\n")
    rows = [re.split("\t" if "\t" in line else " ", line) for line in lines]
    column = 1 if path.parent.name == "conll2003" else -1
    tags = [row[column] if row != [""] else "" for row in rows]
    starts = Counter(
        tag[2:]
        for before, tag in zip(["", *tags], tags, strict=False)
        if tag[:1] in "BU" or (tag[:1] == "I" and (before in ("", "O") or before[2:] != tag[2:]))
        if tag
    )
    blocks = [block for block in re.split(r"\n{2,}", "\n".join(lines)) if block.strip("\n")]
    return len(blocks), sum(map(bool, tags)), starts


REAL = {
    "wikiann": {"dev": 60_000, "train": 40_000},
    "wikiann-lowresource": {"dev": 508, "test": 507, "train": 4068, "whole": 5083},
    "conll2002": {"dev": 4810, "test": 6712, "train": 24_129},
    "conll2003": {"dev": 3250, "test": 3453, "train": 14_041},
}


@pytest.mark.slow_cases
@pytest.mark.parametrize("folder", ["wikiann-lowresource", "conll2003", "wikiann", "conll2002"])
def test_every_real_sentence_is_read(data_dir, folder):
    reader, path = BENCHMARKS["conll" if "conll" in folder else "wikiann"], data_dir / "benchmarks"
    found: Counter[str] = Counter()
    for part in reader.parts(path / folder):
        sentences, tokens, mentions = 0, 0, Counter[str]()
        for item in reader.read(path / folder, part.split, part.lang):
            assert not isinstance(item, Rejection), item
            sentences += 1
            tokens += len(item.segments[0].tokens)
            mentions.update(x[2:] for x in item.labels["ner_tags"] if x[0] == "B")
        assert (sentences, tokens, mentions) == independent(part.files[0])
        found[part.split] += sentences
    assert found == REAL[folder]


def test_only_spaces_and_tabs_divide_columns(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("New\u00a0York  NNP  B-LOC \n\u3000x\tO\n", "utf-8")
    (only,) = CONLL.read(tmp_path, "train", "en")
    assert tagged(only) == [("New\u00a0York", "B-LOC"), ("\u3000x", "O")]
