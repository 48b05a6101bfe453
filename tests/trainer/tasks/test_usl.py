"""``usl.v1``: trees of pieces, their labels, and the trees of words that are read off scores."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertConfig

from featurestore import FeatureStore, ParsedDataset, open_store
from syntax.batches import IGNORE, AssemblySpec
from syntax.batches.words import word_layout
from syntax.trees.mst import spanning_tree
from tests.trainer.treebank import DOG, DU, EATEN, GO, NAME, append_treebank
from trainer.batch import SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.options import UslOptions
from trainer.tasks.usl import Usl, is_tree, piece_targets, word_heads


@pytest.fixture(scope="module")
def store(tmp_path_factory, tokenizer) -> Iterator[FeatureStore]:
    with open_store(str(tmp_path_factory.mktemp("pieces") / "store")) as opened:
        append_treebank(opened, tokenizer, "train", (DOG, LONG, DU, EATEN + GO))
        append_treebank(opened, tokenizer, "mixed", (DOG, GO), silver=(1,))
        yield opened


LONG = """\
1\tquixotically\tx\tADV\t_\t_\t2\tadvmod\t_\t_
2\tbb\tx\tVERB\t_\t_\t0\troot\t_\t_
3\tccczzz\tx\tNOUN\t_\t_\t2\tobj\t_\t_

