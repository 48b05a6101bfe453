"""Batches of words against the same, told word by word."""

from __future__ import annotations

import numpy as np
import pytest

from featurestore import WordStates
from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from syntax.matrices import tree_distance
from trainer.batch import SyntaxBatch
from trainer.systems.frozen.words import word_arrays

MATRICES = ("distance", "depth", "sla_mask(threshold=1)", "subtree_size")


@pytest.fixture(params=["none", "attach", "broadcast"])
def pieces(request, store):
    """Pairs of raw texts, some of several sentences, cut at 40 pieces."""
    data = store.dataset("sample", split="dev", lang="en")
    stream = data.stream(
        batch_size=16,
        shuffle=False,
        max_length=40,
        policy=request.param,
        matrices=MATRICES,
        assembly=AssemblySpec(
            joint_root=False, separator_edge="none", offsets=True, first_pieces=True
        ),
    )
    return next(stream)


def slow_words(arrays, row: int) -> list[list[int]]:
    """The positions of each word of a sequence, where its first piece is there."""
    words: list[list[int]] = []
    owners: list[tuple[int, int]] = []
    for at in range(int(arrays["lengths"][row])):
        owner = (int(arrays["segment_ids"][row, at]), int(arrays["word_ids"][row, at]))
        if arrays["first_pieces"][row, at]:
            words.append([at])
            owners.append(owner)
        elif owners and owner == owners[-1] and owner[1] >= 0:
            words[-1].append(at)
    return words


def test_words_are_their_first_pieces(pieces) -> None:
    words = word_arrays(pieces)
    B, W = words["word_ids"].shape
    assert int(words["lengths"].max()) == W < pieces["word_ids"].shape[1]
    for row in range(B):
        places = slow_words(pieces, row)
        assert words["lengths"][row] == len(places)
        assert words["attention_mask"][row].tolist() == [True] * len(places) + [False] * (
            W - len(places)
        )
        for number, place in enumerate(places):
            for name in ("input_ids", "upos", "deprel", "word_ids", "sentence_ids", "depth"):
                assert words[name][row, number] == pieces[name][row, place[0]], name
            offsets = pieces["offset_mapping"][row, place]
            assert words["offset_mapping"][row, number].tolist() == [
                offsets[0, 0],
                offsets[:, 1].max(),
            ]
    assert words["special_tokens_mask"].tolist() == (~words["attention_mask"]).tolist()


def test_matrices_and_parents_are_those_of_words(pieces) -> None:
    words = word_arrays(pieces)
    for row in range(len(words["lengths"])):
        first = [place[0] for place in slow_words(pieces, row)]
        count = len(first)
        for name in ("distance", "sla_mask(threshold=1)"):
            expected = pieces[name][row][np.ix_(first, first)]
            assert (words[name][row, :count, :count] == expected).all()
        assert (words["distance"][row, count:] == 255).all()
        assert not words["sla_mask(threshold=1)"][row, :, count:].any()
        parents = words["parents"][row, :count]
        if int(pieces["lengths"][row]) < 40:  # else paths may run through what was cut off
            assert (tree_distance(parents) == words["distance"][row, :count, :count]).all()


def test_a_batch_of_words_is_a_batch(pieces) -> None:
    words = word_arrays(pieces)
    batch = SyntaxBatch.from_numpy(words, ("label",), ("subtree_size",))
    assert batch.reachable_BLL.diagonal(dim1=1, dim2=2).sum(1).tolist() == words["lengths"].tolist()


def test_states_go_to_the_words_of_their_segment(pieces) -> None:
    """The state of a word says its segment and its number."""
    examples = []
    for row in range(len(pieces["lengths"])):
        own = (pieces["segment_ids"][row], pieces["word_ids"][row])
        counts = [60, 60]
        made = [(segment, word) for segment in (0, 1) for word in range(counts[segment])]
        examples.append(WordStates(np.array(counts, np.int32), np.array(made, np.float16)))
        assert own[1].max() < 60
    words = word_arrays({**pieces, "word_states": examples})
    real = words["attention_mask"]
    assert words["word_states"].dtype == np.float16
    assert (words["word_states"][..., 0] == words["segment_ids"])[real].all()
    assert (words["word_states"][..., 1] == words["word_ids"])[real].all()
    assert not words["word_states"][~real].any()


def test_pieces_that_do_not_say_which_are_first_are_refused(pieces) -> None:
    del pieces["first_pieces"]
    with pytest.raises(SpecError, match="first_pieces=True"):
        word_arrays(pieces)
