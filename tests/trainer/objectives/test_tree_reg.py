"""TreeReg: which words and brackets a batch has, the loss by loops, and whole runs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig

from clients.benchmarks import SAMPLE
from service.parsers import Limits, ParseInput
from syntax.batches import AssemblySpec
from syntax.batches.shown import batch_brackets, shown_words
from syntax.errors import SpecError
from syntax.subwords import POLICIES
from syntax.trees.brackets import brackets, constituent_brackets
from tests.trainer.bracketed import (
    bracketed_batch,
    projective_tree,
    random_states,
    sentence_arrays,
    with_targets,
)
from tests.trainer.contrasted import learned
from trainer.loop import Run, train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.models.outputs import SyntaxEncoding
from trainer.objectives.shown_options import TreeRegOptions
from trainer.objectives.tree_reg import orthogonal
from trainer.options.settings import with_settings
from trainer.progress import outcomes_of
from trainer.recipes import RECIPES
from trainer.report import result_of

SIZES = [[7, 4], [2], [9], [1, 5, 3]]


def objective_of(bert_config, **options):
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": "stock.v1"},
        task={"name": "trees.v1"},
        objectives=[{"name": "tree_reg.v1", **options}],
    )
    model = SyntaxModel(config)
    (objective,) = model.objectives
    return model, objective


def loss_of(objective, states, batch) -> float:
    return float(objective(SyntaxEncoding(states), batch))


def orth(x: np.ndarray, y: np.ndarray) -> float:
    """||orth(x, y)||, from the vectors themselves."""
    return float(np.linalg.norm(x - (x @ y) / (y @ y) * y))


def slow_losses(states: np.ndarray, arrays: dict) -> list[list[float]]:
    """The losses of each sentence's brackets, as the paper writes them, in float64."""
    found = []
    for row, sentences in enumerate(arrays["sentence_ids"]):
        for sentence in range(sentences.max() + 1):
            columns = np.flatnonzero(sentences == sentence)
            words = arrays["word_ids"][row, columns]
            pieces = {int(word): columns[words == word].tolist() for word in sorted(set(words))}
            order = list(pieces)
            heads = []
            for word in order:
                above = int(arrays["parents"][row, pieces[word][0]])
                owner = [other for other in order if above in pieces[other]]
                heads.append(order.index(owner[0]) if owner else -1)
            own = [states[row, column] for column in columns]
            ends = [pieces[word][-1] - columns[0] for word in order]
            found.append(
                [
                    slow_bracket(own, ends, int(low), int(high), int(split))
                    for low, high, split in brackets(heads)
                ]
            )
    return found


def slow_bracket(states: list, ends: list[int], low: int, high: int, gold: int) -> float:
    """-ln softmax of SCIN(i, q) + SCIN(q + 1, j), over pieces of one sentence."""

    def scin(i: int, j: int) -> float:
        before = orth(states[j], states[i - 1]) if i > 0 else 0.0
        after = orth(states[j + 1], states[j]) if j + 1 < len(states) else 0.0
        return before + after

    i, j = ends[low - 1] + 1 if low else 0, ends[high]
    scores = {q: scin(i, ends[q]) + scin(ends[q] + 1, j) for q in range(low, high)}
    return math.log(sum(math.exp(score) for score in scores.values())) - scores[gold]


TREE = st.recursive(st.just(1), lambda parts: st.lists(parts, min_size=1, max_size=4), max_leaves=9)
"""A word, or the parts of a constituent."""


def right_branching(tree, start: int, spans: list) -> tuple[int, set]:
    """The end of a tree that begins at a word, and its binary brackets, as the paper makes them."""
    if tree == 1:
        return start + 1, set()
    found, starts, at = set(), [], start
    for part in tree:
        starts.append(at)
        at, inner = right_branching(part, at, spans)
        found |= inner
    spans.append((start, at))
    for left, right in pairwise(starts):
        if at - left >= 3:
            found.add((left, at - 1, right - 1))
    return at, found