"""


def arrays_of(
    store: FeatureStore, policy: str, length: int = 64, split: str = "train"
) -> dict[str, object]:
    data = ParsedDataset(store, store.dataset(NAME, split=split, lang="en"))
    assembly = AssemblySpec(
        matrices=(),
        offsets=True,
        max_length=length,
        policy=policy,
        joint_root=False,
        separator_edge="none",
    )
    arrays = next(data.stream(batch_size=9, shuffle=False, assembly=assembly))
    return {**arrays, "word_layout": word_layout(arrays)}


def options_for(store: FeatureStore, **options: object) -> UslOptions:
    data = ParsedDataset(store, store.dataset(NAME, split="train", lang="en"))
    return UslOptions(**options).fitted(data)


def slow_tree(arrays, row: int, policy: str, relations: list[str]) -> dict[int, tuple[int, str]]:
    """Head and label of each position of a sequence of one sentence, piece by piece."""
    layout, (parse,) = arrays["word_layout"], arrays["parses"][row]
    pieces: dict[int, list[int]] = {}
    for at, word in enumerate(layout.pieces[row].tolist()):
        if word >= 0:
            pieces.setdefault(word, []).append(at)
    found = {}
    for word, own in pieces.items():
        head = parse.head[word]
        above = pieces[head - 1][0] if head else 0
        for number, at in enumerate(own):
            if number == 0:
                found[at] = (above, relations[word])
            elif policy == "chain":
                found[at] = (own[number - 1], "APP")
            elif policy == "attach":
                found[at] = (own[0], "APP")
            else:
                found[at] = (above, relations[word])
    return found


@pytest.mark.parametrize("policy", ["chain", "attach", "copy_head"])
def test_pieces_hang_as_the_policy_says(store, policy) -> None:
    options, arrays = options_for(store), arrays_of(store, policy)
    heads, labels = piece_targets(options, arrays)
    longest = 0
    for row in (0, 1):
        (parse,) = arrays["parses"][row]
        tree = slow_tree(arrays, row, policy, parse.deprel)
        end = int(arrays["lengths"][row])
        tree |= {0: (0, "_"), end - 1: (0, "_")}
        ours = {at: (int(heads[row, at]), options.labels[labels[row, at]]) for at in range(end)}
        assert ours == tree
        assert (heads[row, end:] == IGNORE).all()
        words = arrays["word_layout"].pieces[row]
        longest = max(longest, int(np.bincount(words[words >= 0]).max()))
    assert longest > 2, "a word of several pieces"


def test_special_tokens_can_be_left_out_of_the_loss(store) -> None:
    arrays = arrays_of(store, "chain")
    special = arrays["special_tokens_mask"] & arrays["attention_mask"]
    learned = [
        piece_targets(options_for(store, specials_in_loss=given), arrays)[0][special] != IGNORE
        for given in (True, False)
    ]
    assert learned[0].all()
    assert not learned[1].any()


def test_nothing_is_learned_of_cut_or_parsed_sentences(store) -> None:
    options = options_for(store)
    cut = arrays_of(store, "chain", length=6)
    heads, _ = piece_targets(options, cut)
    whole = cut["word_layout"].whole[:, 0]
    assert not whole.all()
    assert (heads[~whole] == IGNORE).all()
    mixed = arrays_of(store, "chain", split="mixed")
    heads, _ = piece_targets(options, mixed)
    assert (heads[1] == IGNORE).all()
    both, _ = piece_targets(options_for(store, trees="all"), mixed)
    assert (both[1] != IGNORE).any()


# Decoding


def test_a_cycle_of_appended_pieces_is_opened() -> None:
    """Two words whose best heads are each other, and a [SEP] that scores best for both."""
    arcs = np.zeros((4, 4), np.float32)
    arcs[1] = [1.0, 0.0, 5.0, 9.0]
    arcs[2] = [0.5, 5.0, 0.0, 9.0]
    heads, repaired = word_heads(arcs, np.array([1, 2]), np.array([0, 0]))
    assert (heads.tolist(), repaired) == ([0, 1], 1)
    alone, none = word_heads(arcs, np.array([1]), np.array([0]))
    assert (alone.tolist(), none) == ([0], 0)


@given(st.integers(1, 6), st.integers(0, 10_000))
def test_direct_heads_are_the_best_tree(words, seed) -> None:
    scores = np.random.default_rng(seed).normal(size=(words, words + 1)).astype(np.float32)
    arcs = np.zeros((words + 2, words + 2), np.float32)
    arcs[1:-1, :-1] = scores
    heads, _ = word_heads(arcs, np.arange(1, words + 1), np.zeros(words, np.int64))
    assert heads.tolist() == spanning_tree(scores).tolist()
    assert is_tree(heads)


@pytest.mark.parametrize(
    ("heads", "tree"),
    [([0], True), ([0, 0], False), ([2, 1], False), ([2, 0, 2], True), ([0, 3, 2], False)],
)
def test_a_tree_has_one_root_and_no_cycle(heads, tree) -> None:
    assert is_tree(np.array(heads)) == tree


def test_each_sentence_has_a_tree_and_a_word_without_a_piece_has_no_head() -> None:
    arcs = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    heads, _ = word_heads(arcs, np.array([1, -1, 3, 4, 0]), np.array([0, 0, 0, 1, -1]))
    assert heads[1] == -1
    assert heads[3] == 0
    assert heads[4] == -1
    assert sorted((heads[0] == 0, heads[2] == 0)) == [False, True]


def test_the_head_gives_trees_of_words(store) -> None:
    options, arrays = options_for(store), arrays_of(store, "chain")
    task = Usl(options, {})
    batch = SyntaxBatch.from_numpy(arrays, task.targets(arrays))
    encoder = BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=40_000,
    ).to_dict()
    chosen = {"name": "usl.v1", "labels": options.labels}
    sizes = {"arc": 8, "relation": 4, "labels": tuple(reversed(options.labels))}
    found = {}
    for masks in (True, False):
        torch.manual_seed(0)
        model = SyntaxModel(
            SyntaxConfig(
                encoder=encoder,
                model={"name": "udprlm.v1", **sizes, "usi": False},
                task={**chosen, "mask_reserved": masks},
            )
        ).eval()
        with torch.no_grad():
            # All labels score alike but for `_`, which every word would get.
            last = len(options.labels) - 1
            model.encoder.parser.labels_CIJ[last, -1, -1] = 1.0
        output = model(batch)
        found[masks] = output.logits["relations"]
        words = arrays["word_layout"].pieceless | (arrays["word_layout"].words < 0)
        assert output.logits["reserved"].sum() == (~words).sum()
    real = ~torch.from_numpy(words)
    assert (found[True][real] >= 2).all()
    assert (found[False][real] == 0).all()
    scorer = task.scorer(None)
    scorer.add(output, batch)
    scores = scorer.scores().to_json()
    assert scores["reserved_words"] == int(real.sum())
    assert scores["cut_words"] == scores["pieceless_words"] == 1
