"""The parts of parsers and taggers, each against a slow twin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from syntax.errors import SpecError
from syntax.trees.mst import sentence_heads
from tests.syntax.test_mst import best_total, total
from trainer.metrics.entities import entities
from trainer.nn.biaffine import Biaffine
from trainer.nn.context import BiLstm, HighwayLayer, HighwayLstm, SharedDropout, WordTransformer
from trainer.nn.crf import (
    ConditionalRandomField,
    allowed_transitions,
    bioul_names,
    to_bioul,
)
from trainer.nn.parser import IMPOSSIBLE, BiaffineParser, Words, parser_loss
from trainer.nn.tagger import Tokens, TokenTagger
from trainer.nn.words import CharLstm, ScalarMix, WordStates
from trainer.options.parser import ParserOptions, TaggerOptions
from trainer.systems.orderfree.rnn import VariationalBiLstm

BIO = ("O", "B-X", "I-X", "B-Y", "I-Y")
SMALL = {"arc": 6, "relation": 4, "relations": ("a", "b", "c:d"), "dropout": 0.0}


@pytest.mark.parametrize("linear", [True, False])
def test_biaffine_scores_are_sums_over_pairs_of_features(linear) -> None:
    torch.manual_seed(1)
    part = Biaffine(3, 4, 2, linear=linear).double()
    if part.bias_R is not None:
        nn.init.normal_(part.bias_R)
    left, right = torch.randn(1, 2, 3).double(), torch.randn(1, 5, 4).double()
    scores = part(left, right)
    for r, w, h in product(range(2), range(2), range(5)):
        x = [*left[0, w].tolist(), *([1.0] if linear else [])]
        y = [*right[0, h].tolist(), *([1.0] if linear else [])]
        weight = part.weight_RIJ[r].tolist()
        expected = sum(x[i] * weight[i][j] * y[j] for i, j in product(range(len(x)), range(len(y))))
        expected += 0.0 if part.bias_R is None else float(part.bias_R[r].detach())
        assert float(scores[0, r, w, h].detach()) == pytest.approx(expected)
    pairs = part.of_pairs(left, right[:, :2])
    assert torch.allclose(pairs[0, 1], scores[0, :, 1, 1])


def test_a_new_mix_is_the_mean_of_the_layers_and_learns_their_weights() -> None:
    mix, layers = ScalarMix(3), [torch.full((1, 2, 2), float(k)) for k in (1, 2, 6)]
    assert torch.allclose(mix(layers), torch.full((1, 2, 2), 3.0))
    with torch.no_grad():
        mix.weights_K.copy_(torch.tensor([0.0, 50.0, 0.0]))
        mix.gamma.fill_(2.0)
    assert torch.allclose(mix(layers), torch.full((1, 2, 2), 4.0))


@pytest.mark.parametrize("pieces", ["first", "mean"])
def test_words_have_the_states_of_their_pieces(pieces) -> None:
    """[CLS] a a b [SEP], and a third word without a piece, which has b's state."""
    states = torch.arange(10.0).reshape(1, 5, 2)
    part = WordStates(2, pieces)
    found = part(states, torch.tensor([[-1, 0, 0, 1, -1]]), torch.tensor([[0, 1, 1]]))
    a = states[0, 1] if pieces == "first" else states[0, 1:3].mean(0)
    assert torch.allclose(found[0, 0], a)
    assert torch.allclose(found[0, 1], states[0, 3])
    assert torch.allclose(found[0, 2], states[0, 3] + part.pieceless_D)
    assert (found[0, 1] != found[0, 2]).all()


