"""Files without labels, as of blind test sets, are read; a line that lacks its label is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clients.benchmarks import BENCHMARKS, CONLL, FCE, PAWSX, TABLE, WIKIANN, XNLI, table_benchmark
from clients.benchmarks.recognise import fitting
from syntax.examples import Example, LabelSpec, Rejection

PAIRS = 'A man eats.\tHe eats.\nIt "rains".\tIt pours.\n'
TOKENS = "en:The\nen:Rhine\n\nen:Bonn\n"


def read(reader, tmp_path: Path, name: str, content: str) -> list[Example | Rejection]:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    return list(reader.read(path, "test", "en"))


def blind(items: list[Example | Rejection]) -> bool:
    assert all(isinstance(item, Example) for item in items), items
    return all(set(item.labels.values()) == {None} for item in items if isinstance(item, Example))


@pytest.mark.parametrize("reader", [XNLI, PAWSX, BENCHMARKS["sample"]])
def test_pairs_without_a_label_column_are_blind(tmp_path, reader):
    items = read(reader, tmp_path, "test-en.tsv", PAIRS)
    assert blind(items)
    assert [item.example_id for item in items] == ["test-1", "test-2"]
    assert items[1].segments[0].text == 'It "rains".'
    assert blind(read(reader, tmp_path, "test-de.tsv", PAIRS.replace("\n", "\t\n")))


def test_a_pair_without_label_among_others_is_rejected(tmp_path):
    first, second = read(XNLI, tmp_path, "test-en.tsv", f"A.\tB.\n{PAIRS[:20]}\tneutral\n")
    assert (first.reason, second.labels) == ("example", {"label": "neutral"})
    items = read(XNLI, tmp_path, "test-en.tsv", f"{PAIRS}one\n\n\t\n")
    assert [isinstance(item, Rejection) for item in items] == [False, False, True, True, True]


def test_headers_without_the_label_are_blind(tmp_path):
    header = "id\tsentence1\tsentence2\n"
    items = read(PAWSX, tmp_path, "test_2k.tsv", f"{header}7\tA.\tB.\n8\tC.\tD.\n")
    assert [item.example_id for item in items] == ["test-7", "test-8"]
    assert blind(items)
    lines = "language\tsentence1\tsentence2\nen\tA.\tB.\nde\tC.\tD.\n"
    (tmp_path / "xnli.test.tsv").write_text(lines, "utf-8")
    assert blind(list(XNLI.read(tmp_path, "test", "de")))


@pytest.mark.parametrize("reader", [WIKIANN, CONLL, FCE])
def test_a_file_of_tokens_alone_is_blind(tmp_path, reader):
    for content in (TOKENS, TOKENS.replace("e\n", "e\t\n"), f"-DOCSTART- -X- O O\n\n{TOKENS}"):
        items = read(reader, tmp_path, "test-en.tsv", content)
        assert blind(items)
        assert [item.segments[0].tokens for item in items] == [("The", "Rhine"), ("Bonn",)]


def test_token_without_tag_rejects_its_sentence(tmp_path):
    first, second = read(WIKIANN, tmp_path, "test-en.tsv", "Bonn\n\nThe\tO\n")
    assert (first.reason, second.labels) == ("label", {"ner_tags": ("O",)})


def question(name: str, **fields: object) -> dict[str, object]:
    return {"id": name, "question": "Who left?", **fields}


@pytest.mark.parametrize("reader", ["squad", "xquad", "mlqa", "tydiqa"])
@pytest.mark.parametrize("answers", [None, [], [{"text": "", "answer_start": 0}]])
def test_questions_of_a_file_without_answers_are_blind(tmp_path, reader, answers):
    def document(*questions: dict[str, object]) -> str:
        return json.dumps({"data": [{"paragraphs": [{"context": "Ann left.", "qas": questions}]}]})

    asked = question("a", **({} if answers is None else {"answers": answers}))
    assert blind(read(BENCHMARKS[reader], tmp_path, "test.json", document(asked, asked)))
    answered = question("b", answers=[{"text": "Ann", "answer_start": 0}])
    first, last = read(BENCHMARKS[reader], tmp_path, "test.json", document(asked, answered))
    assert isinstance(first, Rejection) if reader == "squad" else first.labels == {"answers": ()}
    assert len(last.labels["answers"]) == 1


LABELS = (
    LabelSpec("label", "class", ("no", "yes")),
    LabelSpec("score", "float"),
    LabelSpec("note", "string"),
    LabelSpec("spans", "spans"),
)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.tsv", "text\nA.\nB.\n"),
        ("test.csv", "text,label,score,note,spans\nA.,,,,\nB.,,,,\n"),
        ("test.jsonl", '{"text": "A."}\n{"text": "B.", "label": null, "spans": null}\n'),
        ("test.json", '[{"text": "A.", "label": -1}, {"text": "B.", "label": ""}]'),
    ],
)
def test_table_without_any_label_is_blind(tmp_path, name, content):
    items = read(table_benchmark(labels=LABELS), tmp_path, name, content)
    assert len(items) == 2
    assert blind(items)


def test_each_label_of_a_table_is_blind_by_itself(tmp_path):
    rows = [{"text": "A.", "spans": []}, {"text": "B.", "spans": [], "note": "x"}]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    first, second = read(table_benchmark(labels=LABELS), tmp_path, "test.jsonl", content)
    assert first.reason == "example"
    assert second.labels == {"label": None, "score": None, "note": "x", "spans": ()}


def test_tags_of_a_table_may_be_blind(tmp_path):
    tags = table_benchmark(labels=(LabelSpec("tags", "tags", ("O", "B-X"), "text"),))
    for value in (None, [], [-1, -1], ""):
        row = {"text": ["A", "."], **({} if value == "" else {"tags": value})}
        assert blind(read(tags, tmp_path, "test.jsonl", json.dumps(row) + "\n"))


def test_the_names_of_a_blind_table_are_those_of_the_files_beside_it(tmp_path):
    reader = table_benchmark(labels=(LabelSpec("label", "class"),))
    (tmp_path / "train.tsv").write_text("text\tlabel\nA.\tyes\nB.\tno\n", "utf-8")
    (tmp_path / "test.tsv").write_text("text\nC.\n", "utf-8")
    (item,) = reader.read(tmp_path, "test", "en")
    assert item.labels == {"label": None}
    assert reader.spec("test", "en", path=tmp_path).labels[0].names == ("no", "yes")


def test_recognition_ignores_blind_files(tmp_path):
    (tmp_path / "test-en.tsv").write_text(PAIRS, "utf-8")
    assert set(fitting(tmp_path)) <= {TABLE.name}


def cut(path: Path, to: Path, columns: int) -> Path:
    """A file with the first columns alone, as XTREME gives out its tests."""
    lines = path.read_text("utf-8").split("\n")
    to.write_text("\n".join("\t".join(x.split("\t")[:columns]) for x in lines), "utf-8")
    return to


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "columns"),
    [
        ("xnli", "xnli/test-en.tsv", 2),
        ("xnli", "xnli/test-de.tsv", 2),
        *[("pawsx", f"pawsx/dev-{lang}.tsv", 2) for lang in ("de", "ja", "zh")],
        *[("wikiann", f"wikiann/dev-{lang}.tsv", 1) for lang in ("de", "vi", "zh")],
    ],
)
def test_real_files_without_their_labels_have_the_same_texts(
    data_dir, tmp_path, name, file, columns
):
    reader, path = BENCHMARKS[name], data_dir / "benchmarks" / file
    lang = path.stem.partition("-")[2]
    labelled = [x for x in reader.read(path, "test", lang) if isinstance(x, Example)]
    items = list(reader.read(cut(path, tmp_path / path.name, columns), "test", lang))
    assert blind(items)
    assert [(x.example_id, x.segments) for x in items] == [
        (x.example_id, x.segments) for x in labelled
    ]
