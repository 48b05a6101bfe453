"""Tables and objects of the library `datasets`."""

from __future__ import annotations

import sys

import pytest

from clients.benchmarks import dataset_items, table_benchmark
from syntax.errors import InputError, MissingExtraError, SpecError
from syntax.examples import Example, LabelSpec, SpanLabel

datasets = pytest.importorskip("datasets")

ROWS = {
    "number": [7, 8],
    "words": [["Kim", "sang"], ["Nobody"]],
    "ner": [[1, 0], [0]],
    "mood": [1, 0],
    "score": [0.5, 1.0],
    "answers": [{"text": ["Kim"], "answer_start": [0]}, {"text": [], "answer_start": []}],
}
LABELS = (
    LabelSpec("tags", "tags"),
    LabelSpec("mood", "class"),
    LabelSpec("answers", "spans"),
)
OPTIONS = {"fields": ("text",), "columns": {"text": "words", "tags": "ner"}, "id": "number"}
EXPECTED = [
    ("7", {"tags": ("B-PER", "O"), "mood": "glad", "answers": (SpanLabel(0, 3),)}),
    ("8", {"tags": ("O",), "mood": "sad", "answers": ()}),
]


@pytest.fixture(scope="module")
def data():
    datasets.disable_progress_bars()
    value, listed = datasets.Value, datasets.List
    answers = {"text": listed(value("string")), "answer_start": listed(value("int32"))}
    features = datasets.Features(
        number=value("int64"),
        words=listed(value("string")),
        ner=listed(datasets.ClassLabel(names=["O", "B-PER", "I-PER"])),
        mood=datasets.ClassLabel(names=["sad", "glad"]),
        score=value("float32"),
        answers=answers,
    )
    return datasets.Dataset.from_dict(ROWS, features=features)


@pytest.fixture(params=["parquet", "saved"])
def path(request, data, tmp_path):
    """The data as a folder of sharded Parquet, and as `datasets` saves it."""
    if request.param == "saved":
        datasets.DatasetDict(validation=data).save_to_disk(
            tmp_path / "saved", num_shards={"validation": 2}
        )
        return tmp_path / "saved"
    for shard in (0, 1):
        part = data.shard(2, shard, contiguous=True)
        part.to_parquet(tmp_path / f"data/validation-{shard:05}-of-00002.parquet")
    return tmp_path


def test_saved_tables_are_read_with_the_names_of_their_classes(path):
    table = table_benchmark(labels=LABELS, **OPTIONS)
    items = list(table.read(path, "dev", "en"))
    assert [(item.example_id, item.labels) for item in items] == EXPECTED
    assert [item.segments[0].tokens for item in items] == [("Kim", "sang"), ("Nobody",)]
    names = [label.names for label in table.spec("dev", "en", path=path).labels]
    assert names == [("O", "B-PER", "I-PER"), ("sad", "glad"), ()]


def test_an_object_in_memory_tells_the_kinds_of_its_labels(data):
    spec, items = dataset_items(
        data,
        split="validation",
        lang="en",
        name="mine",
        labels=["tags", "mood", "score", LABELS[2]],
        **OPTIONS,
    )
    assert (spec.name, spec.split, spec.lang, spec.mode) == ("mine", "dev", "en", "pretokenized")
    assert spec.labels == (
        LabelSpec("tags", "tags", ("O", "B-PER", "I-PER")),
        LabelSpec("mood", "class", ("sad", "glad")),
        LabelSpec("score", "float"),
        LABELS[2],
    )
    found = list(items)
    assert all(isinstance(item, Example) for item in found)
    assert [item.labels["score"] for item in found] == [0.5, 1.0]


def test_an_object_without_class_labels_names_what_occurs():
    data = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [10, 2, 2]})
    spec, items = dataset_items(data, split="train", lang="en", labels=["label"])
    assert spec.labels == (LabelSpec("label", "class", ("2", "10")),)
    assert [item.labels["label"] for item in items] == ["10", "2", "2"]