@torch.no_grad()
def test_characters_tell_the_last_states_of_both_directions() -> None:
    torch.manual_seed(0)
    part = CharLstm(3, 6)
    words = [[[2, 3, 4], [], [1]], [[4], [3, 3, 2, 2], [2, 1]]]
    chars = torch.zeros(2, 3, 5, dtype=torch.int64)
    for row, word in product(range(2), range(3)):
        own = words[row][word]
        chars[row, word, : len(own)] = torch.tensor(own, dtype=torch.int64)
    found = part(chars)
    for row, word in product(range(2), range(3)):
        own, expected = torch.tensor(words[row][word]), torch.zeros(6)
        if len(own):
            states, _ = part.lstm(part.embed(own))
            expected = torch.cat([states[-1, :3], states[0, 3:]])
        assert torch.allclose(found[row, word], expected, atol=1e-6)
    assert not part(torch.zeros_like(chars)).any()


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("part", ["characters", "lstm", "highway", "variational", "memory"])
def test_recurrent_parts_compute_in_full_precision(part, learns) -> None:
    """Not every processor has an LSTM of bf16."""
    torch.manual_seed(0)
    states, real = torch.randn(2, 3, 5).bfloat16(), torch.tensor([[True] * 3, [True, False, False]])
    variational = VariationalBiLstm(5, 4, 2, 0.5)
    found: Callable[[], Tensor | tuple[Tensor, Tensor]] = {
        "characters": partial(
            CharLstm(5, 8), torch.tensor([[[2, 3, 2], [0, 0, 0]], [[4, 5, 6], [2, 2, 2]]])
        ),
        "lstm": partial(BiLstm(5, 4, 2, 0.5), states, real),
        "highway": partial(HighwayLstm(5, 4, 2, 0.5, 0.5), states, real),
        "variational": partial(variational, states, real),
        "memory": partial(variational.with_memory, states, real),
    }[part]
    each = []
    with torch.set_grad_enabled(learns):
        for mixed in (False, True):
            torch.manual_seed(1)
            with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
                each.append(found())
    torch.testing.assert_close(each[1], each[0], rtol=0, atol=0)


def test_characters_need_an_even_width() -> None:
    with pytest.raises(SpecError, match="char_width is 5"):
        ParserOptions(**SMALL, char_width=5)


def test_the_lstm_is_that_of_torch() -> None:
    torch.manual_seed(2)
    own = BiLstm(5, 4, 2, 0.0).eval()
    whole = nn.LSTM(5, 4, num_layers=2, bidirectional=True, batch_first=True)
    for layer, (ahead, back) in enumerate(zip(own.forwards, own.backwards, strict=True)):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(whole, f"{name}_l{layer}").data = getattr(ahead, f"{name}_l0").data
            getattr(whole, f"{name}_l{layer}_reverse").data = getattr(back, f"{name}_l0").data
    states, real = torch.randn(2, 6, 5), torch.ones(2, 6, dtype=torch.bool)
    assert torch.allclose(own(states, real), whole(states)[0], atol=1e-6)