@given(tree=TREE.filter(lambda one: one != 1))
def test_constituents_branch_to_the_right(tree) -> None:
    spans: list[tuple[int, int]] = []
    _, expected = right_branching(tree, 0, spans)
    found = [tuple(one) for one in constituent_brackets(spans).tolist()]
    assert set(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("average", ["as_published", "as_released"])
def test_the_loss_is_that_of_a_slow_twin(bert_config, average) -> None:
    """The published sum fails on the release, which takes the mean over a sentence's brackets."""
    batch = bracketed_batch(SIZES, pad=3)
    states = random_states(batch, 16)
    each = [one for one in slow_losses(states.double().numpy(), batch.arrays) if one]
    assert len(each) == 5
    expected = {
        "as_published": np.mean([sum(one) for one in each]),
        "as_released": np.mean([np.mean(one) for one in each]),
    }
    _, objective = objective_of(bert_config, average=average)
    assert loss_of(objective, states, batch) == pytest.approx(expected[average], rel=1e-5)
    (other,) = {*expected} - {average}
    assert loss_of(objective, states, batch) != pytest.approx(expected[other], rel=1e-2)


@settings(max_examples=50)
@given(st.integers(0, 10_000), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_any_sentences_have_the_loss_of_the_twin(seed, sizes) -> None:
    stock = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    _, objective = objective_of(stock)
    batch = bracketed_batch([sizes], seed=seed)
    states = random_states(batch, 8, seed)
    each = [sum(one) for one in slow_losses(states.double().numpy(), batch.arrays) if one]
    expected = np.mean(each) if each else 0.0
    assert loss_of(objective, states, batch) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_first_heads_alone_are_read_on_request(bert_config) -> None:
    batch = bracketed_batch(SIZES)
    states = random_states(batch, 16)
    other = states.clone()
    other[..., 8:] += 1
    _, part = objective_of(bert_config, heads=2)
    _, whole = objective_of(bert_config)
    assert loss_of(part, states, batch) == loss_of(part, other, batch)
    assert loss_of(whole, states, batch) != loss_of(whole, other, batch)
    with pytest.raises(SpecError, match=r"tree_reg\.heads is 5, and the encoder has 4"):
        objective_of(bert_config, heads=5)


def test_parallel_and_zero_states_have_finite_gradients() -> None:
    states = torch.ones(1, 3, 4, requires_grad=True)
    (orthogonal(states) + orthogonal(states * 0)).sum().backward()
    assert states.grad.isfinite().all()


def test_a_batch_without_brackets_has_the_gradients_of_one_with(bert_config) -> None:
    batch = bracketed_batch([[2], [1, 1]])
    states = random_states(batch, 16).requires_grad_()
    _, objective = objective_of(bert_config)
    objective(SyntaxEncoding(states), batch).backward()
    assert not states.grad.any()
    assert outcomes_of(batch.arrays)["example_without_brackets"] == 2


def test_sentences_without_brackets_are_counted_by_reason() -> None:
    rng = np.random.default_rng(0)
    crossing, plain = [2, 3, -1, 2], projective_tree(rng, 5)
    arrays = sentence_arrays([[crossing, plain], [crossing], [plain]], rng)
    # The root of the last example is gone, and all below it hangs from nothing.
    arrays["parents"][2] = -1
    batch = with_targets(arrays, [TreeRegOptions()])
    assert outcomes_of(batch.arrays) == {
        "batch_without_masked_piece": 0,
        "sentence_not_projective": 2,
        "sentence_without_its_root": 1,
        "example_without_brackets": 2,
    }
    assert len(set(batch.extra("tree_reg_brackets")[:, 0].tolist())) == 1


@pytest.fixture(scope="module")
def parsed(english) -> dict[str, list[int]]:
    """Head of each word of the sample's examples, counted through both texts; -1 at roots."""
    found = {}
    for item in SAMPLE.read(None, "dev", "en"):
        texts = [part.text for part in getattr(item, "segments", ())]
        if not texts or not all(map(str.strip, texts)):
            continue  # broken on purpose
        heads: list[int] = []
        for text in texts:
            parse, start = english.parse(ParseInput("raw", text), Limits()), len(heads)
            for first, end in pairwise([*parse.sentence_first_word, parse.word_count]):
                own = parse.head[first:end]
                heads += [start + first + head - 1 if head else -1 for head in own]
        found[item.example_id] = heads
    return found


@pytest.mark.parametrize("policy", [name.removesuffix(".v1") for name in POLICIES])
@pytest.mark.parametrize("joint_root", [True, False])
def test_words_and_heads_are_those_of_the_parser(store, parsed, policy, joint_root) -> None:
    spec = AssemblySpec(max_length=None, policy=policy, joint_root=joint_root, matrices=())
    seen = 0
    for arrays in store.dataset("sample", split="dev", lang="en").stream(16, assembly=spec):
        shown = shown_words(arrays)
        assert not batch_brackets(shown).outcomes["sentence_without_its_root"]
        for row, name in enumerate(arrays["example_id"]):
            heads = parsed[name]
            if shown.numbers[row].max() + 1 == len(heads):  # a word may have no piece of its own
                assert shown.heads[row, : len(heads)].tolist() == heads
                seen += 1
    assert seen > 40


SHORT = (
    *("data.dataset=sample", "tokenizer=parsebank-wordpiece-en", "max_length=64", "threads=1"),
    *("batch_size=8", "warmup_steps=0", "max_steps=6", "evaluate_every=3", "log_every=1"),
    *("checkpoint_every=4", "learning_rate=0.003"),
)


@pytest.mark.slow_cases
@pytest.mark.parametrize(
    ("name", "further"),
    [
        ("clm-treereg", ()),
        ("mlm-treereg", ()),
        ("clm-planting", ()),
        ("mlm-planting", ("data.matrices=device",)),
        ("pascal-mlm", ()),
    ],
)
def test_a_run_resumes_to_the_same_losses(store, tmp_path, name, further) -> None:
    recipe = replace(with_settings(RECIPES[name](), [*SHORT, *further]), name="small")
    whole = train(recipe, store, tmp_path / "whole")
    assert all(math.isfinite(loss) for loss in whole.progress.losses)
    stopped = Run(recipe, store, tmp_path / "half", ())
    for batches in stopped.epoch():
        stopped.step(batches)
        if stopped.due(3):
            stopped.evaluate()
        if stopped.progress.step == 4:
            stopped.checkpoint()
            break
    resumed = train(recipe, store, tmp_path / "half", resume=True)
    assert resumed.progress.losses == whole.progress.losses
    assert resumed.progress.evaluations == whole.progress.evaluations
    assert resumed.progress.outcomes == whole.progress.outcomes


def test_a_run_counts_what_truncation_left_of_trees(store, tmp_path) -> None:
    recipe = with_settings(RECIPES["clm-treereg"](), [*SHORT, "max_length=8", "max_steps=2"])
    outcomes = result_of(train(recipe, store, tmp_path))["outcomes"]
    assert outcomes["sentence_without_its_root"] > 0
    assert outcomes["example_without_brackets"] > 0


def test_without_trees_no_loss_is_left(store, tmp_path) -> None:
    settings = [*SHORT, "use_syntax=false", "max_steps=1"]
    run = train(with_settings(RECIPES["clm-treereg"](), settings), store, tmp_path)
    assert not len(run.model.objectives)


def test_a_tree_can_be_learned(bert_config) -> None:
    bert_config.hidden_dropout_prob = bert_config.attention_probs_dropout_prob = 0.0
    batch = bracketed_batch(SIZES)
    model, _ = objective_of(bert_config)
    first, last = learned(model.train(), batch, "tree_reg.v1")
    assert last < 0.7 * first
