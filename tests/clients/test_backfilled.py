"""Benchmarks through the service into the store, and out of it: every span is where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import service
from clients import Client
from clients.benchmarks import BENCHMARKS
from clients.client.jobs import Job
from featurestore import CrossedDataset, FeatureDataset, FeatureStore, open_store
from featurestore.maintenance.validate import validate_store
from syntax.batches import INSIDE, AssemblySpec, locate_spans, spans_of_text
from syntax.examples import Example

PARSER = "udpipe/both"

PARTS = [
    ("squad", "dev", "en"),
    ("mlqa", "dev", "en"),
    ("mlqa", "dev", "de"),
    ("race", "dev", "en"),
    ("ace", "train", "en"),
    ("ace", "dev", "en"),
    ("parallel", "dev", "en"),
    ("parallel", "dev", "de"),
    ("tydiqa", "dev", "en"),
    ("cola", "test", "en"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backfilled")


@pytest.fixture(scope="module")
def jobs(place: Path, benchmark_files: Path) -> dict[tuple[str, str, str], Job]:
    """All parts, with the trees of their files or parsed by the bundled model.

    German too: a model without a card serves every language.
    """
    models = place / "models"
    models.mkdir()
    (english,) = Path(service.__file__).parent.rglob("english-ewt.udpipe")
    (models / "both.udpipe").symlink_to(english)
    settings: dict[str, Any] = {"models_dir": models, "state_dir": place / "state"}
    settings |= {"workers": 1, "job_workers": 1}
    with Client.embedded(str(place / "store"), **settings) as client:
        return {part: client.wait(sent(client, benchmark_files, *part).id) for part in PARTS}


def sent(client: Client, files: Path, name: str, split: str, lang: str) -> Job:
    reader, path = BENCHMARKS[name], files / name
    parser = None if reader.mode() == "gold" else PARSER
    spec = reader.spec(split, lang, path=path)
    return client.backfill(spec, reader.read(path, split, lang), parser=parser)


@pytest.fixture(scope="module")
def store(place: Path, jobs: dict[tuple[str, str, str], Job]) -> Iterator[FeatureStore]:
    assert all(job.state == "done" for job in jobs.values())
    with open_store(place / "store") as store:
        yield store


def examples(files: Path, name: str, split: str, lang: str) -> dict[str, Example]:
    items = BENCHMARKS[name].read(files / name, split, lang)
    return {item.example_id: item for item in items if isinstance(item, Example)}


def spans_found(data: FeatureDataset | CrossedDataset, label: str, segment: int) -> dict:
    """Spans of each example, as the characters that their pieces cover."""
    found: dict[str, list[tuple[int, int]]] = {}
    for batch in data.stream(shuffle=False, max_length=512, assembly=AssemblySpec(offsets=True)):
        spans = locate_spans(batch, batch[label], segment=segment)
        assert set(spans.state.tolist()) <= {INSIDE}
        part = {
            name: np.asarray(batch[name])[spans.row] for name in ("offset_mapping", "segment_ids")
        }
        places = spans_of_text(part, spans.start, spans.end).tolist()
        for name in batch["example_id"]:
            found[name] = []
        for row, place in zip(spans.row.tolist(), places, strict=True):
            found[batch["example_id"][row]].append(tuple(place))
    return found


def spans_read(read: dict[str, Example], label: str) -> dict:
    return {name: [span[:2] for span in item.labels[label]] for name, item in read.items()}


@pytest.mark.slow
def test_every_item_is_stored_or_dropped_by_a_stated_reason(jobs, benchmark_files):
    for (name, split, lang), job in jobs.items():
        items = list(BENCHMARKS[name].read(benchmark_files / name, split, lang))
        assert job.counts.examples == job.counts.accounted == len(items)
        assert job.counts.stored == sum(isinstance(item, Example) for item in items)
    dropped = {part: dict(job.counts.dropped) for part, job in jobs.items() if job.counts.dropped}
    assert dropped == {
        ("race", "dev", "en"): {"example": 1},
        ("ace", "dev", "en"): {"cycle": 1, "no_root": 1, "label": 1},
        ("parallel", "dev", "en"): {"empty_text": 1},
    }


def test_texts_that_repeat_are_parsed_once(jobs):
    assert jobs["parallel", "dev", "de"].counts.parses_done == 4
    assert jobs["parallel", "dev", "de"].counts.parses_reused == 4


@pytest.mark.parametrize(("name", "lang"), [("squad", "en"), ("mlqa", "en"), ("mlqa", "de")])
def test_answers_survive_the_way_to_pieces_and_back(store, benchmark_files, name, lang):
    read = examples(benchmark_files, name, "dev", lang)
    data = store.dataset(name, split="dev", lang=lang)
    assert spans_found(data, "answers", 1) == spans_read(read, "answers")


@pytest.mark.parametrize("label", ["subject", "object"])
def test_mentions_survive_the_way_to_pieces_and_back(store, benchmark_files, label):
    read = examples(benchmark_files, "ace", "train", "en")
    data = store.dataset("ace", split="train", lang="en")
    assert spans_found(data, label, 0) == spans_read(read, label)


def test_labels_have_the_names_of_all_files(store, benchmark_files):
    data = store.dataset("ace", split="train", lang="en")
    assert data.labels == BENCHMARKS["ace"].labels_of(benchmark_files / "ace")
    (batch,) = data.stream(shuffle=False, assembly=AssemblySpec(token_ids=True, offsets=True))
    names = {label.name: label.names for label in data.labels}
    relations = [names["relation"][number] for number in batch["relation"]]
    assert relations == ["ORG-AFF:Membership", "no_relation", "PART-WHOLE:Geographical"]
    types = [names["object"][spans[0, 2]] for spans in batch["object"]]
    assert types == ["ORG", "GPE", "GPE"]
    assert [names["ner"][tag] for tag in batch["ner"][0]][:3] == ["PER", "PER", "O"]


def test_crossed_languages_are_the_mixed_file(store, benchmark_files):
    """MLQA: German questions on English passages, joined by their ids."""
    mixed = examples(benchmark_files, "mlqa", "dev_mixed", "context-en-question-de")
    english, german = (store.dataset("mlqa", split="dev", lang=lang) for lang in ("en", "de"))
    crossed = CrossedDataset(english, german, ["question"])
    assert spans_found(crossed, "answers", 1) == spans_read(mixed, "answers")
    for batch in crossed.stream(shuffle=False, max_length=512, assembly=AssemblySpec(offsets=True)):
        for row, name in enumerate(batch["example_id"]):
            ends = batch["offset_mapping"][row, batch["segment_ids"][row] == 0, 1]
            assert ends.max() == len(mixed[name].segments[0].text)


def test_translations_are_joined_by_line(store):
    english, german = (store.dataset("parallel", split="dev", lang=lang) for lang in ("en", "de"))
    pairs = CrossedDataset(german, english, ["target"])
    assert pairs.unmatched == ("dev-3",)
    (batch,) = pairs.stream(shuffle=False, max_length=64)
    assert sorted(batch["example_id"]) == ["dev-1", "dev-2", "dev-4"]


@pytest.mark.slow
def test_blind_files_are_stored_without_labels(store, benchmark_files):
    for part, label in ((("tydiqa", "dev", "en"), "answers"), (("cola", "test", "en"), "label")):
        name, split, lang = part
        data = store.dataset(name, split=split, lang=lang)
        assert data.columns([label])[label].to_pylist() == [None] * len(data)
        assert len(data) == len(examples(benchmark_files, *part)) > 0
        assert len(data.where(labelled=[label])) == 0
        (batch,) = data.stream(shuffle=False)
        assert list(batch[label]) == [-1] if label == "label" else not len(batch[label][0])
    assert not validate_store(store, deep=True).problems
