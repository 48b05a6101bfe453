"""Structural probes: each score against its slow twin, and what perfect states would give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from featurestore import FeatureStore, open_store
from syntax.errors import SpecError
from syntax.matrices import tree_distance
from tests.trainer.runs import recipes_of
from trainer.loop import train
from trainer.metrics.probes import edges_of, mean_over_lengths, root_of, spanning_edges, spearman
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.models.outputs import SyntaxOutput
from trainer.options import StructuralProbeOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.tasks.structural_probe import StructuralProbe


def slow_spanning(distance) -> set[tuple[int, int]]:
    """Kruskal: the shortest edge that closes no circle, again and again."""
    group = list(range(len(distance)))
    edges = set()
    pairs = [(distance[i][j], i, j) for i in range(len(group)) for j in range(i + 1, len(group))]
    for _, i, j in sorted(pairs):
        if group[i] != group[j]:
            edges.add((i, j))
            group = [group[i] if own == group[j] else own for own in group]
    return edges


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_spanning_trees_equal_their_slow_twin(size, seed) -> None:
    rng = np.random.default_rng(seed)
    distance = rng.normal(size=(size, size))
    distance = distance + distance.T
    assert spanning_edges(distance) == slow_spanning(distance)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_spanning_tree_of_a_tree_is_the_tree(size, seed) -> None:
    """Fails if a weight of 0 is no edge, or pairs count twice."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1, *(int(rng.integers(at)) for at in range(1, size))])
    expected = {(min(at, p), max(at, p)) for at, p in enumerate(parents.tolist()) if p >= 0}
    assert spanning_edges(tree_distance(parents)) == expected


def test_only_kept_words_have_edges_and_roots() -> None:
    distance = tree_distance([-1, 0, 1, 1])
    kept = np.array([True, False, True, True])
    assert edges_of(distance, np.array([False, True, True, True])) == {(1, 2), (1, 3)}
    assert all(1 not in edge for edge in edges_of(distance, kept))
    assert root_of(np.array([3.0, 0.5, 1.0, 2.0]), kept) == 2
    assert root_of(np.array([3.0, 2.0]), np.array([False, False])) == 1


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_rank_correlations_equal_those_of_scipy(size, seed) -> None:
    rng = np.random.default_rng(seed)
    ours, theirs = rng.integers(0, 5, (3, size)).astype(float), rng.integers(0, 5, (3, size))
    found = spearman(ours, theirs)
    for row in range(3):
        constant = len(set(ours[row])) < 2 or len(set(theirs[row])) < 2
        expected = 0.0 if constant else spearmanr(ours[row], theirs[row]).statistic
        assert found[row] == pytest.approx(expected)


def test_every_length_counts_once() -> None:
    values = {4: [0.0], 5: [1.0, 0.0, 0.5], 50: [0.1], 51: [0.0]}
    assert mean_over_lengths(values, 5, 50) == pytest.approx((0.5 + 0.1) / 2)
    assert mean_over_lengths({3: [1.0]}, 5, 50) == 0.0


def slow_scores(predicted, batch, target: str) -> tuple[float, float]:
    """The share of edges or roots, and the correlation, sentence by sentence."""
    hits = total = 0
    by_length: dict[int, list[float]] = {}
    for row, size in enumerate(batch.lengths_B.tolist()):
        numbers = batch.arrays["sentence_ids"][row, :size]
        for one in sorted(set(numbers.tolist())):
            words = [at for at in range(size) if numbers[at] == one]
            kept = [at for at in words if batch.arrays["upos"][row, at] != 13]
            gold = batch.arrays[target][row].astype(float)
            if target == "distance":
                trees = [
                    slow_spanning([[matrix[i][j] for j in kept] for i in kept])
                    for matrix in (predicted[row], gold)
                ]
                hits, total = hits + len(trees[0] & trees[1]), total + len(trees[1])
                rows = [(predicted[row][i][words], gold[i][words]) for i in words]
            else:
                right = min(kept, key=lambda at: predicted[row][at]) == min(
                    words, key=lambda at: gold[at]
                )
                hits, total = hits + right, total + 1
                rows = [(predicted[row][words], gold[words])]
            by_length.setdefault(len(words), []).extend(spearmanr(*pair).statistic for pair in rows)
    lengths = [np.mean(own) for length, own in by_length.items() if 5 <= length <= 50]
    return hits / total, float(np.mean(lengths))


@pytest.fixture
def forest_batch(make_batch):
    """Rows of two sentences each, some words of which are punctuation."""
    batch = make_batch(sizes=(14, 11, 16), seed=4)
    arrays = {**batch.arrays}
    B, L = batch.input_ids_BL.shape
    owner = np.where(arrays["attention_mask"], np.arange(L) >= 6, -1).astype(np.int32)
    arrays["sentence_ids"], arrays["segment_ids"] = owner, np.where(owner < 0, -1, 0)
    rng = np.random.default_rng(2)
    arrays["upos"] = np.where(np.arange(L) % 6 < 2, 5, rng.choice([8, 13], (B, L))).astype(np.uint8)
    return replace(batch, arrays=arrays)


