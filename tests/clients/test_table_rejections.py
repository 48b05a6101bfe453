"""A row of a table that cannot be used costs no other row, here or at the service."""

from __future__ import annotations

import json

import pytest

from clients.benchmarks import table_benchmark
from clients.client.staging import Upload, backfill_spec
from service.jobs.lines import read_item, read_spec
from syntax.examples import LabelSpec

GOOD = {
    "text": "One cat.",
    "key": "k",
    "class": "a",
    "float": 0.5,
    "string": "s",
    "tags": ["O", "B-X"],
    "spans": [[0, 3, "n"]],
}
KINDS = ("class", "float", "string", "tags", "spans")


@pytest.fixture
def uploaded(tmp_path):
    """The fate of every row, by its id, once the service has read what a backfill sends."""

    def upload(rows, labels=(), **options):
        path = tmp_path / "train.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        table = table_benchmark(labels=labels, **options)
        spec = table.spec("train", "en", path=path)
        first, *lines = b"".join(
            Upload(backfill_spec(spec), table.read(path, "train", "en"))
        ).splitlines()
        read_spec(first, spec.name)
        items = [read_item(line, spec) for line in lines]
        return spec, {item.example_id: getattr(item, "reason", None) for item in items}

    return upload


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("class", "", "no_label"),
        ("class", "caf\udce9", "invalid_character"),
        ("float", float("nan"), "label"),
        ("float", float("-inf"), "label"),
        ("float", "nan", "label"),
        ("float", 1e50, "label"),
        ("float", 10**400, "label"),
        ("string", "\ud800", "invalid_character"),
        ("tags", ["O", ""], "label"),
        ("tags", ["O", "B-\ud800"], "invalid_character"),
        ("spans", [[0, 3, "\ud800"]], "invalid_character"),
    ],
)
def test_bad_label_rejects_only_its_row(uploaded, kind, value, reason):
    labels = [LabelSpec(kind, kind)]
    spec, fates = uploaded([GOOD, GOOD | {kind: value}, GOOD], labels)
    assert fates == {"train-1": None, "train-2": reason, "train-3": None}
    assert spec.labels[0].names == table_names(kind)


def table_names(kind):
    return {"class": ("a",), "tags": ("O", "B-X"), "spans": ("n",)}.get(kind, ())


def test_id_with_invalid_bytes_is_escaped(uploaded):
    keys = ["a", "caf\udce9", ["b"]]
    _, fates = uploaded([GOOD | {"key": key} for key in keys], id="key")
    assert fates == {"a": None, "caf\\udce9": "invalid_character", "train-3": "example"}


def test_message_with_invalid_bytes_is_escaped(uploaded):
    _, fates = uploaded([{"caf\udce9": "One cat."}, GOOD])
    assert fates == {"train-1": "example", "train-2": None}


@pytest.mark.parametrize("kind", [*KINDS, "text"])
def test_deeply_nested_value_rejects_only_its_row(tmp_path, kind):
    nested = "[" * 3000 + "]" * 3000
    other = json.dumps(GOOD | {kind: "?"}).replace('"?"', nested)
    (tmp_path / "dev.json").write_text(f"[{json.dumps(GOOD)}, {other}]", "utf-8")
    labels = [LabelSpec(kind, kind)] if kind in KINDS else []
    table = table_benchmark(labels=labels)
    assert table.spec("dev", "en", path=tmp_path / "dev.json")
    _, item = table.read(tmp_path / "dev.json", "dev", "en")
    assert item.reason == ("label" if labels else "example")
