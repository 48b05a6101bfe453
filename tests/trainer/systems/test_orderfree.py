"""The order-free encoder against its equations, and what it knows of order and padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from featurestore import WordStates
from syntax.errors import SpecError
from syntax.trees.conllu import parse_conllu, parse_from_sentences
from syntax.trees.parse import Parse
from syntax.trees.ud import UPOS
from tests.trainer.treebank import DOG, DU, EATEN, GO
from trainer.batch import EXTRA_TAGS, SyntaxBatch
from trainer.models.config import SyntaxConfig
from trainer.nn.graph_parser import GraphParser
from trainer.options import DataOptions, OrderFreeOptions
from trainer.systems.gate.attention import ReleasedLayerNorm
from trainer.systems.orderfree.attention import SelfAttention
from trainer.systems.orderfree.encoder import OrderFreeEncoder
from trainer.systems.orderfree.rnn import VariationalBiLstm
from trainer.systems.orderfree.words import sentence_arrays

SMALL = OrderFreeOptions(layers=2, heads=2, head_size=3, feed_forward=7, max_distance=3)
POSITIONS = ("relative", "directed", "none")


def parse_of(conllu: str) -> Parse:
    return parse_from_sentences(list(parse_conllu(conllu)))


def batch_of(*trees: str, root: bool = True, **arrays) -> SyntaxBatch:
    parses = [(parse_of(tree),) for tree in trees]
    found = sentence_arrays({"parses": parses, **arrays}, root)
    return SyntaxBatch.from_numpy(found, extras=[name for name in arrays if name in found])


def encoder_of(**options) -> OrderFreeEncoder:
    torch.manual_seed(5)
    config = SyntaxConfig(
        encoder={"model_type": "bert", "hidden_size": 4, "num_attention_heads": 1},
        model={"name": "orderfree.v1", "layers": 2, "heads": 2, "head_size": 4, **options},
    )
    return OrderFreeEncoder(config).eval()


def layers(position: str, width: int = 6, **options) -> SelfAttention:
    torch.manual_seed(2)
    return SelfAttention(width, replace(SMALL, position=position, **options)).double().eval()


def normed(norm: ReleasedLayerNorm, row: torch.Tensor) -> torch.Tensor:
    spread = ((row - row.mean()) ** 2).sum() / (len(row) - 1)
    return norm.weight * (row - row.mean()) / (spread**0.5 + 1e-6) + norm.bias


def slow_layers(model: SelfAttention, states: torch.Tensor, position: str) -> torch.Tensor:
    """The spec's equations for one sentence, head by head, word by word."""
    rows = list(states)
    for layer in model.layers:
        attention = layer.attention
        size = len(attention.query.weight) // attention.heads
        before = [normed(layer.before_attention, row) for row in rows]
        contexts = []
        for i in range(len(rows)):
            context = []
            for head in range(attention.heads):
                part = slice(head * size, (head + 1) * size)
                q = attention.query(before[i])[part] / size**0.5
                scores, values = [], []
                for j in range(len(rows)):
                    key = attention.key(before[j])[part]
                    value = attention.value(before[j])[part]
                    if position != "none":
                        distance = j - i if position == "directed" else abs(j - i)
                        row = max(-3, min(3, distance)) + 3
                        key = key + attention.keys_RS[row]
                        value = value + attention.values_RS[row]
                    scores.append(q @ key)
                    values.append(value)
                shares = torch.stack(scores).softmax(0)
                context.append(sum(a * v for a, v in zip(shares, values, strict=True)))
            contexts.append(attention.output(torch.cat(context)))
        kept = before if layer.residual == "normed" else rows
        rows = [row + context for row, context in zip(kept, contexts, strict=True)]
        rows = [row + layer.network(normed(layer.before_network, row)) for row in rows]
    return torch.stack([normed(model.last, row) for row in rows])


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("residual", ["states", "normed"])
@torch.no_grad()
def test_layers_equal_their_slow_twin(position, residual) -> None:
    """Each was compared with the encoder of its release, too."""
    model = layers(position, attention_residual=residual)
    for norm in (one for one in model.modules() if isinstance(one, ReleasedLayerNorm)):
        torch.nn.init.uniform_(norm.weight)
    states = torch.randn(1, 7, 6).double()
    found = model(states, torch.ones(1, 7, dtype=torch.bool))
    assert (found[0] - slow_layers(model, states[0], position)).abs().max() < 1e-10