@pytest.mark.parametrize("target", ["distance", "depth"])
def test_scores_equal_their_slow_twin(forest_batch, target) -> None:
    generator = torch.Generator().manual_seed(0)
    shape = forest_batch.distance_BLL.shape[: 3 if target == "distance" else 2]
    predicted = torch.rand(shape, generator=generator)
    if target == "distance":
        predicted = predicted + predicted.transpose(1, 2)
    scorer = StructuralProbe(StructuralProbeOptions(target=target), {}).scorer(None)
    scorer.add(SyntaxOutput(task_loss=torch.tensor(2.0), logits={target: predicted}), forest_batch)
    scores = scorer.scores()
    share, correlation = slow_scores(predicted.numpy(), forest_batch, target)
    found = scores.uuas if target == "distance" else scores.root_accuracy
    assert found == pytest.approx(share) == pytest.approx(scores.headline)
    assert scores.spearman == pytest.approx(correlation)
    assert (scores.examples, scores.loss) == (6, 2.0)
    hits, total = (
        sum(part)
        for part in zip(*(one.shares[scores.metric] for one in scorer.predictions()), strict=True)
    )
    assert hits / total == pytest.approx(share)


def test_a_root_that_is_punctuation_is_not_found() -> None:
    """As in the authors' code, whose predictions are never punctuation while there are words."""
    scorer = StructuralProbe(StructuralProbeOptions(target="depth"), {}).scorer(None)
    depth = np.array([1.0, 0.0, 2.0])
    scorer.take("a", depth, depth, np.array([True, False, True]))
    scorer.take("b", depth, depth, np.array([False, False, False]))
    assert scorer.scores().root_accuracy == 0.5


def model_of(bert_config, target) -> SyntaxModel:
    torch.manual_seed(1)
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": "frozen.v1"},
        task={"name": "structural_probe.v1", "target": target, "rank": 8},
    )
    return SyntaxModel(config)


@pytest.mark.parametrize("target", ["distance", "depth"])
def test_the_loss_is_that_of_the_paper(bert_config, make_batch, target) -> None:
    """Equation 2: the squared norm against the distance itself, not its square."""
    batch = make_batch(sizes=(7, 4))
    states = torch.randn(2, 7, 16).half()
    batch = replace(batch, extras={"word_states": states})
    model = model_of(bert_config, target)
    output = model(batch)
    projection = model.head.probe.projection_GR.detach()
    expected = 0.0
    for row, size in enumerate((7, 4)):
        points = states[row, :size].float() @ projection
        if target == "distance":
            gold = batch.distances()[row, :size, :size].float()
            own = (points[:, None] - points[None]).square().sum(-1)
            expected += float((own - gold).abs().sum()) / size**2 / 2
        else:
            gold = batch.depths()[row, :size].float()
            expected += float((points.square().sum(-1) - gold).abs().sum()) / size / 2
    assert output.loss.item() == pytest.approx(expected, rel=1e-4)
    assert {name for name, _ in model.named_parameters()} == {"head.probe.projection_GR"}


@pytest.fixture
def own_store(tmp_path, sample_rows, append_rows) -> Iterator[FeatureStore]:
    with open_store(tmp_path / "store") as store:
        for split in ("train", "dev"):
            append_rows(store, sample_rows[split][:32], split, "en")
        yield store


TINY = (
    *("data.dataset=sample", "encoder=parsebank-tiny", "weights=random", "threads=1", "layer=0"),
    *("rank=16", "data.dev_split=train"),
)


@pytest.mark.parametrize("name", recipes_of("structural_probe.v1"))
def test_every_recipe_of_the_task_trains(name, own_store, tmp_path) -> None:
    """On pairs of raw texts, of several sentences: no label is read, no treebank is needed."""
    recipe = with_settings(RECIPES[name](), [*TINY, "epochs=6", "learning_rate=0.01"])
    run = train(recipe, own_store, tmp_path / "run")
    first, last = run.progress.evaluations[0].scores, run.progress.evaluations[-1].scores
    assert first["examples"] >= 64, "sentences, two texts and more of each pair"
    assert last["loss"] < first["loss"]
    assert run.progress.best.scores["spearman"] > 0.1


def test_a_metric_of_the_other_probe_is_refused() -> None:
    with pytest.raises(SpecError, match="a probe of depth has root_accuracy and spearman"):
        StructuralProbeOptions(target="depth", metric="uuas")


def test_lengths_that_no_sentence_has_are_refused() -> None:
    with pytest.raises(SpecError, match=r"task\.shortest is 0; it must be at least 1"):
        StructuralProbeOptions(shortest=0)
    with pytest.raises(SpecError, match=r"task\.longest is 5; it must be at least 50"):
        StructuralProbeOptions(shortest=50, longest=5)
    assert StructuralProbeOptions(shortest=7, longest=7).longest == 7


def test_a_model_without_the_matrix_is_refused(own_store, tmp_path) -> None:
    settings = ["task.name=structural_probe.v1", "use_syntax=false", "objectives=[]"]
    with pytest.raises(SpecError, match=r"probe a model that streams it, such as frozen\.v1"):
        train(with_settings(RECIPES["sample"](), settings), own_store, tmp_path / "run")
