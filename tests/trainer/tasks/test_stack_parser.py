"""The stack-pointer decoder: its loss step by step, its search against all trees, a short run."""

from __future__ import annotations

import copy
from itertools import product

import numpy as np
import pytest
import torch
from transformers import AutoModel

from featurestore import open_store
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.pointers import pointer_steps
from tests.syntax.test_mst import is_tree
from tests.trainer.treebank import DU, EATEN, GO, NAME, append_treebank
from trainer.loop import train
from trainer.nn.graph_parser import SYMBOLS
from trainer.nn.stack_parser import StackParser, Steps
from trainer.options import StackParserOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.systems.orderfree.words import sentence_arrays
from trainer.tasks import TASKS

HEADS = ([2, 0, 2], [3, 4, 0, 3])
"""The second has crossing arcs."""


def parser(dropout: float = 0.0) -> StackParser:
    torch.manual_seed(0)
    return StackParser(6, 5, 4, 5, 7, 8, dropout, dropout, dropout)


def states(rows: int = 2, size: int = 5) -> torch.Tensor:
    return torch.randn(rows, size, 6, generator=torch.Generator().manual_seed(1))


def mean_of(model: StackParser, own: torch.Tensor) -> torch.Tensor:
    return model.mean(own[None], torch.ones(1, len(own), dtype=torch.bool))[0]


def steps_of(*trees: list[int]) -> Steps:
    count = 2 * max(map(len, trees)) + 1
    found = [torch.zeros(len(trees), count, dtype=torch.int64) for _ in range(4)]
    found[2][:] = found[3][:] = -100
    for row, heads in enumerate(trees):
        tops, targets = map(torch.from_numpy, pointer_steps(heads))
        size = len(tops)
        above = torch.tensor([0, *heads])
        found[0][row, :size], found[1][row, :size] = tops, above[tops]
        found[2][row, :size] = targets
        found[3][row, :size] = torch.where(targets == tops, 0, targets % 5 + SYMBOLS)
    return Steps(*found)


def slow_steps(model: StackParser, own: torch.Tensor, steps: Steps, row: int, size: int):
    """The log-probabilities of each right step of one sentence, in float64, one by one."""
    elu, weights = torch.nn.functional.elu, dict(model.named_parameters())
    one = torch.ones(1).double()
    shares = torch.stack([model.weigh(state)[0] for state in own]).softmax(0)
    memory = model.start(sum(a * state for a, state in zip(shares, own, strict=True)))
    state = memory.tanh()
    for step in range(size):
        top, above = int(steps.tops[row, step]), int(steps.above[row, step])
        state, memory = model.cell(elu(model.source(own[top] + own[above])), (state, memory))
        left = torch.cat([elu(model.arc_top(state)), one])
        scores = torch.stack(
            [
                left @ weights["arcs.weight_RIJ"][0] @ torch.cat([elu(model.arc_target(x)), one])
                for x in own
            ]
        ).log_softmax(0)
        target, relation = int(steps.targets[row, step]), int(steps.relations[row, step])
        left = torch.cat([elu(model.relation_top(state)), one])
        right = torch.cat([elu(model.relation_target(own[target])), one])
        types = torch.stack([left @ of @ right for of in weights["relations.weight_RIJ"]])
        yield target == top, float(scores[target]), float(types.log_softmax(0)[relation])


@torch.no_grad()
def test_the_loss_is_four_means_over_steps() -> None:
    steps, real = steps_of(*HEADS), torch.ones(2, 5, dtype=torch.bool)
    real[0, 4:] = False
    found = parser().loss(states(), parser().mean(states(), real), real, steps)
    model = copy.deepcopy(parser()).double()
    each = []
    for row, heads in enumerate(HEADS):
        own = states().double()[row, : len(heads) + 1]
        each += slow_steps(model, own, steps, row, 2 * len(heads) + 1)
    leaves = [step for step in each if step[0]]
    others = [step for step in each if not step[0]]
    assert (len(leaves), len(others)) == (9, 7)
    expected = -sum(np.mean([s[part] for s in own]) for own in (leaves, others) for part in (1, 2))
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_mixed_precision_stays_near_full_precision(precision) -> None:
    steps, real = steps_of(*HEADS), torch.ones(2, 5, dtype=torch.bool)
    real[0, 4:] = False
    model, own = parser(), states()

    def found() -> tuple[float, list[int]]:
        summary_BD = model.mean(own, real)
        heads, _ = model.parse(own[1], summary_BD[1], beam=5, ordered=True)
        return float(model.loss(own, summary_BD, real, steps)), heads

    loss, heads = found()
    with torch.autocast("cpu", dtype=precision):
        assert model.arcs(own[..., :5], own[..., :5]).dtype == torch.float32
        mixed = found()
    assert mixed == (pytest.approx(loss, rel=0.01), heads)
    assert mixed[0] != loss


