"""Labels of tokens and spans: from the client through a job to the store, a batch, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clients import Client
from featurestore import FeatureStore, open_store
from service.jobs.lines import item_key
from syntax.batches import (
    INSIDE,
    AssemblySpec,
    label_tokens,
    labels_of_tokens,
    locate_spans,
    spans_of_text,
)
from syntax.errors import SpecError
from syntax.examples import DatasetSpec, Example, LabelSpec, Rejection, Segment, SpanLabel
from syntax.fingerprint import Fingerprint

NAMES = ("O", "B-LOC", "I-LOC", "B-NEG", "I-NEG")
TAGS = LabelSpec("ner_tags", "tags", NAMES, "text")
MENTIONS = LabelSpec("mentions", "spans", ("LOC", "NEG"))
ENTITIES = DatasetSpec("ner", "dev", "en", ("text",), (TAGS, MENTIONS), mode="retokenize")
QUESTIONS = DatasetSpec(
    "qa",
    "dev",
    "en",
    ("question", "passage"),
    (LabelSpec("answers", "spans", field="passage"), LabelSpec("number", "float")),
)
ANSWERS = ("Rome", "e\u0301lodie", "Rome in 1999")
PASSAGE = "🦊 Our nurse, e\u0301lodie, moved to Rome in 1999. She won't come back."


def sentence(example_id: str, tokens: str, tags: str, *spans: tuple[int, int, str]) -> Example:
    """Tokens divided by bars."""
    labels = {"ner_tags": tuple(tags.split()), "mentions": tuple(SpanLabel(*x) for x in spans)}
    return Example(example_id, (Segment(tokens=tuple(tokens.split("|"))),), labels)


def question(example_id: str, *answers: SpanLabel) -> Example:
    segments = (Segment(text="Where to?"), Segment(text=PASSAGE))
    return Example(example_id, segments, {"answers": answers, "number": 1})


GOOD = [
    sentence("a", "I|can't|leave|New York|now|!", "O B-NEG O B-LOC O O", (2, 7, "NEG")),
    sentence(
        "b", "New York|is|in|New|York", "B-LOC O O B-LOC I-LOC", (0, 8, "LOC"), (15, 23, "LOC")
    ),
    sentence("c", "Nothing|here", "O O"),
]
BAD = [
    sentence("few", "It|rains", "O"),
    sentence("unknown", "It|rains", "O B-PER"),
    sentence("outside", "It|rains", "O O", (3, 9, "LOC")),
    sentence("reversed", "It|rains", "O O", (5, 3, "LOC")),
    sentence("unnamed", "It|rains", "O O", (0, 2, "PER")),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("labels")


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[Client]:
    settings: dict[str, Any] = {"state_dir": place / "state", "workers": 1, "job_workers": 1}
    with Client.embedded(str(place / "store"), **settings) as client:
        yield client


@pytest.fixture(scope="module")
def store(client: Client, place: Path) -> Iterator[FeatureStore]:
    """What two jobs made: tokens with tags and spans, and answers in passages."""
    job = client.wait(client.backfill(ENTITIES, [*GOOD, *BAD, Rejection("r", "label", "?")]).id)
    assert (job.state, job.counts.stored) == ("done", 3)
    assert job.counts.dropped == {"label": 6}
    spans = [(PASSAGE.index(text), PASSAGE.index(text) + len(text)) for text in ANSWERS]
    answers = [SpanLabel(*span, label) for span, label in zip(spans, ("", "who", ""), strict=True)]
    made = [question("q1", *answers), question("q2"), question("q3", SpanLabel(0, 999))]
    job = client.wait(client.backfill(QUESTIONS, made).id)
    assert (job.counts.stored, job.counts.dropped) == (2, {"label": 1})
    with open_store(place / "store") as store:
        yield store


def test_the_tokens_of_the_dataset_are_kept(store: FeatureStore) -> None:
    rows = store.sql(
        "select example_id, tokens from segments where dataset = 'ner' order by all"
    ).fetchall()
    assert dict(rows) == {item.example_id: list(item.segments[0].tokens or ()) for item in GOOD}
    words = store.sql("select form from words where mode = 'retokenize' and form like '%n''t'")
    assert words.fetchall() == [("n't",)]


def test_entities_come_to_pieces_and_back_to_the_tokens(store: FeatureStore) -> None:
    data = store.dataset("ner")
    assert data.labels == (TAGS, MENTIONS)
    stream = data.stream(
        shuffle=False, assembly=AssemblySpec(token_ids=True, offsets=True, first_pieces=True)
    )
    (batch,) = stream
    assert batch["example_id"] == ["a", "b", "c"]
    expected = [[NAMES.index(tag) for tag in item.labels["ner_tags"]] for item in GOOD]  # type: ignore[union-attr, arg-type]
    assert [tags.tolist() for tags in batch["ner_tags"]] == expected
    for pieces in ("first", "words"):
        laid = label_tokens(batch, batch["ner_tags"], pieces=pieces, names=NAMES)  # type: ignore[arg-type]
        back = labels_of_tokens(batch, laid, batch["token_counts"][:, 0], pieces=pieces)  # type: ignore[arg-type]
        assert [tags.tolist() for tags in back] == expected
    # The parser reads "can't" as two words, and "New York" too: the mentions go on.
    words = [laid[row][batch["first_pieces"][row]].tolist() for row in range(3)]
    named = [" ".join(NAMES[tag] for tag in tags) for tags in words]
    assert named == ["O B-NEG I-NEG O B-LOC I-LOC O O", "B-LOC I-LOC O O B-LOC I-LOC", "O O"]
    found = locate_spans(batch, batch["mentions"])
    assert found.row.tolist() == [0, 1, 1]
    assert found.label.tolist() == [1, 0, 0]
    at = batch["offset_mapping"]
    spans = [
        (at[r, s, 0], at[r, e - 1, 1]) for r, s, e in zip(*found[:1], *found[3:5], strict=True)
    ]
    assert spans == [(2, 7), (0, 8), (15, 23)]


def test_answers_come_to_pieces_and_back_to_the_text(store: FeatureStore) -> None:
    stream = store.dataset("qa").stream(
        shuffle=False,
        assembly=AssemblySpec(max_length=20, offsets=True, truncation="only_second", stride=4),
    )
    (batch,) = stream
    found = locate_spans(batch, batch["answers"], segment=1)
    assert set(found.number[found.state == INSIDE].tolist()) == {0, 1, 2}
    rows = found.row[found.state == INSIDE]
    part = {name: np.asarray(batch[name])[rows] for name in ("offset_mapping", "segment_ids")}
    start, end = (x[found.state == INSIDE] for x in (found.start, found.end))
    texts = [PASSAGE[a:z] for a, z in spans_of_text(part, start, end).tolist()]
    assert texts == [ANSWERS[number] for number in found.number[found.state == INSIDE]]
    assert {
        name
        for name, spans in zip(batch["example_id"], batch["answers"], strict=True)
        if not len(spans)
    } == {"q2"}


def test_what_does_not_fit_is_dropped_and_named(store: FeatureStore) -> None:
    query = "select example_id, reason, message from drops where dataset = 'ner'"
    messages = {name: message for name, reason, message in store.sql(query).fetchall()}
    del messages["r"]
    assert messages == {
        "few": "label ner_tags has 1 tags for the 2 tokens of text; give one each",
        "unknown": f"label ner_tags has 'B-PER'; expected one of {', '.join(NAMES)}",
        "outside": "label mentions has a span from character 3 to 9; the text of text has 8 "
        "characters, and a span does not end before it starts",
        "reversed": "label mentions has a span from character 5 to 3; the text of text has 8 "
        "characters, and a span does not end before it starts",
        "unnamed": "label mentions has 'PER'; expected one of LOC, NEG",
    }
    (message,) = store.sql("select message from drops where dataset = 'qa'").fetchall()[0]
    length = len(PASSAGE)
    assert f"character 0 to 999; the text of passage has {length} characters" in message


def test_the_same_labels_are_the_same_example(client: Client, store: FeatureStore) -> None:
    job = client.wait(client.backfill(ENTITIES, GOOD).id)
    assert (job.counts.stored, job.counts.already_stored) == (0, 3)
    keys: set[Fingerprint] = set()
    different: list[tuple[Any, ...]] = [("O O",), ("O B-LOC",), ("O O", (0, 2, "LOC"))]
    for labels in [*different, ("O O", (0, 1, "LOC"))]:
        keys.add(item_key(sentence("x", "It|rains", *labels)))
    assert len(keys) == 4


def test_gold_trees_bring_their_tokens(client: Client, store: FeatureStore) -> None:
    columns = [
        ("1-2", "don't", "_", "_", "_", "_"),
        ("1", "do", "do", "AUX", "3", "aux"),
        ("2", "n't", "not", "PART", "3", "advmod"),
        ("3", "go", "go", "VERB", "0", "root"),
    ]
    lines = ["\t".join((*c[:4], "_", "_", *c[4:], "_", "_")) for c in columns]
    segment = Segment(conllu="\n".join([*lines, ""]))
    spec = DatasetSpec("gold", "dev", "en", ("text",), (TAGS, MENTIONS), mode="gold")
    mentions = (SpanLabel(0, 5, "NEG"),)
    made = [
        Example("good", (segment,), {"ner_tags": ("B-NEG", "O"), "mentions": mentions}),
        Example("bad", (segment,), {"ner_tags": ("B-NEG", "I-NEG", "O"), "mentions": ()}),
    ]
    job = client.wait(client.backfill(spec, made).id)
    assert (job.counts.stored, job.counts.dropped) == (1, {"label": 1})
    (row,) = store.sql("select tokens from segments where dataset = 'gold'").fetchall()
    assert row == (["don't", "go"],)


@pytest.mark.parametrize(
    ("label", "mode", "message"),
    [
        (LabelSpec("x", "tags", ("O",)), "raw", "mode 'raw' reads running text; send tokens"),
        (LabelSpec("x", "tags"), "pretokenized", "class and tags need their closed list"),
        (LabelSpec("x", "spans", ("a", "a")), "raw", "without repeats"),
        (LabelSpec("x", "float", ("a",)), "raw", "the other kinds take none"),
        (LabelSpec("x", "spans", (), "body"), "raw", "the field 'body'; tags and spans may have"),
        (LabelSpec("x", "string", (), "text"), "raw", "the other kinds take none"),
    ],
)
def test_a_label_column_that_contradicts_itself_is_refused(
    client: Client, label: LabelSpec, mode: Any, message: str
) -> None:
    spec = DatasetSpec("wrong", "dev", "en", ("text",), (label,), mode=mode)
    with pytest.raises(SpecError, match=message):
        client.backfill(spec, [Example("1", (Segment(text="a"),), {})])


@pytest.mark.slow
def test_french_multiword_tokens_keep_their_labels(data_dir: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "state_dir": tmp_path / "state",
        "workers": 1,
        "job_workers": 1,
        "models_dir": data_dir / "models",
    }
    names = ("O", "B-LOC", "I-LOC")
    spec = DatasetSpec(
        "ner", "dev", "fr", ("text",), (LabelSpec("tags", "tags", names),), mode="retokenize"
    )
    tokens = ("Le", "port", "du", "Havre", "est", "loin", "de New York", ".")
    tags = ("O", "O", "B-LOC", "I-LOC", "O", "O", "B-LOC", "O")
    with Client.embedded(str(tmp_path / "store"), **settings) as client:
        tokenizer = str(data_dir / "tokenizers" / "bert-base-multilingual-cased")
        example = Example("1", (Segment(tokens=tokens),), {"tags": tags})
        names_of = [model["name"] for model in client.models()]
        parser = next(name for name in names_of if name.startswith("udpipe/french"))
        job = client.backfill(spec, [example], tokenizer=tokenizer, parser=parser)
        assert client.wait(job.id).counts.stored == 1
    with open_store(tmp_path / "store") as store:
        forms = [form for (form,) in store.sql("select form from words order by id").fetchall()]
        assert forms[2:5] == ["de", "le", "Havre"]
        (batch,) = store.dataset("ner").stream(
            assembly=AssemblySpec(token_ids=True, first_pieces=True)
        )
        for pieces in ("first", "words"):
            laid = label_tokens(batch, batch["tags"], pieces=pieces, names=names)  # type: ignore[arg-type]
            (back,) = labels_of_tokens(batch, laid, batch["token_counts"][:, 0], pieces=pieces)  # type: ignore[arg-type]
            assert [names[tag] for tag in back] == list(tags)
        words = [names[tag] for tag in laid[0][batch["first_pieces"][0]]]
        assert words[-4:] == ["B-LOC", "I-LOC", "I-LOC", "O"]
