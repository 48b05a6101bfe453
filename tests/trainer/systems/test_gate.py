"""GATE against its equations, spelt out; its baselines; the faults of its release."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from syntax.errors import SpecError
from syntax.matrices import distance_weights
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.options import DataOptions, GateOptions
from trainer.systems.gate.attention import (
    DistanceAttention,
    DistanceLayer,
    RelativePositions,
    ReleasedLayerNorm,
    head_weights,
    sequence_positions,
    structure_positions,
)
from trainer.systems.gate.encoder import GateEncoder
from trainer.systems.gate.neighbours import nearest

DELTAS = (1, 2)
NAMES = {
    "relation": ["no_relation", "linked", "other"],
    "subject": ["NOUN", "VERB"],
    "object": ["NOUN", "VERB"],
    "ner": ["O", "PER"],
}


def model_of(stock, task="relation.v1", **options) -> SyntaxModel:
    torch.manual_seed(3)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        model={"name": "gate.v1", "heads": 4, "head_size": 4, "feed_forward": 16, **options},
        task={"name": task},
        classes=NAMES,
    )
    return SyntaxModel(config).eval()


@pytest.fixture
def words(make_batch):
    """Batches of random trees as words, with states, mentions and tags."""

    def make(options: GateOptions = GateOptions(), **arguments):  # noqa: B008
        batch = make_batch(**arguments)
        B, L = batch.input_ids_BL.shape
        draw = torch.Generator().manual_seed(5)
        real = batch.attention_mask_BL
        states = torch.randn(B, L, 16, generator=draw).half() * real[..., None]
        mention = torch.zeros(B, L, dtype=torch.int64)
        mention[:, 1] = 2
        other = torch.zeros(B, L, dtype=torch.int64)
        other[:, 2] = 3
        tags = torch.randint(1, 3, (B, L), generator=draw) * real
        labels = {
            "relation": torch.arange(B) % 3,
            "subject": mention,
            "object": other,
            "ner": tags,
        }
        return replace(
            batch,
            special_tokens_mask_BL=~real,
            labels=labels,
            extras={"word_states": states, options.distance: batch.distances()},
        )

    return make


def slow_attention(layer, states, shares, relative=None):
    """The layer by its equations, head by head, row by row; of one example."""
    heads, size = layer.heads, layer.query.weight.shape[0] // layer.heads
    context = torch.zeros(len(states), heads * size)
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = (one(states)[:, part] for one in (layer.query, layer.key, layer.value))
        for i in range(len(states)):
            seen = [j for j in range(len(states)) if shares[head][i][j] > 0]
            if not seen:
                continue
            keys = [k[j] + (relative[0][i, j] if relative else 0) for j in seen]
            values = [v[j] + (relative[1][i, j] if relative else 0) for j in seen]
            likely = torch.stack([q[i] @ key / size**0.5 for key in keys]).softmax(0)
            divided = torch.stack(
                [p * shares[head][i][j] for p, j in zip(likely, seen, strict=True)]
            )
            divided = divided / divided.sum()
            context[i, part] = sum(p * value for p, value in zip(divided, values, strict=True))
    return layer.output(context)


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
def test_weights_of_heads_are_shares_of_distance(batch, variant) -> None:
    """Fails if the released diagonal is taken for the published one: `distance_weights` is 0."""
    found = head_weights(batch.distances(), batch.attention_mask_BL, 4, DELTAS, variant)
    for row, size in enumerate(batch.lengths_B.tolist()):
        distance = batch.distances()[row, :size, :size].numpy()
        for head, delta in enumerate(DELTAS):
            expected = distance_weights(distance, delta, variant)
            assert np.allclose(found[row, head, :size, :size], expected)
            assert np.diag(expected).tolist() == [float(variant == "as_published")] * size
        assert (found[row, 2:, :, :size] == 1).all()
        assert (found[row, :, :, size:] == 0).all()


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
@torch.no_grad()
def test_attention_equals_its_slow_twin(batch, variant) -> None:
    layer = DistanceAttention(6, 4, 3, dropout=0.5).eval()
    states = torch.randn(*batch.input_ids_BL.shape, 6)
    shares = head_weights(batch.distances(), batch.attention_mask_BL, 4, DELTAS, variant)
    found = layer(states, shares)
    for row, size in enumerate(batch.lengths_B.tolist()):
        near = [
            [
                [_share(int(batch.distances()[row, i, j]), delta, variant) for j in range(size)]
                for i in range(size)
            ]
            for delta in (*DELTAS, None, None)
        ]
        expected = slow_attention(layer, states[row, :size], near)
        assert (found[row, :size] - expected).abs().max() < 1e-5


def _share(distance: int, delta: int | None, variant: str) -> float:
    if delta is None:
        return 1.0
    if distance == 0:
        return float(variant == "as_published")
    return 1.0 / distance if distance <= delta else 0.0


@torch.no_grad()
def test_relative_positions_are_added_to_keys_and_values(batch) -> None:
    layer, relative = DistanceAttention(6, 2, 3, dropout=0.0).eval(), RelativePositions(3, 2)
    B, L = batch.input_ids_BL.shape
    states, shares = torch.randn(B, L, 6), torch.ones(B, 2, L, L)
    vectors = relative(sequence_positions(L, states.device).expand(B, -1, -1))
    found = layer(states, shares, vectors)
    slow = torch.zeros(2, L, L, 3)
    for i in range(L):
        for j in range(L):
            at = max(-2, min(2, j - i)) + 2
            slow[0, i, j], slow[1, i, j] = relative.key.weight[at], relative.value.weight[at]
    for row in range(B):
        expected = slow_attention(layer, states[row], torch.ones(2, L, L), (slow[0], slow[1]))
        assert (found[row] - expected).abs().max() < 1e-5


def test_structural_positions_tell_left_from_right(batch) -> None:
    """Fails on the release, whose sign is multiplied twice: its positions are symmetric."""
    distance = batch.distances()
    published = structure_positions(distance, 3)
    assert torch.equal(published, -published.transpose(1, 2))
    released = structure_positions(distance, 3, "as_released")
    assert torch.equal(released, released.transpose(1, 2))
    size = int(batch.lengths_B[0])
    assert torch.equal(published.abs()[0, :size, :size], released[0, :size, :size])
    assert int(released.max()) == 3, "no path, and padding, are as the largest"


def slow_released_norm(states, weight, bias):
    """Row by row: less the mean, divided by the root of the squares over n - 1, plus 1e-6."""
    rows = []
    for row in states:
        mean = sum(row) / len(row)
        deviation = (sum((x - mean) ** 2 for x in row) / (len(row) - 1)) ** 0.5
        rows.append(torch.stack([(x - mean) / (deviation + 1e-6) for x in row]) * weight + bias)
    return torch.stack(rows)


@torch.no_grad()
def test_the_released_layer_norm_equals_its_slow_twin() -> None:
    """Fails on torch's LayerNorm, which divides by the variance of n."""
    norm, states = ReleasedLayerNorm(8), torch.randn(5, 8)
    norm.weight.copy_(torch.randn(8))
    norm.bias.copy_(torch.randn(8))
    expected = slow_released_norm(states, norm.weight, norm.bias)
    assert (norm(states) - expected).abs().max() < 1e-5
    stock = torch.nn.functional.layer_norm(states, (8,), norm.weight, norm.bias)
    assert (stock - expected).abs().max() > 0.05


