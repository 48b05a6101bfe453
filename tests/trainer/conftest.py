"""Small forests as stream batches, made without the kernel; tiny encoders; one torch thread."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState, PartialState
from transformers import BertConfig, XLMRobertaConfig

from clients import Client
from clients.benchmarks import SAMPLE
from featurestore import ExampleRow, FeatureStore, open_store
from service.parsers import Parser, find_parser, load_parser
from service.settings import Settings
from service.tokenizers import LoadedTokenizer, bundled_tokenizers, load_tokenizer
from syntax.examples import Example
from syntax.matrices import MATRICES
from tests.trainer.rows import read_row, write_rows
from trainer.batch import SyntaxBatch
from trainer.nn.stock import BUNDLED
from trainer.options import ModelOptions, Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

UNREACHABLE8 = 255


@pytest.fixture(autouse=True)
def _on_the_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Losses are compared bit by bit, which no GPU promises; test_gpu.py takes this back.
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    torch.manual_seed(0)
    yield
    _forget_accelerate()


@pytest.fixture
def forget_accelerate() -> Callable[[], None]:
    """accelerate keeps precision and device of the first run for the whole process."""
    return _forget_accelerate


def _forget_accelerate() -> None:
    AcceleratorState._reset_state()
    PartialState._reset_state()


def walk(parents: list[int], node: int) -> list[int]:
    """The node and its ancestors, upwards."""
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path


def slow_matrices(parents: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distance (-1: no path), depth and ancestor matrices by walking up from every pair."""
    size = len(parents)
    distance = np.full((size, size), -1)
    ancestor = np.zeros((size, size), bool)
    for i in range(size):
        ancestor[i, walk(parents, i)] = True
        for j in range(size):
            up, down = walk(parents, i), walk(parents, j)
            shared = [node for node in up if node in down]
            if shared:
                distance[i, j] = up.index(shared[0]) + down.index(shared[0])
    return distance, np.array([len(walk(parents, i)) - 1 for i in range(size)], int), ancestor


def random_forest(rng: np.random.Generator, size: int, roots: float = 0.0) -> list[int]:
    """Parents of a random tree rooted at 0; other nodes become roots with probability ``roots``."""
    order = [0, *(rng.permutation(size - 1) + 1)]
    parents = [-1] * size
    for position in range(1, size):
        if rng.random() >= roots:
            parents[order[position]] = int(order[rng.integers(position)])
    return parents


def as_stream_batch(
    forests: list[list[int]], rng: np.random.Generator, pad: int = 0, vocabulary: int = 60
) -> dict[str, object]:
    """The mapping that a stream would yield for forests over [CLS] pieces ... [SEP]."""
    B, L = len(forests), max(map(len, forests)) + pad
    arrays: dict[str, object] = {
        "input_ids": np.zeros((B, L), np.int64),
        "attention_mask": np.zeros((B, L), bool),
        "token_type_ids": np.zeros((B, L), np.int64),
        "special_tokens_mask": np.zeros((B, L), bool),
        "upos": np.zeros((B, L), np.uint8),
        "deprel": np.zeros((B, L), np.uint8),
        "parents": np.full((B, L), -1, np.int32),
        "lengths": np.array([len(forest) for forest in forests], np.int32),
        "word_ids": np.full((B, L), -1, np.int32),
        "segment_ids": np.zeros((B, L), np.int32),
        "sentence_ids": np.full((B, L), -1, np.int32),
        "depth": np.zeros((B, L), np.uint8),
        "distance": np.full((B, L, L), UNREACHABLE8, np.uint8),
        "ancestor": np.zeros((B, L, L), bool),
        "label": rng.integers(0, 3, B),
        "example_id": [f"example-{index}" for index in range(B)],
    }
    for row, forest in enumerate(forests):
        _fill(arrays, row, forest, rng, vocabulary)
    return arrays


def _fill(arrays, row: int, forest: list[int], rng: np.random.Generator, vocabulary: int) -> None:
    size = len(forest)
    distance, depth, ancestor = slow_matrices(forest)
    arrays["input_ids"][row, :size] = rng.integers(5, vocabulary, size)
    arrays["attention_mask"][row, :size] = True
    arrays["special_tokens_mask"][row, [0, size - 1]] = True
    arrays["upos"][row, 1 : size - 1] = rng.integers(0, 18, size - 2)
    arrays["deprel"][row, 1 : size - 1] = rng.integers(0, 38, size - 2)
    arrays["parents"][row, :size] = forest
    arrays["word_ids"][row, 1 : size - 1] = np.arange(size - 2)
    arrays["sentence_ids"][row, 1 : size - 1] = 0
    arrays["depth"][row, :size] = depth
    arrays["ancestor"][row, :size, :size] = ancestor
    arrays["distance"][row, :size, :size] = np.where(distance < 0, UNREACHABLE8, distance)


