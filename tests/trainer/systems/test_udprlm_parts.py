"""UD-PrLM part by part: the parser of pieces, its targets and trees, and what reads its labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig

from syntax.batches import IGNORE
from syntax.errors import SpecError
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.piece_parser import PieceParser, PieceScores, piece_loss
from trainer.options import UdPrlmOptions
from trainer.systems.udprlm import usi as usi_module
from trainer.systems.udprlm.usi import SyntaxIntegration, expected

B, L, D, C = 2, 6, 10, 5
LENGTHS = (6, 4)
SIZES = {"arc": 7, "relation": 4}


def mask() -> torch.Tensor:
    return torch.arange(L) < torch.tensor(LENGTHS)[:, None]


def scores(scale: float = 0.0, seed: int = 0, labels: int = C) -> PieceScores:
    """Of a parser that has been trained, if the scale is not 0."""
    torch.manual_seed(seed)
    parser = PieceParser(D, labels, **SIZES).eval()
    if scale:
        nn.init.normal_(parser.arcs_IJ, std=scale)
        nn.init.normal_(parser.labels_CIJ, std=scale)
    found: PieceScores = parser(torch.randn(B, L, D), mask())
    return found


def softmax(values: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(values - values.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def slow_probabilities(found: PieceScores) -> np.ndarray:
    """P(head of i is j) P(label of i is c | head j), whole. *Shape:* (B, L, H, C)."""
    arcs = softmax(found.arcs_BLH.detach().double().numpy(), 2)
    left, right, weight = (
        part.detach().double().numpy()
        for part in (found.dependents_BLI, found.heads_BHJ, found.labels_CIJ)
    )
    both = np.zeros((*arcs.shape, len(weight)))
    for b, i, j in np.ndindex(arcs.shape):
        own = np.array([left[b, i] @ weight[c] @ right[b, j] for c in range(len(weight))])
        both[b, i, j] = arcs[b, i, j] * softmax(own, 0)
    return both


def test_the_first_loss_is_that_of_knowing_nothing() -> None:
    found = scores()
    heads = torch.where(mask(), 0, IGNORE)
    labels = torch.where(mask(), 1, IGNORE)
    columns = sum(n * math.log(n) for n in LENGTHS) / sum(LENGTHS)
    assert piece_loss(found, heads, labels).item() == pytest.approx(columns + math.log(C), rel=1e-6)


def test_the_loss_equals_its_definition() -> None:
    found = scores(0.5)
    heads = torch.tensor([[0, 0, 1, 2, 2, 0], [0, 2, 0, IGNORE, IGNORE, IGNORE]])
    labels = torch.tensor([[0, 2, 3, 1, IGNORE, 0], [0, 2, 4, IGNORE, IGNORE, IGNORE]])
    joint = slow_probabilities(found)
    arcs = softmax(found.arcs_BLH.detach().double().numpy(), 2)
    of_arcs, of_labels = [], []
    for b, i in zip(*np.nonzero(heads.numpy() != IGNORE), strict=True):
        j = int(heads[b, i])
        of_arcs.append(-math.log(arcs[b, i, j]))
        if labels[b, i] != IGNORE:
            of_labels.append(-math.log(joint[b, i, j, labels[b, i]] / arcs[b, i, j]))
    loss = piece_loss(found, heads, labels).item()
    assert loss == pytest.approx(np.mean(of_arcs) + np.mean(of_labels), rel=1e-5)
    nothing = torch.full_like(heads, IGNORE)
    assert piece_loss(found, nothing, nothing).item() == 0


def test_padding_is_never_a_head() -> None:
    found = scores(0.5)
    assert torch.isinf(found.arcs_BLH[1, :, 4:]).all()
    assert torch.isfinite(found.arcs_BLH[0]).all()


def test_dropout_is_one_mask_for_all_positions() -> None:
    parser = PieceParser(D, C, dropout=0.5).train()
    found = parser(torch.ones(B, L, D), mask()).dependents_BLI
    assert (found == found[:, :1]).all()
    assert not (found[0] == found[1]).all()


def test_switches_of_the_projections() -> None:
    own = PieceParser(16, C, arc=8, relation=8)
    weight = own.projections["arc_head"][0].weight
    torch.testing.assert_close(weight @ weight.T, torch.eye(8))
    assert isinstance(own.projections["arc_head"][1], nn.ReLU)
    released = PieceParser(16, C, activation="as_released", mlp_init="as_released")
    assert released.projections["label_head"][1].negative_slope == 0.1


@pytest.mark.parametrize("switch", ["as_published", "as_released"])
def test_the_orthogonal_start_is_lost_as_released(switch) -> None:
    """transformers draws the weights of every linear map again when a model is finished."""
    model = tiny(mlp_init=switch)
    linear = model.encoder.parser.projections["arc_head"][0]
    is_orthogonal = torch.allclose(linear.weight @ linear.weight.T, torch.eye(8), atol=1e-5)
    assert is_orthogonal == (switch == "as_published")
    if switch == "as_released":
        assert linear.weight.std().item() == pytest.approx(0.02, rel=0.3)
    assert not model.encoder.parser.labels_CIJ.any()


@pytest.mark.parametrize("block", [1, 40, 2**20])
def test_expected_labels_equal_the_whole_array_summed(block, monkeypatch) -> None:
    monkeypatch.setattr(usi_module, "BLOCK", block)
    found = scores(0.7)
    joint = slow_probabilities(found)
    np.testing.assert_allclose(expected(found).detach(), joint.sum(2), atol=1e-6)
    np.testing.assert_allclose(expected(found).detach().sum(2), 1, atol=1e-6)
    x = torch.randn(B, L, 3)
    slow = np.zeros((B, L, C, 3))
    for b, i, j, c in np.ndindex(joint.shape):
        slow[b, i, c] += joint[b, i, j, c] * x[b, j].numpy()
    np.testing.assert_allclose(expected(found, x).detach(), slow, atol=1e-5)


def slow_update(module: SyntaxIntegration, states: torch.Tensor, found: PieceScores) -> np.ndarray:
    """The states with structure, by loops over every index."""
    options = module.options
    joint = slow_probabilities(found)
    h = states.double().numpy()
    weight = module.weight_CQM.detach().double().numpy()
    linear = [
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in (module.projection, module.linear)
    ]
    x = h @ linear[0][0].T + linear[0][1]
    size = x.shape[2]
    ax, mixed = np.zeros((B, L, C, size)), np.zeros((B, L, C, size))
    for b, i, j, c in np.ndindex(joint.shape):
        ax[b, i, c] += joint[b, i, j, c] * x[b, j if options.neighbours == "corrected" else i]
    for b, i, c, q, m in np.ndindex(*ax.shape, size):
        # Released, the einsum sums m over the weights alone, and q stays.
        place = m if options.mixing == "corrected" else q
        mixed[b, i, c, place] += ax[b, i, c, q] * weight[c, q, m]
    u = mixed.reshape(B, L, -1) @ linear[1][0].T + linear[1][1]
    erf = np.vectorize(math.erf)
    return h + u * 0.5 * (1 + erf(u / math.sqrt(2)))


def integration(**options: object) -> SyntaxIntegration:
    torch.manual_seed(1)
    return SyntaxIntegration(UdPrlmOptions(usi_width=3, **options), D, C, 0.1, 1e-12).eval()


@pytest.mark.parametrize("neighbours", ["as_published", "corrected"])
@pytest.mark.parametrize("mixing", ["as_published", "corrected"])
def test_integration_equals_loops_over_every_index(neighbours, mixing) -> None:
    module, found = integration(neighbours=neighbours, mixing=mixing), scores(0.7)
    states = torch.randn(B, L, D)
    ours = module(states, found).detach()
    np.testing.assert_allclose(ours, slow_update(module, states, found), atol=1e-4)


def test_as_published_a_token_reads_labels_and_never_the_content_of_its_head() -> None:
    """Token 3 changes only its own row as long as the scores stay; corrected, it changes others."""
    found, states = scores(0.7), torch.randn(B, L, D)
    other = states.clone()
    other[:, 3] += 1
    rows = {}
    for neighbours in ("as_published", "corrected"):
        module = integration(neighbours=neighbours)
        changed = (module(states, found) - module(other, found)).abs().amax(2) > 1e-5
        rows[neighbours] = changed[0].tolist()
    assert rows["as_published"] == [False, False, False, True, False, False]
    assert all(rows["corrected"])


def test_the_gain_has_the_deviation_of_a_sum() -> None:
    options = UdPrlmOptions()
    module = SyntaxIntegration(options, 32, 200, 0.1, 1e-12)
    assert module.weight_CQM.sum(2).std().item() == pytest.approx(4, rel=0.05)


def test_the_fusion_is_a_sum_or_as_released() -> None:
    states, found = torch.randn(B, L, D), scores(0.7)
    module = integration(fusion="as_released")
    out = module(states, found)
    np.testing.assert_allclose(out.mean(2).detach(), 0, atol=1e-5)
    assert isinstance(integration().norm, nn.Identity)


def test_without_a_projection_states_are_scaled_whole() -> None:
    torch.manual_seed(1)
    module = SyntaxIntegration(UdPrlmOptions(usi_width=None), D, C, 0.1, 1e-12)
    assert module.weight_CQM.shape == (C, D, D)
    assert module(torch.randn(B, L, D), scores()).shape == (B, L, D)


def test_gradients_are_those_of_the_whole_array(monkeypatch) -> None:
    monkeypatch.setattr(usi_module, "BLOCK", 60)
    found = scores(0.7)
    given = torch.randn(B, L, C)
    whole = torch.einsum(
        "bij,bijc->bic",
        found.arcs_BLH.softmax(2),
        torch.einsum(
            "bix,cxy,bjy->bijc", found.dependents_BLI, found.labels_CIJ, found.heads_BHJ
        ).softmax(3),
    )
    leaves = (found.arcs_BLH, found.dependents_BLI, found.heads_BHJ, found.labels_CIJ)
    ours = torch.autograd.grad((expected(found) * given).sum(), leaves, retain_graph=True)
    theirs = torch.autograd.grad((whole * given).sum(), leaves)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-4)


LABEL_NAMES = ("_", "APP", "det", "nsubj", "root")
TINY = {"arc": 8, "relation": 4, "usi_width": 4, "labels": LABEL_NAMES}


def tiny(task: str = "mlm.v1", attention: str = "parsebank_sdpa", **options: object) -> SyntaxModel:
    torch.manual_seed(0)
    bert = BertConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=16,
        vocab_size=60,
    )
    chosen: dict[str, object] = {"name": task}
    if task == "usl.v1":
        chosen["labels"] = LABEL_NAMES
    model = {"name": "udprlm.v1", **TINY, **options}
    return SyntaxModel(SyntaxConfig(bert.to_dict(), attention, model, chosen))


def test_masked_text_teaches_the_parser_once_labels_differ(batch) -> None:
    """At the zero start all labels are alike, so that heads make no difference."""
    model = tiny().eval()
    gradients = []
    for trained in (False, True):
        if trained:
            nn.init.normal_(model.encoder.parser.labels_CIJ, std=0.5)
        model.zero_grad()
        states = model.encoder(batch).last_hidden_state
        (states * torch.linspace(-1, 1, states.numel()).view_as(states)).sum().backward()
        gradients.append(float(model.encoder.parser.arcs_IJ.grad.abs().max()))
    assert gradients[0] < 1e-6 < gradients[1]


def test_trees_are_read_below_the_further_layer(batch) -> None:
    model = tiny().eval()
    nn.init.normal_(model.encoder.parser.labels_CIJ, std=0.5)
    text = model.encoder(batch, output_hidden_states=True)
    trees = model.encoder(batch, output_hidden_states=True, output_tree_scores=True)
    assert (len(text.hidden_states), len(trees.hidden_states)) == (4, 3)
    assert torch.equal(trees.last_hidden_state, text.hidden_states[2])
    assert torch.equal(text.last_hidden_state, text.hidden_states[3])
    assert trees.tree_scores is not None
    assert model.config.state_count() == 4
    off = tiny(usi=False).eval()
    assert off.encoder.layer is None
    assert off.config.state_count() == 3


def test_only_this_encoder_has_a_parser_of_pieces() -> None:
    with pytest.raises(SpecError, match="this model has none"):
        tiny("usl.v1", use_syntax=False)
    with pytest.raises(SpecError, match="root, which the parser"):
        tiny("usl.v1", labels=LABEL_NAMES[:-1])
    with pytest.raises(SpecError, match=r"model\.labels is empty"):
        tiny(labels=())