@torch.no_grad()
def test_masks_are_the_same_at_all_steps() -> None:
    model, seen = parser(0.5).train(), []
    model.cell.register_forward_pre_hook(
        lambda _, given: seen.append(torch.cat([given[0][0], given[1][0][0]]) == 0)
    )
    model.loss(states(1, 4), torch.ones(1, 6), torch.ones(1, 4, dtype=bool), steps_of([2, 0, 2]))
    assert 0 < int(seen[0].sum()) < len(seen[0])
    assert len(seen) == 7
    assert all(torch.equal(mask, seen[0]) for mask in seen)


def log_probability(model: StackParser, own: torch.Tensor, heads: list[int]) -> float:
    """Of a tree with its best relations, by the slow steps."""
    steps, each = steps_of(heads), []
    for relation in range(5):
        changed = torch.where(steps.relations > 0, relation + SYMBOLS, steps.relations)
        told = steps._replace(relations=changed)
        each.append([*slow_steps(model, own, told, 0, 2 * len(heads) + 1)])
    return sum(
        at[0][1] + (0.0 if at[0][0] else max(one[2] for one in at))
        for at in zip(*each, strict=True)
    )


@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_a_wide_joint_beam_finds_the_likeliest_tree(seed) -> None:
    model = parser().double()
    own = torch.randn(4, 6, generator=torch.Generator().manual_seed(seed)).double() * 3
    trees = [list(heads) for heads in product(range(4), repeat=3) if is_tree(heads, False)]
    likely = {tuple(heads): log_probability(model, own, heads) for heads in trees}
    heads, relations = model.parse(own, mean_of(model, own), 10_000, True, "joint")
    assert tuple(heads) == max(likely, key=likely.__getitem__)
    assert all(0 <= relation < 5 for relation in relations)


def replayed(model: StackParser, own: torch.Tensor, targets: list[int]):
    """The stack, the heads and the LSTM's state after some steps, taken one by one."""
    stack, heads, memory = [0], {0: 0}, model.start(mean_of(model, own))
    state = memory.tanh()
    for target in [*targets, None]:
        inputs = torch.nn.functional.elu(model.source(own[stack[-1]] + own[heads[stack[-1]]]))
        state, memory = model.cell(inputs, (state, memory))
        if target == stack[-1]:
            stack.pop()
        elif target is not None:
            heads[target] = stack[-1]
            stack.append(target)
    return stack, heads, state


def slow_search(
    model: StackParser, own: torch.Tensor, beam: int, ordered: bool = True
) -> tuple[list[int], list[int]]:
    """The released search, every hypothesis from its first step again at each step."""
    elu, n = torch.nn.functional.elu, len(own)
    arc_target = elu(model.arc_target(own))[None]
    kept: list[tuple[float, list[int], list[int]]] = [(0.0, [], [])]  # score, targets, relations
    for step in range(2 * n - 1):
        moves = []
        for score, targets, relations in kept:
            stack, heads, state = replayed(model, own, targets)
            arcs = model.arcs(elu(model.arc_top(state))[None, None], arc_target)
            chances = arcs[0, 0, 0].log_softmax(0).tolist()
            latest = max((at for at, head in heads.items() if at and head == stack[-1]), default=0)
            pops = [stack[-1]] if stack[-1] or step == 2 * n - 2 else []
            children = [to for to in range(n) if to not in heads and to > ordered * latest]
            moves += [
                (score + chances[to], [*targets, to], relations, state) for to in [*pops, *children]
            ]
        if not moves:
            return slow_search(model, own, beam, ordered=False)
        moves.sort(key=lambda move: -move[0])
        kept = []
        for score, targets, relations, state in moves[:beam]:
            pair = (elu(model.relation_top(state)), elu(model.relation_target(own[targets[-1]])))
            types = model.relations.of_pairs(*(one[None, None] for one in pair))[0, 0]
            best = int(types[SYMBOLS:].argmax())
            score += float(types.log_softmax(0).max())
            kept.append((score, targets, [*relations, best]))
    _, targets, relations = kept[0]
    _, heads, _ = replayed(model, own, targets[:-1])
    given = dict(zip(targets[::-1], relations[::-1], strict=True))  # a word is first pointed to
    return [heads[at] for at in range(1, n)], [given[at] for at in range(1, n)]