@pytest.fixture
def make_batch() -> Callable[..., SyntaxBatch]:
    """A batch of random forests; sizes differ, so that there is padding."""

    def make(
        sizes: tuple[int, ...] = (9, 5, 12), roots: float = 0.0, pad: int = 0, seed: int = 0
    ) -> SyntaxBatch:
        rng = np.random.default_rng(seed)
        forests = [random_forest(rng, size, roots) for size in sizes]
        return SyntaxBatch.from_numpy(as_stream_batch(forests, rng, pad), labels=("label",))

    return make


@pytest.fixture
def batch(make_batch: Callable[..., SyntaxBatch]) -> SyntaxBatch:
    return make_batch()


@pytest.fixture
def with_extra() -> Callable[..., SyntaxBatch]:
    """A batch with one more matrix, made for each example by the plain function for one tree."""

    def add(batch: SyntaxBatch, name: str, matrix: Callable[..., np.ndarray]) -> SyntaxBatch:
        B, L = batch.input_ids_BL.shape
        found = torch.zeros(B, L, L, dtype=torch.bool)
        for row, size in enumerate(batch.lengths_B.tolist()):
            columns = (batch.parents_BL, batch.special_tokens_mask_BL, batch.upos_BL)
            parents, special, upos = (column[row, :size].numpy() for column in columns)
            found[row, :size, :size] = torch.from_numpy(matrix(parents, special, upos))
        return replace(batch, extras={**batch.extras, name: found})

    return add


@pytest.fixture
def batch_for(
    make_batch: Callable[..., SyntaxBatch], with_extra: Callable[..., SyntaxBatch]
) -> Callable[..., SyntaxBatch]:
    """A batch with the masks and further arrays that a model of some options reads."""

    def make(options: ModelOptions, **arguments: object) -> SyntaxBatch:
        batch = make_batch(**arguments)
        for name in set(options.matrices()) - {"distance", "depth", "ancestor"}:
            own = set(MATRICES.columns(name)) & {"special", "upos"}

            def mask(parents, special, upos, name=name, own=own) -> np.ndarray:
                columns = {"special": special, "upos": upos}
                return MATRICES[name](parents, **{one: columns[one] for one in own})

            batch = with_extra(batch, name, mask)
        arrays = options.arrays(batch.arrays)
        further = {name: torch.from_numpy(arrays[name]) for name in options.extras()}
        return replace(batch, extras={**batch.extras, **further})

    return make


@pytest.fixture
def take_row() -> Callable[[SyntaxBatch, int], SyntaxBatch]:
    """One example of a batch, cut to its own length."""

    def take(batch: SyntaxBatch, row: int) -> SyntaxBatch:
        size, L = int(batch.lengths_B[row]), batch.input_ids_BL.shape[1]

        def cut(tensors: dict[str, object]) -> dict[str, torch.Tensor]:
            found = {}
            for name, tensor in tensors.items():
                if isinstance(tensor, torch.Tensor):
                    ends = [size if length == L else length for length in tensor.shape[1:]]
                    found[name] = tensor[(slice(row, row + 1), *map(slice, ends))]
            return found

        own = cut({field.name: getattr(batch, field.name) for field in fields(batch)})
        labels, extras = cut(batch.labels), cut(batch.extras)
        ids = batch.example_ids[row : row + 1]
        return replace(batch, **own, labels=labels, extras=extras, example_ids=ids)

    return take


SIZE = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "initializer_range": 0.2,
}


@pytest.fixture(params=["bert", "xlm-roberta"])
def encoder_config(request: pytest.FixtureRequest) -> BertConfig | XLMRobertaConfig:
    if request.param == "bert":
        return BertConfig(**SIZE)
    return XLMRobertaConfig(**SIZE, type_vocab_size=1, max_position_embeddings=40)


@pytest.fixture
def bert_config() -> BertConfig:
    return BertConfig(**SIZE)


@pytest.fixture
def without_dropout(tmp_path: Path) -> tuple[str, ...]:
    """Settings of a model that draws nothing."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = tmp_path / "encoder"
    BertConfig(intermediate_size=32, **size, **off).save_pretrained(folder)
    return (f"encoder={folder}", "model.dropout=0", "gat_dropout=0")


@pytest.fixture
def tiny_encoder(tmp_path: Path) -> str:
    """A folder of ``parsebank-tiny`` with the files of the tokenizer that the stores here have."""
    (bundled,) = bundled_tokenizers().values()
    folder = shutil.copytree(bundled, tmp_path / "tiny-encoder")
    shutil.copy(BUNDLED["parsebank-tiny"] / "config.json", folder)
    return str(folder)


class CrashError(Exception):
    """A run that ends without a word, as a killed process does."""


@pytest.fixture
def crash() -> type[CrashError]:
    return CrashError


OTHER_PARSER = "ab" * 16
Rows = dict[str, list[ExampleRow]]
Append = Callable[..., None]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of a service in this process."""
    with Client.embedded(str(tmp_path_factory.mktemp("service")), log_level="warning") as opened:
        yield opened