def slow_highway(layer: HighwayLayer, inputs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """One sequence through one direction, gate by gate; *shape* (W, hidden)."""

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    W, b = (part.detach().numpy() for part in (layer.of_input.weight, layer.of_input.bias))
    U, d = (part.detach().numpy() for part in (layer.of_state.weight, layer.of_state.bias))
    size = layer.hidden
    state, cell, found = np.zeros(size), np.zeros(size), []
    for x in inputs:
        rows = [slice(k * size, (k + 1) * size) for k in range(6)]
        i, f, m, o, r = (W[k] @ x + b[k] + U[k] @ state + d[k] for k in rows[:5])
        cell = sigmoid(i) * np.tanh(m) + sigmoid(f) * cell
        through = W[rows[5]] @ x + b[rows[5]]
        state = sigmoid(r) * sigmoid(o) * np.tanh(cell) + (1 - sigmoid(r)) * through
        state = state * mask
        found.append(state)
    return np.array(found)


def test_the_highway_lstm_is_its_equations_and_padding_changes_nothing() -> None:
    torch.manual_seed(2)
    own = HighwayLstm(5, 4, 2, 0.3, 0.3).double().eval()
    states, real = torch.randn(2, 6, 5).double(), torch.ones(2, 6, dtype=torch.bool)
    real[1, 3:] = False
    states[1, 3:] = 100.0
    found = own(states, real).detach().numpy()
    assert found.shape == (2, 6, own.width)
    for row, count in enumerate((6, 3)):
        expected = states[row, :count].numpy()
        for ahead, back in zip(own.forwards, own.backwards, strict=True):
            behind = slow_highway(back, expected[::-1], np.ones(4))[::-1]
            expected = np.concatenate([slow_highway(ahead, expected, np.ones(4)), behind], 1)
        assert np.allclose(found[row, :count], expected, rtol=1e-12)


def test_recurrent_dropout_drops_the_same_states_of_all_words_and_of_the_next_word() -> None:
    torch.manual_seed(3)
    layer = HighwayLayer(5, 40, 0.5).double().train()
    states = torch.randn(2, 6, 5).double()
    found = layer(states).detach()
    dropped = found == 0
    assert 0 < int(dropped[0, 0].sum()) < 40
    assert (dropped == dropped[:, :1]).all()
    assert (dropped[0] != dropped[1]).any()
    for row in range(2):
        mask = np.where(dropped[row, 0], 0.0, 2.0)
        assert np.allclose(found[row], slow_highway(layer, states[row].numpy(), mask), rtol=1e-12)


def test_a_new_highway_lstm_has_orthogonal_gates_that_keep_their_cells() -> None:
    layer = HighwayLayer(7, 4, 0.0)
    for gate in layer.of_state.weight.split(4):
        assert torch.allclose(gate @ gate.T, torch.eye(4), atol=1e-5)
    assert layer.of_state.bias.split(4)[1].tolist() == [1] * 4
    assert float(layer.of_state.bias.detach().abs().sum()) == 4


def test_shared_dropout_drops_the_same_features_of_all_words() -> None:
    torch.manual_seed(4)
    part, states = SharedDropout(0.5), torch.ones(3, 5, 30)
    found = part.train()(states)
    assert (found == found[:, :1]).all()
    assert (found[0] != found[1]).any()
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(part.eval()(states), states)


@torch.no_grad()
def test_positions_of_words_are_sines_then_cosines() -> None:
    """Feature by feature, by AllenNLP's `add_positional_features`, whose rates end at 1e-4."""
    part = WordTransformer(6, 8, 1, 2, 0.0)
    seen: list[Tensor] = []
    part.layers[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    part(torch.zeros(1, 4, 6), torch.ones(1, 4, dtype=torch.bool))
    rates = [1.0, 1e-2, 1e-4]
    for place in range(4):
        expected = [f(place * rate) for f in (math.sin, math.cos) for rate in rates]
        assert seen[0][0, place].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_transformer_gives_a_sentence_without_words_finite_states() -> None:
    part, real = WordTransformer(16, 32, 2, 4, 0.0).eval(), torch.ones(2, 5, dtype=torch.bool)
    real[1] = False
    assert part(torch.randn(2, 5, 16), real).isfinite().all()


def words(sentences: list[list[int]], positions: int) -> Words:
    """One piece a word, from position 0 on."""
    W = max(map(len, sentences))
    pieces = torch.full((len(sentences), positions), -1)
    numbers = torch.full((len(sentences), W), -1)
    for row, own in enumerate(sentences):
        pieces[row, : len(own)] = torch.arange(len(own))
        numbers[row, : len(own)] = torch.tensor(own)
    sources = torch.arange(W).expand(len(sentences), W)
    return Words(pieces, sources, numbers, torch.zeros(len(sentences), W, dtype=torch.long))


def test_only_words_of_the_sentence_and_root_are_heads() -> None:
    parser = BiaffineParser(ParserOptions(**SMALL, context="none"), 4, 1).eval()
    given = words([[0, 0, 1], [0]], 3)
    arcs = parser(parser.states([torch.randn(2, 3, 4)], given), given.sentences)
    possible = arcs[0] > IMPOSSIBLE / 2
    assert possible.tolist() == [
        [True, False, True, False],
        [True, True, False, False],
        [True, False, False, False],
    ]
    assert (arcs[1, 0] > IMPOSSIBLE / 2).tolist() == [True, False, False, False]


@pytest.mark.parametrize("context", ["none", "lstm", "highway_lstm", "transformer"])
def test_scores_do_not_depend_on_what_else_is_in_the_batch(context) -> None:
    torch.manual_seed(4)
    options = ParserOptions(**SMALL, context=context, context_width=8, context_heads=2)
    parser = BiaffineParser(options, 4, 1).eval()
    states, both, alone = torch.randn(2, 4, 4), words([[0] * 4, [0] * 2], 4), words([[0] * 2], 2)
    arcs = parser(parser.states([states], both), both.sentences)
    single = parser(parser.states([states[1:, :2]], alone), alone.sentences)
    assert torch.allclose(arcs[1, :2, :3], single[0], atol=1e-5)


def test_the_loss_is_the_likelihood_of_heads_and_relations() -> None:
    torch.manual_seed(5)
    parser = BiaffineParser(ParserOptions(**SMALL), 4, 1).eval()
    given = words([[0, 0, 0], [0]], 3)
    states = parser.states([torch.randn(2, 3, 4)], given).detach()
    arcs = parser(states, given.sentences)
    heads = torch.tensor([[2, 0, 2], [0, -100, -100]])
    relations = torch.tensor([[0, 1, -100], [2, -100, -100]])
    total = 0.0
    for row, word in ((0, 0), (0, 1), (0, 2), (1, 0)):
        head = int(heads[row, word])
        total -= float(arcs[row, word].detach().log_softmax(0)[head])
        scores = parser.relate(states, heads.clamp(min=0)).detach()[row, word].log_softmax(0)
        if relations[row, word] >= 0:
            total -= float(scores[relations[row, word]])
    real = given.sentences >= 0
    loss = parser_loss(parser, states, arcs, heads, relations, real)
    assert float(loss.detach()) == pytest.approx(total / 4, rel=1e-5)
    nothing = torch.full_like(heads, -100)
    empty = parser_loss(parser, states, arcs, nothing, nothing, real)
    assert float(empty.detach()) == 0.0


def test_the_sum_of_probabilities_chooses_another_tree_than_their_product() -> None:
    """Against all trees: several roots, and each head with its best relation."""
    torch.manual_seed(5)
    other = 0
    for _ in range(20):
        parser = BiaffineParser(ParserOptions(**SMALL), 4, 1).eval()
        with torch.no_grad():
            for weight in parser.parameters():
                nn.init.normal_(weight)
        given = words([[0] * 4], 4)
        states = parser.states([torch.randn(1, 4, 4)], given).detach()
        arcs = parser(states, given.sentences).detach()
        found = parser.probabilities(states, arcs).detach()[0].double().numpy()
        for word, head in product(range(4), range(5)):
            own = parser.relate(states, torch.full((1, 4), head)).detach()[0, word].softmax(0)
            expected = arcs[0, word].softmax(0)[head] * own.max()
            assert found[word, head] == pytest.approx(float(expected), abs=1e-6)
        best = sentence_heads(found, np.zeros(4), single_root=False)
        assert total(found, best) == pytest.approx(best_total(found, single_root=False))
        other += best.tolist() != sentence_heads(arcs[0].numpy(), np.zeros(4)).tolist()
    assert other > 5


def test_a_parser_without_relations_is_refused() -> None:
    with pytest.raises(SpecError, match=r"parser\.relations is empty"):
        BiaffineParser(ParserOptions(), 4, 1)


def slow_crf(crf: ConditionalRandomField, emissions: np.ndarray) -> dict[tuple[int, ...], float]:
    """The score of every sequence of tags."""
    start, steps, end = (
        weight.detach().double().numpy() for weight in (crf.start_C, crf.transitions_CC, crf.end_C)
    )
    T, C = emissions.shape
    return {
        tags: start[tags[0]]
        + sum(emissions[t, tag] for t, tag in enumerate(tags))
        + sum(steps[before, behind] for before, behind in pairwise(tags))
        + end[tags[-1]]
        for tags in product(range(C), repeat=T)
    }


def is_allowed(names: tuple[str, ...], tags: tuple[int, ...]) -> bool:
    allowed, end = allowed_transitions(names), len(names)
    path = [end, *tags, end]
    return all(allowed[before][behind] for before, behind in pairwise(path))


@pytest.mark.parametrize("names", [BIO[:3], bioul_names(BIO[:3])])
@pytest.mark.parametrize("ends", [True, False])
def test_a_crf_equals_the_sum_over_all_sequences(names, ends) -> None:
    torch.manual_seed(6)
    crf = ConditionalRandomField(names, ends)
    assert len(list(crf.parameters())) == (3 if ends else 1)
    for weight in crf.parameters():
        nn.init.normal_(weight)
    lengths, T, C = [4, 2, 1], 4, len(names)
    emissions = torch.randn(3, T, C)
    real = torch.arange(T) < torch.tensor(lengths)[:, None]
    tags = torch.randint(0, C, (3, T))
    tags[~real] = -100
    losses, best = crf(emissions, tags, real), crf.best(emissions, real)
    for row, length in enumerate(lengths):
        every = slow_crf(crf, emissions[row, :length].double().numpy())
        gold = every[tuple(tags[row, :length].tolist())]
        total = float(np.logaddexp.reduce(list(every.values())))
        assert float(losses[row].detach()) == pytest.approx(total - gold, abs=1e-4)
        legal = {own: score for own, score in every.items() if is_allowed(names, own)}
        assert tuple(best[row, :length].tolist()) == max(legal, key=legal.get)
        assert best[row, length:].tolist() == [0] * (T - length)


tag_lists = st.lists(st.sampled_from(["O", "X", "Y", "-"]), max_size=8)


@given(tag_lists)
@settings(max_examples=100, deadline=None)
def test_bioul_spells_the_same_entities_and_is_allowed(kinds) -> None:
    bio = []
    for kind in kinds:  # "-" goes on with the mention before
        before = bio[-1] if bio else "O"
        bio.append(
            kind
            if kind == "O"
            else f"B-{kind}"
            if kind != "-"
            else before
            if before == "O"
            else f"I-{before[2:]}"
        )
    bioul, names = to_bioul(bio), bioul_names(BIO)
    back = [
        {"L": "I", "U": "B"}.get(tag[0], tag[0]) + tag[1:] if tag != "O" else tag for tag in bioul
    ]
    assert back == bio
    assert entities(back) == entities(bio)
    assert is_allowed(names, tuple(map(names.index, bioul)))
    assert is_allowed(BIO, tuple(map(BIO.index, bio)))


@pytest.mark.parametrize(
    ("names", "tags"),
    [
        *((BIO, tags) for tags in ("O I-X", "B-X I-Y", "I-X", "B-Y I-Y I-X")),
        *((bioul_names(BIO), tags) for tags in ("B-X", "B-X O", "L-X", "U-X L-X", "B-X L-Y")),
    ],
)
def test_no_mention_goes_on_with_nothing_or_lacks_an_end(names, tags) -> None:
    assert not is_allowed(names, tuple(map(names.index, tags.split())))


@pytest.mark.parametrize("crf", ["none", "bio", "bioul"])
def test_a_tagger_learns_mentions_by_heart(crf) -> None:
    torch.manual_seed(7)
    options = TaggerOptions(states="mix", lstm_layers=1, lstm_width=8, lstm_dropout=0.0, crf=crf)
    tagger = TokenTagger(options, 6, 2, BIO, 0.0)
    layers = (torch.randn(2, 6, 6), torch.randn(2, 6, 6))
    pieces = torch.tensor([[-1, 0, 0, 1, 2, -1], [-1, 0, 1, -1, -1, -1]])
    places = torch.tensor([[1, 3, 4], [1, 2, -1]])
    bio = [["B-X", "I-X", "O"], ["B-Y", "B-Y"]]
    names = bioul_names(BIO) if crf == "bioul" else BIO
    spelled = [to_bioul(own) if crf == "bioul" else own for own in bio]
    tags = torch.full((2, 3), -100)
    for row, own in enumerate(spelled):
        tags[row, : len(own)] = torch.tensor([names.index(tag) for tag in own])
    tokens = Tokens(pieces, places, tags)
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        _, loss = tagger(layers, tokens)
        loss.backward()
        optimizer.step()
    summed = TokenTagger(replace(options, crf_loss="sum"), 6, 2, BIO, 0.0)
    summed.load_state_dict(tagger.state_dict())
    logits, last = tagger(layers, tokens)
    sequences = 1 if crf == "none" else 2
    whole = summed(layers, tokens)[1]
    assert whole.item() == pytest.approx(sequences * last.item(), rel=1e-5)
    found = logits.argmax(-1)
    assert [BIO[tag] for tag in found[0, [1, 3, 4]].tolist()] == bio[0]
    assert [BIO[tag] for tag in found[1, [1, 2]].tolist()] == bio[1]
    assert float(last.detach()) < 0.1
    untagged = tagger(layers, tokens._replace(tags=torch.full_like(tags, -100)))
    assert float(untagged[1].detach()) == 0.0