@pytest.mark.parametrize("beam", [1, 2, 5])
@torch.no_grad()
def test_the_published_search_equals_its_slow_twin(beam) -> None:
    """Both were compared with the release's code on 360 searches."""
    model, others = parser().double(), 0
    for seed in range(6):
        own = torch.randn(6, 6, generator=torch.Generator().manual_seed(seed)).double() * 4
        found = model.parse(own, mean_of(model, own), beam, ordered=True)
        assert found == slow_search(model, own, beam)
        others += found != model.parse(own, mean_of(model, own), beam, True, "joint")
    assert others


@pytest.mark.parametrize("search", ["arcs", "joint"])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("beam", [1, 5])
@torch.no_grad()
def test_every_answer_is_a_tree(beam, ordered, search) -> None:
    model = parser()
    for seed in range(8):
        own = torch.randn(9, 6, generator=torch.Generator().manual_seed(seed)) * 4
        heads, _ = model.parse(own, mean_of(model, own), beam, ordered, search)
        assert is_tree(tuple(heads), False)


def test_targets_are_the_steps_of_the_trees() -> None:
    parses = [(parse_from_sentences(list(parse_conllu(text))),) for text in (EATEN, DU, GO)]
    gold = np.array([True, True, False])
    arrays = sentence_arrays({"parses": parses, "is_gold": gold})
    names = ("aux", "case", "det", "nsubj", "obl", "punct", "root")
    found = TASKS["stack_parser.v1"].task(StackParserOptions(relations=names), {}).targets(arrays)
    assert found["stack_targets"][1, :9].tolist() == [1, 4, 2, 2, 3, 3, 4, 1, 0]
    assert found["stack_tops"][1, :9].tolist() == [0, 1, 4, 2, 4, 3, 4, 1, 0]
    assert found["stack_above"][1, :9].tolist() == [0, 0, 1, 4, 1, 4, 1, 0, 0]
    shown = [names.index(one) + SYMBOLS for one in ("root", "obl", "case", "det")]
    assert found["stack_relations"][1, [0, 1, 2, 4]].tolist() == shown
    assert (found["stack_relations"][1, [3, 5, 6, 7, 8]] == 0).all()
    assert (found["stack_targets"][2] == -100).all()


@pytest.mark.slow
@pytest.mark.parametrize("context", ["selfatt", "rnn"])
def test_a_run_learns_and_gives_trees(tmp_path, tokenizer, context) -> None:
    made = RECIPES[f"orderfree-{context}-stack-delex"]()
    sizes = ("layers=1", "upos_width=16", "arc=16", "task.relation=8", "decoder_width=16")
    sizes = (*sizes, "rnn_layers=1", "rnn_width=8", "parser_dropout=0.1", "tag_dropout=0.1")
    steps = ("max_steps=60", "evaluate_every=60", "checkpoint_every=null", "threads=1")
    rates = ("learning_rate=0.01", "warmup_epochs=0", "batch_size=3", f"data.dataset={NAME}")
    with open_store(str(tmp_path / "store")) as store:
        for split in ("train", "dev"):
            append_treebank(store, tokenizer, split)
        run = train(with_settings(made, [*sizes, *steps, *rates]), store, tmp_path / "run")
    losses = run.progress.losses
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    assert run.progress.evaluations[-1].scores["words"] == 25
    head = run.accelerator.unwrap_model(run.model).head
    assert (head.parser.weigh is None) == (context == "rnn")
    assert head.beam == 1
    loaded = AutoModel.from_pretrained(tmp_path / "run" / "model")
    assert loaded.head.beam == 5