@pytest.mark.parametrize("form", ["torch", "numpy"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_format_for_training_changes_nothing(data, form, stream):
    formatted = data.to_iterable_dataset() if stream else data
    _, items = dataset_items(
        formatted.with_format(form), split="dev", lang="en", labels=LABELS, **OPTIONS
    )
    assert [(item.example_id, item.labels) for item in items] == EXPECTED


def test_a_transform_is_applied():
    data = datasets.Dataset.from_dict({"raw": ["a", "b"]})
    made = data.with_transform(lambda rows: {"text": [text.upper() for text in rows["raw"]]})
    _, items = dataset_items(made, split="dev", lang="en")
    assert [item.segments[0].text for item in items] == ["A", "B"]


def test_several_splits_are_refused_with_their_names(data):
    splits = datasets.DatasetDict(train=data, test=data)
    with pytest.raises(SpecError, match=r"a DatasetDict of the splits train, test; .*'train'\]"):
        dataset_items(splits, split="dev", lang="en")


def test_a_class_number_is_a_position_even_among_names_that_are_numbers():
    features = datasets.Features(
        text=datasets.Value("string"),
        stars=datasets.ClassLabel(names=["1", "2", "3"]),
        flags=datasets.List(datasets.ClassLabel(names=["1", "0"])),
        sign=datasets.ClassLabel(names=["-1", "1"]),
    )
    rows = {
        "text": ["Poor show.", "Fine show."],
        "stars": [0, 1],
        "flags": [[0, 1], [1, 1]],
        "sign": [0, 1],
    }
    data = datasets.Dataset.from_dict(rows, features=features)
    _, items = dataset_items(data, split="dev", lang="en", labels=["stars", "flags", "sign"])
    assert [item.labels for item in items] == [
        {"stars": "1", "flags": ("1", "0"), "sign": "-1"},
        {"stars": "2", "flags": ("0", "0"), "sign": "1"},
    ]


def test_minus_one_is_a_missing_label_even_where_a_class_is_called_so():
    features = datasets.Features(
        text=datasets.Value("string"), sign=datasets.ClassLabel(names=["-1", "1"])
    )
    rows = {"text": ["One.", "Two."], "sign": [-1, 0]}
    data = datasets.Dataset.from_dict(rows, features=features)
    _, items = dataset_items(data, split="dev", lang="en", labels=["sign"])
    blind, good = items
    assert blind.reason == "no_label"
    assert good.labels == {"sign": "-1"}


def test_a_damaged_file_is_named_and_the_others_are_read(data, tmp_path):
    data.to_parquet(tmp_path / "dev-00001-of-00002.parquet")
    (tmp_path / "dev-00000-of-00002.parquet").write_bytes(b"PAR1 and nothing else")
    table = table_benchmark(labels=LABELS[1:2], **OPTIONS | {"columns": {"text": "words"}})
    first, *others = table.read(tmp_path, "dev", "en")
    assert (first.example_id, first.reason) == ("dev-00000-of-00002.parquet", "input")
    assert "cannot be read" in first.message
    assert [item.example_id for item in others] == ["7", "8"]


def test_a_damaged_split_does_not_stop_the_others(data, tmp_path):
    data.to_parquet(tmp_path / "train-00000-of-00001.parquet")
    (tmp_path / "dev-00000-of-00001.parquet").write_bytes(b"PAR1 and nothing else")
    table = table_benchmark(labels=LABELS, **OPTIONS)
    labels = table.spec("train", "en", path=tmp_path).labels
    assert [label.names for label in labels[:2]] == [("O", "B-PER", "I-PER"), ("sad", "glad")]
    with pytest.raises(InputError, match=r"dev-00000-of-00001\.parquet cannot be read"):
        table.spec("dev", "en", path=tmp_path / "dev-00000-of-00001.parquet")


def test_a_label_without_any_name_is_refused(data):
    for rows in (data, data.select([])):
        with pytest.raises(SpecError, match="no row has in the column 'answers' a label"):
            dataset_items(rows, split="dev", lang="en", labels=["answers"])


def test_a_missing_library_is_named(data, tmp_path, monkeypatch):
    data.to_parquet(tmp_path / "dev.parquet")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[hf\]'"):
        list(table_benchmark().read(tmp_path, "dev", "en"))