@pytest.fixture(scope="session")
def tokenizer() -> LoadedTokenizer:
    return load_tokenizer("parsebank-wordpiece-en")


@pytest.fixture(scope="session")
def english() -> Parser:
    return load_parser(find_parser(Settings(store="unused"), "udpipe/english-ewt"))


@pytest.fixture(scope="session")
def sample_rows(english: Parser, tokenizer: LoadedTokenizer) -> Rows:
    """Part of the bundled sample, parsed by the bundled parser, by split."""
    sizes = {"train": 96, "dev": 48}
    return {
        split: [read_row(english, tokenizer, *one) for one in enumerate(_items(split, count))]
        for split, count in sizes.items()
    }


@pytest.fixture(scope="session")
def append_rows(tokenizer: LoadedTokenizer, english: Parser) -> Append:
    """Appends rows to a dataset with the sample's fields and labels."""

    def append(
        store: FeatureStore, rows: list[ExampleRow], split: str, lang: str, name: str = "sample"
    ) -> None:
        store.describe(OTHER_PARSER, "parser", {"name": "another/parser"})
        write_rows(store, english, tokenizer, SAMPLE.spec(split, lang, name=name), rows)

    return append


@pytest.fixture(scope="session")
def store_uri(
    tmp_path_factory: pytest.TempPathFactory, sample_rows: Rows, append_rows: Append
) -> str:
    """A store with part of the sample: English, and for ``dev`` the same pairs as de and fr."""
    uri = str(tmp_path_factory.mktemp("trainer") / "store")
    with open_store(uri) as store:
        append_rows(store, sample_rows["train"], "train", "en")
        for lang in ("en", "de", "fr"):
            append_rows(store, sample_rows["dev"], "dev", lang)
    return uri


def _items(split: str, count: int) -> Iterator[Example]:
    items = (item for item in SAMPLE.read(None, split, "en") if isinstance(item, Example))
    return islice(items, count)


@pytest.fixture
def store(store_uri: str) -> Iterator[FeatureStore]:
    with open_store(store_uri) as opened:
        yield opened


@pytest.fixture(scope="session")
def everything_uri(
    tmp_path_factory: pytest.TempPathFactory, english: Parser, tokenizer: LoadedTokenizer
) -> str:
    """A store with a dataset that every task can read."""
    from tests.trainer.everything import DEV, EXAMPLES, append_everything

    uri = str(tmp_path_factory.mktemp("everything") / "store")
    with open_store(uri) as store:
        append_everything(store, english, tokenizer, "train", EXAMPLES)
        append_everything(store, english, tokenizer, "dev", DEV, EXAMPLES)
    return uri


@pytest.fixture
def everything(everything_uri: str) -> Iterator[FeatureStore]:
    with open_store(everything_uri) as store:
        yield store


@pytest.fixture
def small_recipe() -> Callable[..., Recipe]:
    """The sample recipe cut to a few steps; settings as on the command line."""

    def make(*settings: str) -> Recipe:
        short = ["training.max_steps=8", "training.batch_size=8", "training.log_every=1"]
        return with_settings(RECIPES["sample"](), [*short, *settings])

    return make


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, store_uri: str) -> Path:
    """The output of a finished run of the sample recipe; look, but do not write there."""
    from tests.trainer.runs import finished

    output = tmp_path_factory.mktemp("run")
    recipe = with_settings(RECIPES["sample"](), ["max_steps=20", "evaluate_every=10"])
    with open_store(store_uri) as store:
        finished(recipe, store, output)
    return output


@pytest.fixture(scope="session")
def tagger(
    tmp_path_factory: pytest.TempPathFactory, english: Parser, tokenizer: LoadedTokenizer
) -> tuple[Path, str]:
    """The output of a finished run that tags tokens, and its store."""
    from tests.trainer.runs import finished
    from tests.trainer.tagged import NAME, append_tagged

    output, uri = tmp_path_factory.mktemp("tagger"), str(tmp_path_factory.mktemp("t") / "store")
    settings = ["task.name=token_classification.v1", f"data.dataset={NAME}", "max_steps=2"]
    recipe = with_settings(RECIPES["sample"](), [*settings, "evaluate_every=2"])
    with open_store(uri) as store:
        for split in ("train", "dev"):
            append_tagged(store, english, tokenizer, split)
        finished(recipe, store, output)
    return output, uri
