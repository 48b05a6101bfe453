"""Structural probes on real treebanks: multiword tokens, non-projective trees, other scripts."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from featurestore import FeatureStore, open_store
from service.tokenizers import LoadedTokenizer, load_tokenizer
from syntax import Sentence, read_conllu
from syntax.batches import AssemblySpec
from syntax.examples import DatasetSpec
from syntax.matrices import tree_distance
from syntax.trees.conllu import parse_from_sentences
from tests.trainer.rows import handle_of, row_of
from trainer.loop import train
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.systems.frozen.words import word_arrays

pytestmark = pytest.mark.slow

COUNT = 120


def append_treebank(
    store: FeatureStore, sentences: list[Sentence], tokenizer: LoadedTokenizer, split: str
) -> None:
    rows = [
        row_of(tokenizer, "ab" * 16, seq, f"s{seq}", [parse_from_sentences([sentence])], {})
        for seq, sentence in enumerate(sentences)
    ]
    spec = DatasetSpec("ud", split, "xx", ("text",))
    store.features.append(handle_of(spec, tokenizer), rows)


@pytest.fixture(params=["UD_French-Sequoia", "UD_German-GSD", "UD_Chinese-GSDSimp"])
def treebank(request, data_dir) -> list[Sentence]:
    path = sorted((data_dir / "treebanks" / request.param).glob("*-dev.conllu"))[0]
    return list(islice(read_conllu(path), COUNT))


@pytest.fixture
def multilingual(data_dir) -> LoadedTokenizer:
    return load_tokenizer(str(data_dir / "tokenizers" / "bert-base-multilingual-cased"))


def test_words_are_as_far_apart_as_in_the_treebank(treebank, multilingual, tmp_path) -> None:
    with open_store(tmp_path / "store") as store:
        append_treebank(store, treebank, multilingual, "dev")
        stream = store.dataset("ud").stream(
            batch_size=16,
            shuffle=False,
            max_length=None,
            policy="none",
            matrices=("distance",),
            assembly=AssemblySpec(joint_root=False, separator_edge="none", first_pieces=True),
        )
        whole = 0
        for batch in map(word_arrays, stream):
            for row, name in enumerate(batch["example_id"]):
                gold = tree_distance(treebank[int(name[1:])].tree.parents)
                count = int(batch["lengths"][row])
                owners = batch["word_ids"][row, :count]
                assert sorted(set(owners.tolist())) == owners.tolist()
                if count == len(gold):  # else a word has no piece, and paths are shorter
                    assert (batch["distance"][row, :count, :count] == gold).all()
                    whole += 1
                else:
                    assert (
                        batch["distance"][row, :count, :count] <= gold[np.ix_(owners, owners)]
                    ).all()
        assert whole > COUNT // 3


def test_a_probe_trains_on_a_treebank(treebank, multilingual, tmp_path) -> None:
    settings = (
        *("encoder=parsebank-tiny", "weights=random", "layer=0", "rank=16", "lang=xx"),
        *("epochs=4", "learning_rate=0.01", "threads=1"),
    )
    with open_store(tmp_path / "store") as store:
        append_treebank(store, treebank[: COUNT // 2], multilingual, "train")
        append_treebank(store, treebank[COUNT // 2 :], multilingual, "dev")
        run = train(with_settings(RECIPES["probe-distance"](), settings), store, tmp_path / "run")
    assert run.progress.best.scores["examples"] == COUNT // 2
    first, *_, last = [one.scores["loss"] for one in run.progress.evaluations]
    assert last < first
    assert 0 < run.progress.best.headline < 1