@pytest.mark.parametrize("layer_norm", ["as_published", "as_released"])
@torch.no_grad()
def test_a_layer_equals_its_slow_twin(batch, layer_norm) -> None:
    """Attention, a sum, a norm, two maps, a sum, a norm; fails if the norms are exchanged."""
    layer = DistanceLayer(6, 2, 3, 12, dropout=0.5, layer_norm=layer_norm).eval()
    B, L = batch.input_ids_BL.shape
    states, shares = torch.randn(B, L, 6), torch.ones(B, 2, L, L)
    found = layer(states, shares)

    def normed(norm, rows):
        if layer_norm == "as_released":
            return slow_released_norm(rows, norm.weight, norm.bias)
        mean, spread = rows.mean(-1, keepdim=True), rows.var(-1, correction=0, keepdim=True)
        return norm.weight * (rows - mean) / (spread + 1e-5).sqrt() + norm.bias

    first, _, _, second = layer.network
    for row in range(B):
        context = slow_attention(layer.attention, states[row], torch.ones(2, L, L))
        middle = normed(layer.attended, states[row] + context)
        expected = normed(layer.fed, middle + second(first(middle).clamp(min=0)))
        assert (found[row] - expected).abs().max() < 1e-5


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
@torch.no_grad()
def test_the_released_feed_forward_network_drops_nothing_inside(variant) -> None:
    layer = DistanceLayer(8, 2, 4, 64, dropout=0.5, feed_forward_dropout=variant).train()
    states = torch.randn(20, 8)
    same = torch.equal(layer.network(states), layer.network(states))
    assert same == (variant == "as_released")


