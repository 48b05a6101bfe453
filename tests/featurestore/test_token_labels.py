"""Tags and spans in the store: written, streamed, chosen, crossed, exported, validated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from datasets import load_dataset

from featurestore import DatasetHandle, ExampleRow, FeatureStore
from featurestore.dataset.crossed import CrossedDataset
from featurestore.maintenance.validate import validate_store
from featurestore.reports.export import export_dataset
from featurestore.tables.encode.examples import encode_examples
from syntax.batches import INSIDE, AssemblySpec, label_tokens, labels_of_tokens, locate_spans
from syntax.errors import LabelError, SpecError
from syntax.examples import LabelSpec, SpanLabel
from syntax.fingerprint import fingerprint

from .streams import keywords

NAMES = ("O", "B-X", "I-X")
LABELS = (
    LabelSpec("tags", "tags", NAMES, "hypothesis"),
    LabelSpec("answers", "spans"),
    LabelSpec("mentions", "spans", ("city", "river"), "hypothesis"),
    LabelSpec("label", "class", ("yes", "no")),
)


def every_other_token(parse) -> np.ndarray:
    """Tokens of a dataset, some of them two of the parser's, and so with a space inside."""
    starts, ends = parse.token_start[::2], [*parse.token_end[1::2], parse.token_end[-1]]
    return np.array([starts, ends[: len(starts)]], np.int32).T


@pytest.fixture
def handle(make_handle) -> DatasetHandle:
    handle = make_handle(name="marked")
    return replace(handle, spec=replace(handle.spec, labels=LABELS))


@pytest.fixture
def rows(make_row, records) -> list[ExampleRow]:
    """Forty pairs of running text and tokens, each third without labels."""
    made = []
    for seq, record in enumerate(records):
        tokens = every_other_token(record.parse)
        length = len(record.parse.text)
        labels = {
            "tags": tuple(NAMES[(seq + at) % 3] for at in range(len(tokens))),
            "answers": (SpanLabel(1, 4), SpanLabel(0, 0))[: seq % 3],
            "mentions": (SpanLabel(length - 3, length, ("city", "river")[seq % 2]),),
            "label": ("yes", "no")[seq % 2],
        }
        row = make_row(seq, (record, record), labels if seq % 3 else {"label": "no"})
        made.append(replace(row, tokens=(np.empty((0, 2), np.int32), tokens)))
    return made


@pytest.fixture
def marked(store, handle, rows, records) -> FeatureStore:
    store.parses.append(records)
    store.features.append(handle, rows[20:])
    store.features.append(handle, rows[:20])
    return store


def test_streams_give_the_labels_and_tokens_that_were_written(marked, rows) -> None:
    data = marked.dataset("marked")
    by_id = {row.example_id: row for row in rows}
    seen = 0
    for batch in data.stream(
        batch_size=7, seed=3, max_length=None, assembly=AssemblySpec(token_ids=True, offsets=True)
    ):
        for at, name in enumerate(batch["example_id"]):
            row, seen = by_id[name], seen + 1
            tags = [NAMES.index(tag) for tag in row.labels.get("tags", ())]
            assert batch["tags"][at].tolist() == tags
            assert batch["tags"][at].dtype == batch["answers"][at].dtype == np.int64
            answers = [[*span[:2], -1] for span in row.labels.get("answers", ())]
            assert batch["answers"][at].tolist() == answers
            assert batch["answers"][at].shape == (len(answers), 3)
            mentions = row.labels.get("mentions", ())
            expected = [[s.start_char, s.end_char, s.label == "river"] for s in mentions]
            assert batch["mentions"][at].tolist() == expected
            assert batch["token_counts"][at].tolist() == [0, len(row.tokens[1])]
            for position, token in enumerate(batch["token_ids"][at].tolist()):
                check_token(batch, at, position, token, row)
    assert seen == 40


def check_token(batch, at: int, position: int, token: int, row: ExampleRow) -> None:
    start, end = batch["offset_mapping"][at, position].tolist()
    shares = [t for t, (a, z) in enumerate(row.tokens[1].tolist()) if a < end and start < z]
    here = batch["segment_ids"][at, position] == 1
    assert token == (shares[0] if here and shares else -1)


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": 40},
        {"max_length": 24, "truncation": "only_second", "stride": 5, "segment_limits": (4, None)},
        {"truncation": "only_second", "level": "sentence"},
    ],
)
def test_labels_lie_on_pieces_and_come_back_to_the_tokens(marked, rows, options) -> None:
    by_id = {row.example_id: row for row in rows}
    found = 0
    for batch in marked.dataset("marked").stream(
        batch_size=8, **keywords(token_ids=True, **options)
    ):
        laid = label_tokens(batch, batch["tags"], segment=1)
        counts = batch["token_counts"][:, 1]
        names = list(dict.fromkeys(batch["example_id"]))
        back = labels_of_tokens(batch, laid, counts, segment=1)
        for name, values in zip(names, back, strict=True):
            tags = by_id[name].labels.get("tags")
            if tags is None:
                assert (values < 0).all()
            elif "max_length" not in options or "stride" in options:
                assert [NAMES[value] for value in values] == list(tags)
                found += 1
            else:
                assert all(x in (-1, NAMES.index(y)) for x, y in zip(values, tags, strict=True))
                found += int((values >= 0).any())
    assert found == 26


