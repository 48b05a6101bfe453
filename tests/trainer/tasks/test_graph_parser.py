"""The graph decoder: its loss and trees by their formulas, and what its scorer leaves out."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from syntax.errors import SpecError
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from tests.syntax.test_mst import best_total, is_tree
from tests.trainer.treebank import DOG, EATEN, GO
from trainer.nn.graph_parser import (
    SYMBOLS,
    GraphParser,
    graph_energy,
    graph_loss,
    graph_trees,
)
from trainer.options import GraphParserOptions
from trainer.systems.orderfree.words import sentence_arrays
from trainer.tasks import TASKS

SENTENCES = torch.tensor([[0, 0, 0, -1], [0, 0, 0, 0]])
HEADS = torch.tensor([[2, 0, 2, -100], [0, 1, 1, 3]])
RELATIONS = torch.tensor([[0, 4, 1, -100], [4, 1, -100, 2]])


def parser(dropout: float = 0.0) -> GraphParser:
    torch.manual_seed(0)
    return GraphParser(6, 5, 4, 5, dropout)


def states() -> torch.Tensor:
    return torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_the_loss_is_that_of_heads_and_relations_word_by_word() -> None:
    """In float64; a word whose relation the parser does not know still learns its head."""
    projected = parser().project(states())
    arcs = parser()(projected, SENTENCES)
    found = graph_loss(parser(), projected, arcs, HEADS, RELATIONS)
    model = copy.deepcopy(parser()).double()
    total, count = 0.0, 0
    elu, weights = torch.nn.functional.elu, dict(model.named_parameters())
    for row in range(2):
        words = int((SENTENCES[row] >= 0).sum())
        own = states().double()[row]
        arc_h, arc_c = (elu(one(own)) for one in model.as_arc)
        type_h, type_c = (elu(one(own)) for one in model.as_relation)
        one = torch.ones(1).double()
        for word in range(words):
            left = torch.cat([arc_c[word + 1], one])
            scores = torch.stack(
                [
                    left @ weights["arcs.weight_RIJ"][0] @ torch.cat([arc_h[head], one])
                    for head in range(words + 1)
                ]
            )
            head = int(HEADS[row, word])
            total -= float(scores.log_softmax(0)[head])
            count += 1
            if RELATIONS[row, word] >= 0:
                left, right = torch.cat([type_c[word + 1], one]), torch.cat([type_h[head], one])
                types = torch.stack([left @ of @ right for of in weights["relations.weight_RIJ"]])
                total -= float(types.log_softmax(0)[SYMBOLS + RELATIONS[row, word]])
    assert float(found) == pytest.approx(total / count, rel=1e-5)


def test_dropout_takes_a_feature_at_all_positions_of_heads_and_dependents_alike() -> None:
    model = parser(0.5).train()
    torch.manual_seed(3)
    projected = model.project(states())
    for heads, words in ((projected.arc_heads, projected.arc_words), projected[2:]):
        gone = (torch.cat([heads, words], 1) == 0).float().mean(1)
        assert set(gone.flatten().tolist()) == {0.0, 1.0}


energies = st.integers(1, 5).flatmap(
    lambda words: arrays(
        np.float64, (words, words + 1), elements=st.floats(-6, 0).map(lambda x: round(x, 3))
    )
)


@given(energies, st.booleans(), st.sampled_from(["as_published", "as_released"]))
@settings(max_examples=60, deadline=None)
def test_no_other_tree_is_better(energy, single_root, space) -> None:
    sentences = np.zeros((1, len(energy)), np.int64)
    (heads,) = graph_trees(energy[None], sentences, single_root, space)
    assert is_tree(tuple(heads.tolist()), single_root)
    scores = np.exp(energy) if space == "as_released" else energy
    found = sum(scores[word, head] for word, head in enumerate(heads))
    assert found == pytest.approx(best_total(scores, single_root))


def test_the_released_space_prefers_another_tree_of_three_nodes() -> None:
    """.40 x .45 is more than .59 x .29, and .40 + .45 less than .59 + .29."""
    energy = np.log([[[0.40, 1e-9, 0.59], [0.29, 0.45, 1e-9]]])
    sentences = np.zeros((1, 2), np.int64)
    assert graph_trees(energy, sentences, False).tolist() == [[0, 1]]
    assert graph_trees(energy, sentences, False, "as_released").tolist() == [[2, 0]]


def test_the_best_relation_is_none_of_the_symbols_which_still_take_probability() -> None:
    arcs = torch.zeros(1, 1, 2)
    relations = torch.tensor([9.0, 0, 0, 1, 2]).expand(1, 1, 2, -1)
    energy = graph_energy(arcs, relations)
    expected = torch.tensor([9.0, 0, 0, 1, 2]).log_softmax(0)[4] + np.log(0.5)
    assert energy.flatten().tolist() == pytest.approx([float(expected)] * 2)


def test_relations_have_no_subtype_in_targets() -> None:
    parses = [(parse_from_sentences(list(parse_conllu(text))),) for text in (EATEN, DOG, GO)]
    arrays = sentence_arrays({"parses": parses, "is_gold": np.ones(3, bool)})
    names = ("aux", "case", "det", "nsubj", "obl", "punct", "root")
    task = TASKS["graph_parser.v1"].task(GraphParserOptions(relations=names), {})
    found = task.targets(arrays)
    shown = [names[one] for one in found["parser_relations"][0]]
    assert shown == ["nsubj", "aux", "root", "case", "obl", "punct"]
    assert found["parser_heads"][0].tolist() == [3, 3, 0, 5, 3, 3]


def test_a_parser_without_relations_is_refused() -> None:
    from trainer.models.config import SyntaxConfig
    from trainer.models.model import SyntaxModel

    with pytest.raises(SpecError, match="relations is empty"):
        SyntaxModel(SyntaxConfig(model={"name": "orderfree.v1"}, task={"name": "graph_parser.v1"}))