@torch.no_grad()
def test_the_released_layers_have_relative_positions_of_their_own(bert_config, words) -> None:
    """Another table of the second layer leaves the first as it is; published there is one."""
    batch = words()
    options = {"layers": 2, "use_syntax": False, "positions": "sequence"}
    encoders = {
        variant: model_of(bert_config, position_tables=variant, **options).encoder
        for variant in ("as_published", "as_released")
    }
    shared, own = encoders["as_published"], encoders["as_released"]
    assert isinstance(shared.relative, RelativePositions)
    assert len(own.relative) == 2
    assert not torch.equal(own(batch).last_hidden_state, shared(batch).last_hidden_state)
    own.relative[1].load_state_dict(own.relative[0].state_dict())
    for layer, twin in zip(own.layers, shared.layers, strict=True):
        twin.load_state_dict(layer.state_dict())
    shared.input.load_state_dict(own.input.state_dict())
    shared.relative.load_state_dict(own.relative[0].state_dict())
    same = own(batch).last_hidden_state - shared(batch).last_hidden_state
    assert same.abs().max() == 0, "with equal tables both forms are one"


@pytest.mark.parametrize("bias", ["as_published", "as_released"])
@torch.no_grad()
def test_graph_convolutions_equal_their_slow_twin(bert_config, words, bias) -> None:
    """Word by word, neighbour by neighbour; fails if the biases of both forms are exchanged."""
    batch = words(pad=2)
    encoder = model_of(bert_config, context="gcn", context_width=6, layers=2, graph_bias=bias)
    encoder = encoder.encoder
    found, given = encoder(batch).last_hidden_state, encoder.input(batch)
    for row, size in enumerate(batch.lengths_B.tolist()):
        states = [given[row, word] for word in range(size)]
        for layer in encoder.graph.layers:
            after = []
            for i in range(size):
                near = [j for j in range(size) if int(batch.distances()[row, i, j]) <= 1]
                mapped = [layer.weight @ states[j] for j in near]
                own = layer.bias if bias == "as_published" else 2 * layer.bias / len(near)
                after.append((sum(mapped) / len(near) + own).clamp(min=0))
            states = after
        assert (found[row, :size] - torch.stack(states)).abs().max() < 1e-5


def slow_nearest(words, targets, count):
    """CSLS by its definition (Conneau et al. 2018, equation 2), with both of its terms."""

    def cosine(one, other):
        return one @ other / np.linalg.norm(one) / np.linalg.norm(other)

    def density(one, others):
        return np.mean(sorted(cosine(one, other) for other in others)[-count:])

    found = []
    for word in words:
        scores = [
            2 * cosine(word, target) - density(word, targets) - density(target, words)
            for target in targets
        ]
        found.append(sorted(range(len(targets)), key=lambda at: -scores[at])[:count])
    return found


def test_nearest_words_equal_their_slow_twin() -> None:
    draw = np.random.default_rng(4)
    words, targets = (draw.normal(size=(size, 6)).astype(np.float32) for size in (9, 40))
    found = nearest(words, targets, 3)
    assert found.tolist() == slow_nearest(words, targets, 3)
    cosines = (words / np.linalg.norm(words, axis=1)[:, None]) @ (
        targets / np.linalg.norm(targets, axis=1)[:, None]
    ).T
    assert found[:, 0].tolist() != cosines.argmax(1).tolist(), "words near to many are told apart"
    with pytest.raises(SpecError, match=r"has 2 words, and model\.neighbours is 3"):
        nearest(words, targets[:2], 3)