def test_spans_lie_on_pieces(marked, rows) -> None:
    lengths = {row.example_id: len(row.texts[1]) for row in rows}
    batch = next(
        marked.dataset("marked").stream(40, max_length=None, assembly=AssemblySpec(offsets=True))
    )
    found = locate_spans(batch, batch["mentions"], segment=1)
    assert len(found.row) == 26
    assert (found.state == INSIDE).all()
    for row, start, end in zip(found.row, found.start, found.end, strict=True):
        length = lengths[batch["example_id"][row]]
        assert batch["offset_mapping"][row, end - 1, 1] == length
        assert batch["offset_mapping"][row, start, 0] <= length - 3
        assert batch["offset_mapping"][row, start, 1] > length - 3


def test_tables_of_earlier_releases_have_no_tokens(store, handle, rows) -> None:
    older = [replace(row, tokens=(), labels={"label": "no"}) for row in rows]
    store.features.append(handle, older)
    values = store.sql("select token_counts, tags from examples").fetchall()
    assert values == [(None, None)] * 40
    batch = next(store.dataset("marked").stream(40, assembly=AssemblySpec(token_ids=True)))
    assert (batch["token_ids"] == -1).all()
    assert (batch["token_counts"] == 0).all()
    assert [len(tags) for tags in batch["tags"]] == [0] * 40
    assert (label_tokens(batch, batch["tags"], segment=1) == -100).all()
    assert validate_store(store).problem_count == 0


def test_examples_are_chosen_by_the_names_among_their_tags_and_spans(marked, rows) -> None:
    data = marked.dataset("marked")

    def chosen(**labels) -> list[str]:
        kept = data.where(labels=labels)
        return sorted(kept.columns(["example_id"])["example_id"].to_pylist()) if len(kept) else []

    def having(name: str, wanted) -> list[str]:
        return sorted(row.example_id for row in rows if wanted(row.labels.get(name)))

    rivers = having("mentions", lambda spans: spans and spans[0].label == "river")
    assert chosen(mentions=["river"]) == rivers
    assert chosen(mentions=["river", "city"]) == having("mentions", bool)
    assert chosen(tags=["I-X"]) == having("tags", lambda tags: tags and "I-X" in tags)
    assert chosen(answers=[None]) == having("answers", lambda spans: not spans)
    assert chosen(answers=[""]) == having("answers", bool)
    assert chosen(mentions=["river"], label=["yes"]) == []
    with pytest.raises(LookupError, match="class of label mentions"):
        chosen(mentions=["lake"])


def test_crossed_pairs_have_the_tags_of_the_field_they_take(
    store, handle, rows, records, make_row
) -> None:
    german = replace(handle, spec=replace(handle.spec, lang="de"))
    others = []
    for row in rows:
        record = records[(row.seq + 1) % 40]
        tokens = every_other_token(record.parse)
        labels = {**row.labels, "tags": ("B-X",) * len(tokens), "mentions": (), "answers": ()}
        made = make_row(row.seq, (record, record), labels)
        others.append(replace(made, tokens=(np.empty((0, 2), np.int32), tokens)))
    store.features.append(handle, rows)
    store.features.append(german, others)
    english, translated = (store.dataset("marked", lang=lang) for lang in ("en", "de"))
    crossed = CrossedDataset(english, translated, ["hypothesis"])
    batch = next(
        crossed.stream(40, shuffle=False, max_length=None, assembly=AssemblySpec(token_ids=True))
    )
    for at, (row, other) in enumerate(zip(rows, others, strict=True)):
        assert batch["tags"][at].tolist() == [1] * len(other.tokens[1])
        assert batch["mentions"][at].tolist() == []
        assert len(batch["answers"][at]) == len(row.labels.get("answers", ()))
        assert batch["token_counts"][at].tolist() == [0, len(other.tokens[1])]
        assert batch["token_ids"][at].max() == len(other.tokens[1]) - 1


