"""A small corpus of real parses, a toy tokenizer, and stores filled with both."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from featurestore import (
    DatasetHandle,
    Drop,
    ExampleRow,
    FeatureDataset,
    FeatureStore,
    ParseRecord,
    StatedDataset,
    WordStates,
    open_store,
)
from featurestore.commands import register
from syntax import Parse, fingerprint, read_conllu
from syntax.alignment import segment_features
from syntax.batches import SegmentFeatures, SpecialTokens
from syntax.examples import DatasetSpec, LabelSpec
from syntax.trees.conllu import parse_from_sentences

from .s3 import S3, S3_PROGRAM
from .writers import Writers

TREEBANK = Path(__file__).parents[1] / "fixtures" / "treebank-tiny"
PARSER = fingerprint({"name": "gold"})
TOKENIZER = fingerprint({"name": "toy"})
LABELS = (
    LabelSpec("label", "class", ("entailment", "neutral", "contradiction")),
    LabelSpec("score", "float"),
    LabelSpec("note", "string"),
)


@pytest.fixture(scope="session")
def special_tokens() -> SpecialTokens:
    return SpecialTokens(prefix=(2,), separator=(3,), suffix=(3,), pad_id=0, vocab_size=5000)


def all_parses() -> list[Parse]:
    """Thirty one-sentence parses, then ten of three sentences each."""
    sentences = [s for path in sorted(TREEBANK.glob("*.conllu")) for s in read_conllu(path)]
    groups = [[sentence] for sentence in sentences]
    groups += [sentences[start : start + 3] for start in range(0, len(sentences), 3)]
    return [parse_from_sentences(group) for group in groups]


@pytest.fixture(scope="session")
def parses() -> list[Parse]:
    return all_parses()


def record_of(parse: Parse, number: int = 0, parser: str = PARSER) -> ParseRecord:
    return ParseRecord(
        key=fingerprint([parser, number, parse.text]),
        lang="en",
        parser=parser,
        mode="gold",
        parse=parse,
    )


@pytest.fixture(scope="session")
def records(parses: list[Parse]) -> list[ParseRecord]:
    return [record_of(parse, number) for number, parse in enumerate(parses)]


def segment_of(parse: Parse, piece_length: int = 4) -> SegmentFeatures:
    """Pieces of at most ``piece_length`` characters of each token."""
    offsets = [
        (at, min(at + piece_length, end))
        for start, end in zip(parse.token_start, parse.token_end, strict=True)
        for at in range(start, end, piece_length)
    ]
    ids = [5 + zlib.crc32(parse.text[a:z].encode()) % 4000 for a, z in offsets]
    return segment_features(parse, np.asarray(ids, np.int32), np.asarray(offsets, np.int32))


def row_of(
    seq: int, records: Sequence[ParseRecord], labels: dict | None = None, parser: str = PARSER
) -> ExampleRow:
    return ExampleRow(
        seq=seq,
        example_id=f"ex-{seq}",
        example_key=fingerprint([parser, seq, *(record.key for record in records)]),
        parser=parser,
        texts=tuple(record.parse.text for record in records),
        parse_keys=tuple(record.key for record in records),
        segments=tuple(segment_of(record.parse) for record in records),
        labels={} if labels is None else labels,
    )


def pairs_of(records: Sequence[ParseRecord]) -> list[ExampleRow]:
    """A hundred pairs with labels."""
    names = LABELS[0].names
    return [
        row_of(
            seq,
            (records[seq % 40], records[(7 * seq + 3) % 40]),
            {"label": names[seq % 3], "score": seq / 8, "note": f"note {seq}"},
        )
        for seq in range(100)
    ]


def small_corpus() -> tuple[list[ParseRecord], list[ExampleRow]]:
    """Parses, and a hundred pairs of them with labels."""
    records = [record_of(parse, number) for number, parse in enumerate(all_parses())]
    return records, pairs_of(records)


@pytest.fixture(scope="session")
def rows(records: list[ParseRecord]) -> list[ExampleRow]:
    return pairs_of(records)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeatureStore]:
    with open_store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def handle(make_handle: Callable[..., DatasetHandle]) -> DatasetHandle:
    return make_handle()


def handle_of(special_tokens: SpecialTokens, **changes: str) -> DatasetHandle:
    spec = DatasetSpec(
        name=changes.get("name", "pairs"),
        split=changes.get("split", "train"),
        lang=changes.get("lang", "en"),
        fields=("premise", "hypothesis"),
        labels=LABELS,
        source="written for the tests",
        licence="Apache-2.0",
    )
    return DatasetHandle(
        spec=spec,
        tokenizer=changes.get("tokenizer", "toy"),
        tokenizer_fingerprint=changes.get("fingerprint", TOKENIZER),
        special_tokens=special_tokens,
    )


@pytest.fixture(scope="session")
def make_record() -> Callable[..., ParseRecord]:
    return record_of


@pytest.fixture(scope="session")
def make_row() -> Callable[..., ExampleRow]:
    return row_of


@pytest.fixture(scope="session")
def make_handle(special_tokens: SpecialTokens) -> Callable[..., DatasetHandle]:
    return partial(handle_of, special_tokens)


@pytest.fixture
def filled(store: FeatureStore, handle: DatasetHandle, rows: list[ExampleRow]) -> FeatureStore:
    """A store with the hundred pairs in four commits that did not arrive in order."""
    for start in (50, 0, 75, 25):
        store.features.append(handle, rows[start : start + 25])
    return store


@pytest.fixture
def whole(filled: FeatureStore, records: list[ParseRecord]) -> FeatureStore:
    """The hundred pairs, all of their parses in several commits, and who made both."""
    for start in range(0, 40, 8):
        filled.parses.append(records[start : start + 8])
    filled.describe(PARSER, "parser", {"name": "gold"})
    filled.describe(TOKENIZER, "tokenizer", {"name": "toy"})
    return filled


@pytest.fixture
def every_table(whole: FeatureStore, data: FeatureDataset) -> FeatureStore:
    """A store with rows in each of its tables."""
    drop = Drop("pairs", TOKENIZER, "train", "en", "job", "bad", "", "example", "no hypothesis")
    # Pages of some length, beside their footer.
    drops = [replace(drop, example_id=f"bad-{n}", message=f"{n}" * 50) for n in range(200)]
    whole.drops.append(drops)
    data.pin("paper")
    states = StatedDataset(whole, data, {"encoder": "e"}, 2)
    none = WordStates(np.zeros(2, np.int32), np.zeros((0, 2), np.float16))
    states.write(states.without_states(), [none] * len(data))
    return whole


@pytest.fixture
def data(filled: FeatureStore) -> FeatureDataset:
    return filled.dataset("pairs")


@pytest.fixture
def run(store: FeatureStore) -> Callable[..., Result]:
    """Runs a command of ``parsebank store`` on the store."""
    app = typer.Typer()
    register(app)
    return lambda *words: CliRunner().invoke(app, ["store", *map(str, words), "--store", store.uri])


@pytest.fixture(scope="session")
def writers() -> Iterator[Writers]:
    """Starts other processes that work on stores."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # other users report there too
        yield Writers(Path(folder))


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """An object store on loopback; ``s3.location()`` is a new place in it."""
    copies = tmp_path_factory.mktemp("copies")
    process = subprocess.Popen(
        [sys.executable, str(S3_PROGRAM)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARSEBANK_CACHE_DIR", str(copies))
        yield S3(int(process.stdout.readline()))
    process.terminate()
    process.communicate(timeout=120)