TRANSLATED = {
    "words": "vectors",
    "target": "zh",
    "context": "gcn",
    "context_width": 6,
    "vectors": "any",
    "vector_width": 16,
    "layer_dropout": 0.0,
}


@pytest.mark.parametrize("choice", ["mix", "best"])
def test_words_are_translated_by_their_context(bert_config, words, choice) -> None:
    """Equations 6 and 7 word by word; as released nothing tells the scores what was good."""
    module = model_of(bert_config, **TRANSLATED, choice=choice).encoder.input.translation
    draw = torch.Generator().manual_seed(3)
    own = torch.randn(2, 4, module.after.out_features, generator=draw)
    near = torch.randn(2, 4, 3, own.shape[2], generator=draw)
    real = torch.tensor([[True] * 4, [True, True, False, False]])
    relative = module.positions(sequence_positions(4, real.device).expand(2, -1, -1))
    free = head_weights(None, real, module.heads, ())
    context = module.after(module.layer(module.before(own), free, relative))
    found = module.translate(own, near, real)
    for row, word in zip(*real.nonzero(as_tuple=True), strict=True):
        scores = [module.score(torch.cat([context[row, word], one])) for one in near[row, word]]
        shares = torch.cat(scores).softmax(0)
        if choice == "best":
            assert torch.equal(found[row, word], near[row, word, shares.argmax()])
        else:
            assert (found[row, word] - shares @ near[row, word]).abs().max() < 1e-5
    assert found.requires_grad == (choice == "mix")


def test_half_of_the_sentences_are_read_translated_and_none_in_evaluation(
    bert_config, words
) -> None:
    model = model_of(bert_config, **TRANSLATED)
    batch = words(model.config.model_options())
    B, L = batch.input_ids_BL.shape
    own = batch.extra("word_states")
    near = torch.randn(B, L, 48, generator=torch.Generator().manual_seed(3)).half()
    wide = replace(batch, extras={**batch.extras, "word_states": torch.cat([own, near], 2)})
    read = model.encoder.input
    with torch.no_grad():
        plain = read(batch)
        assert torch.equal(read(wide), plain), "an evaluation reads no translation"
        read.train()
        read.translation.layer.eval()
        kinds = [(read(wide) == plain).flatten(1).all(1) for _ in range(50)]
    assert 0.3 < torch.stack(kinds).float().mean() < 0.7


@torch.no_grad()
def test_a_graph_convolution_without_syntax_has_no_neighbours(bert_config, words) -> None:
    model = model_of(bert_config, context="gcn", context_width=6, use_syntax=False)
    assert model.config.model_options().matrices() == ()
    batch = words()
    changed = replace(
        batch, extras={**batch.extras, "word_states": batch.extra("word_states").clone()}
    )
    changed.extras["word_states"][:, 1] += 1
    before, after = (model.encoder(one).last_hidden_state for one in (batch, changed))
    same = (before == after).all(2)
    assert same[:, 0].all()
    assert same[:, 2:].all()
    assert not same[:, 1].all()