@given(st.integers(1, 12), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_turning_a_sentence_round_turns_its_states_round(words, seed) -> None:
    draw = torch.Generator().manual_seed(seed)
    states = torch.randn(1, words, 6, generator=draw).double()
    seen = torch.ones(1, words, dtype=torch.bool)
    for position in ("relative", "none"):
        model = layers(position)
        with torch.no_grad():
            turned = model(states.flip(1), seen).flip(1)
            assert (turned - model(states, seen)).abs().max() < 1e-10


def test_the_layers_have_as_many_weights_as_the_release() -> None:
    model = SelfAttention(350, OrderFreeOptions())
    assert sum(weight.numel() for weight in model.parameters()) == 6_492_916


@pytest.mark.parametrize("words", ["none", "vectors"])
def test_the_width_is_that_of_the_input(words) -> None:
    encoder = encoder_of(words=words)
    assert encoder.width == {"none": 50, "vectors": 350}[words]
    assert encoder.upos.weight.shape == (len(UPOS) + EXTRA_TAGS, 50)
    assert encoder_of(words=words, position="absolute").width == encoder.width + 50
    assert encoder_of(words=words, context="rnn").width == 600


def test_initial_weights_are_as_small_as_the_release_draws_them() -> None:
    """Fails with torch's embeddings, and where each output of a biaffine form is drawn alone."""
    assert encoder_of().upos.weight.abs().max() <= (3 / 50) ** 0.5
    torch.manual_seed(0)
    parser = GraphParser(50, 512, 128, 37, 0.2)
    arcs, relations = parser.arcs.weight_RIJ, parser.relations.weight_RIJ
    bounds = (6 / (512 * 512 + 512), 6 / (128 * 128 + 40 * 128), 6 / (512 + 1), 6 / (128 + 40))
    parts = (arcs[:, :-1, :-1], relations[:, :-1, :-1], arcs[:, :-1, -1], relations[:, -1, :-1])
    for part, bound in zip(parts, bounds, strict=True):
        assert 0.9 * bound**0.5 < part.abs().max() <= bound**0.5
    assert arcs[0, -1, -1] == 0


@pytest.mark.parametrize("settings", [{}, {"position": "absolute"}, {"context": "rnn"}])
@torch.no_grad()
def test_padding_changes_nothing(settings) -> None:
    encoder = encoder_of(**settings)
    alone = encoder(batch_of(DOG)).last_hidden_state
    beside = encoder(batch_of(DOG, EATEN)).last_hidden_state
    assert (alone - beside[:1, : alone.shape[1]]).abs().max() < 1e-5


@torch.no_grad()
def test_the_release_attends_to_the_padding_of_a_bucket() -> None:
    """A sentence sees the padding of its own bucket, whatever stands beside it."""
    released = encoder_of(padding_mask="as_released")
    alone = released(batch_of(DOG)).last_hidden_state
    beside = released(batch_of(DOG, EATEN * 4)).last_hidden_state
    assert (alone - beside[:1, : alone.shape[1]]).abs().max() < 1e-5
    published = encoder_of()(batch_of(DOG)).last_hidden_state
    assert (alone - published).abs().max() > 1e-3


@torch.no_grad()
def test_buckets_are_wider_than_their_sentences() -> None:
    """With ROOT they are of 9, 10 and 15 words."""
    released, seen = encoder_of(padding_mask="as_released"), []
    released.context.register_forward_pre_hook(lambda _, args: seen.append(args))
    released(batch_of(GO * 8, GO * 9, GO * 14))
    ((states, shown),) = seen
    assert shown.sum(1).tolist() == [10, 15, 20]
    assert states.shape == (3, 20, 50)


def slow_lstm(cell, states, inputs, recurrent):
    """One direction over one sentence, with a mask of the input and one of the states."""
    state = memory = torch.zeros(cell.hidden_size).double()
    found = []
    for row in states:
        gates = (
            cell.weight_ih_l0 @ (row * inputs)
            + cell.bias_ih_l0
            + cell.weight_hh_l0 @ (state * recurrent)
            + cell.bias_hh_l0
        )
        enter, forget, new, leave = gates.chunk(4)
        memory = forget.sigmoid() * memory + enter.sigmoid() * new.tanh()
        state = leave.sigmoid() * memory.tanh()
        found.append(state)
    return torch.stack(found)


@torch.no_grad()
def test_an_lstm_drops_the_same_inputs_and_states_at_every_word() -> None:
    torch.manual_seed(4)
    model = VariationalBiLstm(3, 2, 1, dropout=0.5).double().train()
    states, real = torch.randn(2, 5, 3).double(), torch.ones(2, 5, dtype=torch.bool)
    real[0, 3:] = False
    torch.manual_seed(9)
    found = model(states, real)
    torch.manual_seed(9)
    inputs = torch.nn.functional.dropout(torch.ones(2, 2, 3).double(), 0.5)
    recurrent = torch.nn.functional.dropout(torch.ones(2, 2, 2).double(), 0.5)
    for row, count in enumerate((3, 5)):
        own = states[row, :count]
        ahead = slow_lstm(model.forwards[0], own, inputs[0, row], recurrent[0, row])
        back = slow_lstm(model.backwards[0], own.flip(0), inputs[1, row], recurrent[1, row])
        expected = torch.cat([ahead, back.flip(0)], 1)
        assert (found[row, :count] - expected).abs().max() < 1e-12


@torch.no_grad()
def test_lstms_step_by_step_are_those_of_torch() -> None:
    torch.manual_seed(4)
    model = VariationalBiLstm(3, 4, 3, dropout=1e-15).double()
    states, real = torch.randn(2, 5, 3).double(), torch.ones(2, 5, dtype=torch.bool)
    torch.manual_seed(0)
    assert (model.train()(states, real) - model.eval()(states, real)).abs().max() < 1e-12


@torch.no_grad()
def test_the_memory_of_lstms_is_that_behind_the_last_word() -> None:
    torch.manual_seed(4)
    model = VariationalBiLstm(3, 4, 2, dropout=0.5).double().eval()
    states, real = torch.randn(2, 5, 3).double(), torch.ones(2, 5, dtype=torch.bool)
    real[0, 3:] = False
    found, memory = model.with_memory(states, real)
    assert (found - model(states, real))[real].abs().max() < 1e-12
    for row, count in enumerate((3, 5)):
        own = states[row, :count]
        for ahead, back in zip(model.forwards, model.backwards, strict=True):
            there, (_, last) = ahead(own)
            backward, (_, first) = back(own.flip(0))
            own = torch.cat([there, backward.flip(0)], 1)
        assert (memory[row] - torch.cat([last[0], first[0]])).abs().max() < 1e-12


def test_words_without_a_piece_have_a_position_and_a_tag() -> None:
    arrays = sentence_arrays({"parses": [(parse_of(DU),), (parse_of(GO),)]})
    tags = [UPOS[one] for one in arrays["upos"][0]]
    assert tags == ["_", "VERB", "ADP", "DET", "NOUN"]
    assert arrays["word_layout"].pieces.tolist() == [[-1, 0, 1, 2, 3], [-1, 0, -1, -1, -1]]
    assert arrays["special_tokens_mask"][:, 0].all()
    assert (arrays["parents"] == -1).all()
    assert arrays["attention_mask"].sum(1).tolist() == [5, 2]


def test_without_root_the_first_position_is_a_word() -> None:
    arrays = sentence_arrays({"parses": [(parse_of(DOG),)]}, root=False)
    assert [UPOS[one] for one in arrays["upos"][0]] == ["DET", "NOUN", "VERB"]
    assert arrays["word_layout"].pieces.tolist() == [[0, 1, 2]]
    assert not arrays["special_tokens_mask"].any()


def test_states_of_words_without_pieces_are_those_of_the_word_before() -> None:
    known = np.array([[1, 1], [2, 2], [0, 0], [4, 4]], np.float16)
    example = WordStates(np.array([4], np.int32), known)
    batch = batch_of(DU, word_states=[example])
    assert batch.extra("word_states")[0, :, 0].tolist() == [0, 1, 2, 2, 4]


def read_by(encoder: OrderFreeEncoder, batch: SyntaxBatch) -> torch.Tensor:
    """Inputs of the layers."""
    seen = []
    handle = encoder.context.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    encoder(batch)
    handle.remove()
    return seen[0]


@torch.no_grad()
def test_rare_words_are_unknown_in_training_alone() -> None:
    example = WordStates(np.array([3], np.int32), np.ones((3, 4), np.float16))
    rare = [np.array([True, False, False])]
    batch = batch_of(DOG, word_states=[example], rare_words=rare)
    encoder = encoder_of(words="vectors", vector_width=4, unknown_share=1.0, word_dropout=0.0)
    for training, expected in ((False, [0, 4, 4, 4]), (True, [0, 0, 4, 4])):
        assert read_by(encoder.train(training), batch)[0, :, :4].sum(1).tolist() == expected


@torch.no_grad()
def test_dropout_takes_whole_words_and_no_tags() -> None:
    example = WordStates(np.array([6], np.int32), np.ones((6, 4), np.float16))
    batch = batch_of(EATEN, word_states=[example])
    encoder = encoder_of(words="states", word_dropout=0.5)
    plain = read_by(encoder, batch)
    torch.manual_seed(1)
    dropped = read_by(encoder.train(), batch)
    assert torch.equal(plain[..., 4:], dropped[..., 4:])
    assert set(dropped[0, 1:, :4].sum(1).tolist()) == {0.0, 8.0}
    encoder = encoder_of(words="states", word_dropout=0, tag_dropout=0.5)
    plain, dropped = (read_by(encoder.train(training), batch) for training in (False, True))
    ratios = (dropped / plain)[0]
    assert torch.equal(ratios[1:, :4], torch.ones(len(ratios) - 1, 4)), "words stay"
    assert {*map(tuple, ratios[:, 4:].tolist())} == {(0.0,) * 50, (2.0,) * 50}, "whole tags"


def test_data_that_are_no_whole_examples_are_refused() -> None:
    data = DataOptions(dataset="ud", joint_root=False)
    OrderFreeOptions().check_data(data)
    with pytest.raises(SpecError, match="as they are"):
        OrderFreeOptions().check_data(replace(data, level="sentence"))
    with pytest.raises(SpecError, match="names no file"):
        OrderFreeOptions(words="vectors").check_data(data)