def test_sql_shows_labels_and_tokens(marked, rows, store, make_handle, make_row, records) -> None:
    handle = make_handle(name="plain")
    plain = replace(handle, spec=replace(handle.spec, labels=(LabelSpec("tags", "string"),)))
    store.features.append(plain, [make_row(0, (records[0], records[1]), {"tags": "a, b"})])
    (tags, answers), *_ = marked.sql(
        "select tags, answers from examples where dataset = 'marked' and example_id = 'ex-2'"
    ).fetchall()
    # Two datasets have labels of one name and different kinds: they are text.
    assert tags == f"[{', '.join(rows[2].labels['tags'])}]"
    assert answers == [
        {"start_char": 1, "end_char": 4, "label": ""},
        {"start_char": 0, "end_char": 0, "label": ""},
    ]
    (other,) = marked.sql("select tags from examples where dataset = 'plain'").fetchall()
    assert other == ("a, b",)
    tokens = marked.sql(
        "select tokens from segments where dataset = 'marked' and example_id = 'ex-2' "
        "order by segment"
    ).fetchall()
    text = rows[2].texts[1]
    assert tokens == [([],), ([text[a:z] for a, z in rows[2].tokens[1].tolist()],)]
    assert any(" " in token for token in tokens[1][0])
    assert (
        marked.sql("select tokens from segments where dataset = 'plain'").fetchall()
        == [(None,)] * 2
    )


def test_an_export_is_read_back_with_its_labels(marked, rows, tmp_path: Path) -> None:
    export_dataset(marked.dataset("marked"), tmp_path / "out")
    read = load_dataset(
        str(tmp_path / "out"), "en", split="train", cache_dir=str(tmp_path / "cache")
    )
    row, example = rows[2], read[2]
    assert example["tags"] == list(row.labels["tags"])
    assert example["answers"] == [span._asdict() for span in row.labels["answers"]]
    assert example["token_counts"] == [0, len(row.tokens[1])]
    assert example["token_offsets"] == row.tokens[1].tolist()
    assert read[0]["tags"] is None
    card = (tmp_path / "out" / "README.md").read_text()
    assert "* `tags`: label (tags of hypothesis): O, B-X, I-X" in card
    assert "* `answers`: label (spans of premise)" in card
    assert "* `token_offsets`: characters of each of these tokens" in card


def damaged(store, handle, row, **columns) -> list[str]:
    """What a deep validation says of a row whose columns were overwritten."""
    card, table = store.features.find("marked")
    data = encode_examples(card, "train", "en", [row], matrices=False)
    for name, value in columns.items():
        place, field = data.schema.get_field_index(name), data.schema.field(name)
        data = data.set_column(place, field, pa.array([value], field.type))
    table.append(data)
    report = validate_store(store, deep=True)
    return [problem.message for problem in report.problems if problem.row == row.example_id]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("tags", ["O"], "label tags has 1 tags for the"),
        ("mentions", [{"start_char": 5, "end_char": 3, "label": "city"}], "character 5 to 3"),
        ("answers", [{"start_char": 0, "end_char": 9999, "label": ""}], "character 0 to 9999"),
        ("token_counts", [1, 1], "token_offsets holds"),
        ("token_counts", [1], "token_counts holds 1 segments"),
    ],
)
def test_a_deep_validation_finds_labels_that_do_not_fit(
    marked, handle, rows, column, value, message
) -> None:
    marked.describe(rows[0].parser, "parser", {"name": "gold"})
    marked.describe(handle.tokenizer_fingerprint, "tokenizer", {"name": "toy"})
    assert validate_store(marked, deep=True).problem_count == 0
    row = replace(rows[4], example_id="bad", example_key=fingerprint("bad"))
    assert any(message in found for found in damaged(marked, handle, row, **{column: value}))


def test_a_deep_validation_finds_tokens_outside_their_text(marked, handle, rows) -> None:
    row = replace(rows[4], example_id="bad", example_key=fingerprint("bad"))
    offsets = row.tokens[1].copy()
    offsets[-1, 1] += 1000
    found = damaged(marked, handle, row, token_offsets=offsets.tobytes())
    assert any("tokens are not in order within the" in message for message in found)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"tags": ("O",)}, "example 'ex-1': label tags has 1 tags for the"),
        ({"answers": (SpanLabel(0, 10_000),)}, "has a span from character 0 to 10000; the text of"),
        ({"answers": (SpanLabel(3, 2),)}, "from character 3 to 2"),
        ({"answers": (SpanLabel(-1, 2),)}, "from character -1 to 2"),
        ({"mentions": (SpanLabel(0, 1, "lake"),)}, "'lake'; expected one of city, river"),
        ({"mentions": ((0, 1, "city"),)}, "expected a SpanLabel"),
        ({"tags": "O"}, "expected a tuple"),
    ],
)
def test_labels_that_do_not_fit_are_not_written(store, handle, rows, labels, message) -> None:
    with pytest.raises(LabelError, match=message):
        store.features.append(handle, [replace(rows[1], labels=labels)])
    with pytest.raises(LabelError, match="hypothesis came without tokens"):
        store.features.append(handle, [replace(rows[1], tokens=())])


def test_a_label_of_an_unknown_field_is_refused(store, handle, rows) -> None:
    labels = (LabelSpec("answers", "spans", (), "passage"),)
    wrong = replace(handle, spec=replace(handle.spec, labels=labels))
    with pytest.raises(SpecError, match="about the field 'passage'"):
        store.features.append(wrong, rows[:1])