@torch.no_grad()
def test_absolute_structural_positions_are_sinusoids_of_depths(bert_config, words) -> None:
    batch = words()
    encoders = [
        model_of(bert_config, use_syntax=False, positions=one).encoder for one in ("none", "depth")
    ]
    with_depth, seen = encoders[1], []
    with_depth.layers[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    with_depth(batch)
    plain, width = encoders[0].input(batch), with_depth.width
    for row, size in enumerate(batch.lengths_B.tolist()):
        for word in range(size):
            depth = int(batch.depth_BL[row, word])
            angles = [depth / 10_000 ** (2 * (at // 2) / width) for at in range(width)]
            waves = [(math.cos if at % 2 else math.sin)(one) for at, one in enumerate(angles)]
            expected = plain[row, word] + torch.tensor(waves)
            assert (seen[0][row, word] - expected).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": "gcn", "positions": "depth"}, "model.context=gcn has none"),
        ({"context": "lstm", "context_width": 5}, "give an even number"),
        ({"target": "zh"}, "set model.words=vectors"),
    ],
)
def test_baselines_that_cannot_be_are_refused(options, message) -> None:
    with pytest.raises(SpecError, match=message):
        GateOptions(**options)


@pytest.mark.parametrize("classifier", ["as_published", "as_released"])
@torch.no_grad()
def test_a_relation_is_classified_from_the_largest_states(bert_config, words, classifier) -> None:
    """Published, a linear map after dropout; released, Linear ReLU Linear ReLU Linear."""
    batch, config = words(), model_of(bert_config).config
    config.task = {"name": "relation.v1", "classifier": classifier}
    model = SyntaxModel(config).eval()
    states, head = model.encoder(batch), model.head
    found = head.train(classifier == "as_released")(states, batch).logits["relation"]
    masks = [~batch.special_tokens_mask_BL, batch.labels["subject"] > 0, batch.labels["object"] > 0]
    hidden = () if classifier == "as_published" else (head.hidden[0], head.hidden[2])
    weight, bias = [*head.parameters()][-2:]
    for row in range(len(batch)):
        pooled = torch.cat([states.last_hidden_state[row][mask[row]].amax(0) for mask in masks])
        for layer in hidden:
            pooled = (layer.weight @ pooled + layer.bias).clamp(min=0)
        assert (found[row] - (weight @ pooled + bias)).abs().max() < 1e-5


@torch.no_grad()
def test_a_word_sees_itself_as_published_only(bert_config, words) -> None:
    """The released diagonal is masked: of all heads syntactic, none reads the word itself."""
    batch, seen = words(sizes=(6,)), []
    for variant in ("as_published", "as_released"):
        encoder = model_of(bert_config, deltas=[1] * 4, diagonal=variant).encoder
        encoder.layers[0].attention.register_forward_pre_hook(lambda _, args: seen.append(args[1]))
        encoder(batch)
    diagonals = [shares[0].diagonal(dim1=1, dim2=2) for shares in seen]
    assert [bool(own.any()) for own in diagonals] == [True, False]


@torch.no_grad()
def test_a_row_that_may_look_nowhere_is_zero(words) -> None:
    batch = words(sizes=(3,), roots=1.0)
    layer = DistanceAttention(6, 2, 3, dropout=0.0).eval()
    weights = head_weights(batch.distances(), batch.attention_mask_BL, 2, (1, 1), "as_released")
    found = layer(torch.randn(1, 3, 6), weights)
    assert torch.equal(found, layer.output.bias.expand(1, 3, -1))
    weights = head_weights(batch.distances(), batch.attention_mask_BL, 2, (1, 1))
    assert (layer(torch.randn(1, 3, 6), weights) != layer.output.bias).all()


@torch.no_grad()
def test_without_trees_it_is_a_transformer(bert_config, words) -> None:
    batch = words()
    model = model_of(bert_config, use_syntax=False)
    assert model.config.model_options().matrices() == ()
    layer = model.encoder.layers[0]
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
    for name, weight in (("weight", "in_proj_weight"), ("bias", "in_proj_bias")):
        parts = (layer.attention.query, layer.attention.key, layer.attention.value)
        getattr(attention, weight).copy_(torch.cat([getattr(part, name) for part in parts]))
    attention.out_proj.load_state_dict(layer.attention.output.state_dict())
    states = model.encoder.input(batch)
    padding = ~batch.attention_mask_BL
    context, _ = attention(states, states, states, key_padding_mask=padding)
    middle = layer.attended(states + context)
    expected = layer.fed(middle + layer.network(middle))
    found = model.encoder(batch).last_hidden_state
    assert (found - expected)[batch.attention_mask_BL].abs().max() < 1e-5


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"diagonal": "as_released", "layers": 2},
        {"positions": "structure", "use_types": True},
        {"use_syntax": False, "positions": "sequence"},
        {"use_syntax": False, "positions": "depth"},
        {"context": "gcn", "layers": 2},
        {"context": "lstm", "use_syntax": False},
    ],
)
@torch.no_grad()
def test_company_and_padding_never_change_logits(bert_config, words, take_row, options) -> None:
    batch, model = words(pad=2), model_of(bert_config, **options)
    together = model(batch).logits["relation"]
    for row in range(len(batch)):
        found = model(take_row(batch, row)).logits["relation"][0]
        assert (found - together[row]).abs().max() < 1e-5


