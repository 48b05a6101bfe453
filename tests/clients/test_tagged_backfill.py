"""Tags and names that only files know, from the reader to a trainer's batch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clients.benchmarks import ATIS, CONLL, WIKIANN
from featurestore import open_store
from syntax.errors import SpecError

TOKENIZER = "parsebank-wordpiece-en"


def backfilled(client, reader, folder: Path, split: str, mode: str | None = None):
    name = f"{reader.name}-{mode or reader.modes[0]}"
    spec = reader.spec(split, "en", path=folder, mode=mode, name=name)
    items = reader.read(folder, split, "en", mode)
    return client.wait(client.backfill(spec, items, tokenizer=TOKENIZER).id)


def stored(store: Path, name: str, split: str, column: str) -> dict[str, object]:
    """A label column's names by example."""
    data = open_store(store).dataset(name, tokenizer=TOKENIZER, split=split, lang="en")
    (label,) = (label for label in data.labels if label.name == column)
    found: dict[str, object] = {}
    for batch in data.stream(batch_size=4, seed=0, epoch=0, max_length=64):
        for example_id, value in zip(batch["example_id"], batch[column], strict=True):
            ids = value if label.kind == "tags" else [value]
            found[str(example_id)] = tuple(label.names[number] for number in ids)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mode", CONLL.modes)
@pytest.mark.parametrize(("reader", "split"), [(CONLL, "test"), (WIKIANN, "dev")])
def test_tags_come_back_from_the_store(client, store, benchmark_files, reader, split, mode):
    folder = benchmark_files / reader.name
    job = backfilled(client, reader, folder, split, mode)
    assert (job.state, job.counts.dropped) == ("done", {})
    examples = {x.example_id: x.labels["ner_tags"] for x in reader.read(folder, split, "en")}
    assert stored(store, f"{reader.name}-{mode}", split, "ner_tags") == examples


@pytest.mark.slow
def test_splits_share_the_names_of_their_folder(client, store, benchmark_files):
    folder = benchmark_files / "atis"
    train, dev = (backfilled(client, ATIS, folder, split) for split in ("train", "valid"))
    assert (train.state, dev.state) == ("done", "done")
    assert dev.counts.dropped == {"label": 1, "no_label": 1}
    name = "atis-pretokenized"
    assert stored(store, name, "dev", "intent") == {"dev-1": ("flight#time",)}
    assert stored(store, name, "train", "intent") == {"train-1": ("flight",), "train-2": ("meal",)}
    assert stored(store, name, "train", "slots")["train-2"] == ("O", "B-meal", "O", "O")


@pytest.mark.slow
def test_other_names_in_the_same_dataset_are_refused(client, benchmark_files, tmp_path):
    shutil.copytree(benchmark_files / "atis", tmp_path / "atis")
    backfilled(client, ATIS, benchmark_files / "atis", "train")
    (tmp_path / "atis/train/label").write_text("flight\nhotel\n", "utf-8")
    with pytest.raises(SpecError) as caught:
        backfilled(client, ATIS, tmp_path / "atis", "train")
    assert caught.value.message == (
        "dataset 'atis-pretokenized' has other labels than the rows that came: "
        "intent: 'hotel' came new, 'meal' did not come; read all its parts from one folder, "
        "so that they share their names, or choose another dataset name"
    )
