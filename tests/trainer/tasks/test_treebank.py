"""A parser whose encoder reads a parser's trees, while a treebank's are learned and scored by."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
import torch

from featurestore import FeatureStore, ParsedDataset, open_store
from syntax.errors import SpecError
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from tests.trainer.runs import batches_of, finished
from tests.trainer.treebank import DOG, GO, append_treebank
from trainer.data import open_source, warn_of_data
from trainer.evaluation.trained import load_run
from trainer.options import Recipe
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES

GUESSED = DOG.replace("\t2\tdet", "\t3\tdep").replace("\t3\tnsubj", "\t3\tdep")
"""The same words as `DOG`, with *the* below *barks*."""

SIZES = ("layers=1", "hidden_size=16", "heads=2", "feed_forward=16", "max_positions=64")


@pytest.fixture(scope="module")
def store(tmp_path_factory, tokenizer) -> Iterator[FeatureStore]:
    with open_store(str(tmp_path_factory.mktemp("trees") / "store")) as opened:
        for split in ("train", "dev"):
            append_treebank(opened, tokenizer, split, (GO, DOG, DOG), name="ud")
            append_treebank(opened, tokenizer, split, (GO, GUESSED), (0, 1), name="ud-parsed")
        append_treebank(opened, tokenizer, "other", (DOG, DOG), name="ud")
        append_treebank(opened, tokenizer, "other", (GO, GUESSED), (0, 1), name="ud-parsed")
        append_treebank(opened, tokenizer, "fewer", (DOG,), name="ud")
        append_treebank(opened, tokenizer, "fewer", (DOG, GO), (0, 1), name="ud-parsed")
        append_treebank(opened, tokenizer, "gold", (DOG, GO), name="ud")
        append_treebank(opened, tokenizer, "gold", (DOG, GO), name="ud-parsed")
        yield opened


def recipe(*settings: str) -> Recipe:
    common = [f"model.{size}" for size in SIZES]
    common += [
        "max_length=64",
        "model.weights=random",
        "threshold=1",
        "max_steps=2",
        "evaluate_every=2",
    ]
    common += ["task.parser.context_width=8", "task.parser.arc=8", "task.parser.relation=8"]
    return with_settings(RECIPES["microbert-ud-sla"](), [*common, *settings])


def heads(conllu: str) -> list[int]:
    return parse_from_sentences(list(parse_conllu(conllu))).head


def test_matrices_are_of_the_parser_and_targets_of_the_treebank(store, caplog) -> None:
    source = open_source(store, recipe(), "train", "en", labelled=True)
    assert "1 of 3 examples of ud are not in ud-parsed" in caplog.text
    assert isinstance(source.dataset, ParsedDataset)
    for data in (source.dataset, pickle.loads(pickle.dumps(source.dataset))):
        records = data.records(range(len(data)))
        assert [own[0].parse.head for own in records] == [heads(GO), heads(DOG)]
        assert data.has_gold
        assert data.values("deprel") == ("det", "nsubj", "root")
    (batch,) = batches_of(store, recipe())
    row = batch.example_ids.index("dev-1")
    assert batch.labels["parser_heads"][row].tolist() == heads(DOG)
    assert batch.parents_BL[row, 1:4].tolist() == [3, 3, -1], "as the parser guessed"
    (silver,) = batches_of(store, recipe("data.treebank=null", "task.trees=all"))
    assert silver.labels["parser_heads"][row].tolist() == heads(GUESSED)
    mask = recipe().model.matrices()[0]
    assert torch.equal(batch.extra(mask), silver.extra(mask))


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("other", "'other-0' of ud-parsed has other words .* `--mode pretokenized`"),
        ("fewer", "1 of 2 examples of ud-parsed are not in the treebank ud, the first 'fewer-1'"),
        ("gold", "'gold-0' of ud-parsed has gold trees"),
    ],
)
def test_a_treebank_of_other_sentences_or_no_parser_is_refused(store, split, message) -> None:
    with pytest.raises(SpecError, match=message):
        batches_of(store, recipe(), split)


def test_a_treebank_beside_a_model_that_reads_words_is_refused(store) -> None:
    of_words = with_settings(
        RECIPES["orderfree-selfatt-graph-delex"](), ["data.dataset=ud-parsed", "data.treebank=ud"]
    )
    with pytest.raises(SpecError, match=r"orderfree\.v1 reads the trees of ud-parsed themselves"):
        open_source(store, of_words, "train", "en")


def test_a_run_records_the_treebank_and_is_evaluated_by_it(store, tmp_path) -> None:
    run = finished(recipe(), store, tmp_path)
    data = run.recipe.data
    assert data.treebank_version == store.dataset("ud", split="train").version
    loaded = load_run(tmp_path).on(store)
    assert loaded.recipe.data.treebank == "ud"
    assert loaded.recipe.data.treebank_version is None


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ((), False),
        (("data.treebank=null",), True),
        (("data.treebank=null", "use_syntax=false"), False),
    ],
)
def test_a_model_that_reads_the_trees_to_be_found_is_warned_of(
    store, caplog, settings, warned
) -> None:
    made = recipe("task.trees=all", *settings)
    warn_of_data(open_source(store, made, "train", "en"), made)
    assert ("reads the trees of ud-parsed that it learns" in caplog.text) == warned