def test_words_are_dropped_in_training_alone(bert_config, words) -> None:
    """The release did so in evaluation alone."""
    batch, seen = words(), []
    reader = model_of(bert_config, word_dropout=0.5, layer_dropout=0.0).encoder.input
    reader.linear.register_forward_pre_hook(lambda _, args: seen.append(args[0][..., :16]))
    reader(batch)
    reader.train()(batch)
    whole, dropped = batch.extra("word_states").float(), seen[1]
    assert torch.equal(seen[0], whole)
    gone = (dropped == 0).all(-1) & batch.attention_mask_BL
    assert 0 < int(gone.sum()) < int(batch.attention_mask_BL.sum())
    assert torch.equal(dropped[~gone], whole[~gone])


def test_what_a_word_is_read_as(bert_config, words) -> None:
    sizes = {
        name: model_of(bert_config, **{name: False}).encoder.input.linear.in_features
        for name in ("use_upos", "use_deprel", "use_tags", "use_types")
    }
    assert sizes == {"use_upos": 76, "use_deprel": 76, "use_tags": 76, "use_types": 106}
    model, batch = model_of(bert_config, use_types=True), words()
    assert model.encoder.input.linear.in_features == 136
    before = model(batch).logits["relation"]
    labels = {**batch.labels, "object": batch.labels["object"].clamp(max=2)}
    assert not torch.allclose(model(replace(batch, labels=labels)).logits["relation"], before)


def test_tags_need_a_task_that_has_them(bert_config) -> None:
    with pytest.raises(SpecError, match=r"set model\.use_tags=false"):
        model_of(bert_config, task="structural_probe.v1")
    with pytest.raises(SpecError, match=r"set model\.use_types=false"):
        model_of(bert_config, task="structural_probe.v1", use_tags=False, use_types=True)
    model_of(bert_config, task="structural_probe.v1", use_tags=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": "chain"}, "one of none, attach, broadcast"),
        ({"joint_root": True}, r"set data\.joint_root=false"),
        ({"stride": 4}, "leave data.template, data.stride and data.level alone"),
        ({"matrices": "device"}, "set data.matrices=host"),
    ],
)
def test_data_without_words_are_refused(changes, message) -> None:
    whole = DataOptions(dataset="any", policy="none", joint_root=False)
    GateOptions().check_data(whole)
    with pytest.raises(SpecError, match=message):
        GateOptions().check_data(replace(whole, **changes))


def test_more_syntactic_heads_than_heads_are_refused() -> None:
    with pytest.raises(SpecError, match=r"deltas has 3 values, and model\.heads is 2"):
        GateOptions(heads=2, deltas=(1, 1, 1))


def test_a_saved_model_comes_back_the_same(tmp_path, bert_config, words) -> None:
    model = model_of(bert_config, diagonal="as_released", use_types=True)
    model.save_pretrained(tmp_path)
    loaded = SyntaxModel.from_pretrained(tmp_path).eval()
    assert isinstance(loaded.encoder, GateEncoder)
    batch = words()
    with torch.no_grad():
        assert torch.equal(loaded(batch).logits["relation"], model(batch).logits["relation"])


def test_it_learns_sixteen_examples_by_heart(bert_config, words) -> None:
    batch = words(sizes=(8,) * 16)
    model = model_of(bert_config, layer_dropout=0.0, dropout=0.0).train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(150):
        optimizer.zero_grad()
        model(batch).loss.backward()
        optimizer.step()
    predicted = model.eval()(batch).logits["relation"].argmax(1)
    assert torch.equal(predicted, batch.labels["relation"])
