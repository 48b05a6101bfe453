"""LISA: heads of words, the head of attention by loops, what it attends to, its loss, a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from syntax.errors import SpecError
from tests.trainer.bracketed import projective_tree, sentence_arrays
from trainer.batch import SyntaxBatch
from trainer.loop import train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.nn.attention import EAGER, SDPA
from trainer.objectives.shown_options import HEADS, ParseHeadOptions, head_positions
from trainer.options import LisaOptions
from trainer.options.settings import described
from trainer.recipes import RECIPES

SIZES = {"arc": 6, "relation": 3, "parser_dropout": 0.0}


def parsed_batch(sizes=((6, 3), (9,), (2, 2)), pad: int = 2) -> SyntaxBatch:
    rng = np.random.default_rng(1)
    trees = [[projective_tree(rng, size) for size in own] for own in sizes]
    arrays = LisaOptions().arrays(sentence_arrays(trees, rng, pad))
    return SyntaxBatch.from_numpy(arrays, {}, [HEADS])


def model_of(stock, attention=EAGER, **options) -> SyntaxModel:
    torch.manual_seed(2)
    config = SyntaxConfig(
        encoder=stock.to_dict(),
        attention=attention,
        model={"name": "lisa.v1", "attention": "eager", **SIZES, **options},
        task={"name": "mlm.v1"},
        objectives=[{"name": "parse_head.v1"}],
    )
    model = SyntaxModel(config).eval()
    for weight in model.encoder.parser.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return model


def test_the_head_of_a_piece_is_the_first_piece_of_its_words_head() -> None:
    arrays = parsed_batch().arrays
    found, several, roots = head_positions(arrays), 0, 0
    for row, words in enumerate(arrays["word_ids"]):
        for column, word in enumerate(words):
            pieces = np.flatnonzero(words == word)
            if word < 0:
                assert found[row, column] == column
                continue
            above = arrays["parents"][row, pieces[0]]
            owner = pieces[0] if above < 0 else np.flatnonzero(words == words[above])[0]
            assert found[row, column] == owner
            several += column != pieces[0]
            roots += above < 0
    assert several
    assert roots


def slow_weights(parser, states: torch.Tensor, real: torch.Tensor) -> np.ndarray:
    """softmax(Q U K') of each position, by loops over pairs, in float64."""
    project = parser.projections
    query, key = project["arc_dependent"](states), project["arc_head"](states)
    B, L = real.shape
    found = np.zeros((B, L, L))
    for b in range(B):
        for t in range(L):
            places = [q for q in range(L) if real[b, q]]
            scores = []
            for q in places:
                bilinear = query[b, t].double() @ parser.arcs_IJ[:-1].double() @ key[b, q].double()
                scores.append(float(bilinear + parser.arcs_IJ[-1].double() @ key[b, q].double()))
            weights = np.exp(np.array(scores) - max(scores))
            found[b, t, places] = weights / weights.sum()
    return found


@pytest.mark.parametrize("layer", [0, 2])
@torch.no_grad()
def test_the_head_attends_with_its_own_parse(encoder_config, layer) -> None:
    batch, model = parsed_batch(), model_of(encoder_config, layer=layer)
    encoding = model.encoder(batch, output_attentions=True, output_hidden_states=True)
    states = encoding.hidden_states[layer]
    expected = slow_weights(model.encoder.parser, states, batch.attention_mask_BL)
    real = batch.attention_mask_BL.numpy()
    found = encoding.attentions[layer][:, 0].numpy()
    assert np.allclose(found[real], expected[real], atol=1e-5)
    plain = model_of(encoder_config, layer=layer).encoder.stock(
        batch.input_ids_BL, batch.attention_mask_BL, output_attentions=True
    )
    others = encoding.attentions[layer][:, 1:], plain.attentions[layer][:, 1:]
    assert torch.allclose(*others, atol=1e-5)


@pytest.mark.parametrize(("inject", "training"), [(True, False), (False, True)])
@torch.no_grad()
def test_the_stored_parse_is_attended_to_in_training_and_where_it_is_injected(
    encoder_config, inject, training
) -> None:
    encoder_config.hidden_dropout_prob = encoder_config.attention_probs_dropout_prob = 0.0
    batch, model = parsed_batch(), model_of(encoder_config, inject=inject).train(training)
    weights = model.encoder(batch, output_attentions=True).attentions[model.encoder.layer][:, 0]
    expected = torch.nn.functional.one_hot(batch.extra(HEADS).long(), weights.shape[-1])
    real = batch.attention_mask_BL
    assert torch.allclose(weights[real], expected[real].float(), atol=1e-6)


@pytest.mark.parametrize("inject", [False, True])
@torch.no_grad()
def test_fused_and_spelt_out_attention_agree(encoder_config, inject) -> None:
    batch = parsed_batch()
    real = batch.attention_mask_BL
    fused, spelt = (
        model_of(encoder_config, attention, inject=inject).encoder(batch).last_hidden_state[real]
        for attention in (SDPA, EAGER)
    )
    assert torch.allclose(fused, spelt, atol=1e-5)


@torch.no_grad()
def test_the_loss_is_the_cross_entropy_of_heads_and_a_share_of_that_of_labels(bert_config) -> None:
    batch, model = parsed_batch(), model_of(bert_config)
    states = model.encoder(batch, output_hidden_states=True).hidden_states[model.encoder.layer]
    parser = model.encoder.parser
    probabilities = slow_weights(parser, states, batch.attention_mask_BL)
    one = torch.ones(1)
    dependents, above = (
        parser.projections[name](states) for name in ("label_dependent", "label_head")
    )
    heads, labels = [], []
    for row, column in batch.attention_mask_BL.nonzero().tolist():
        head, label = int(batch.extra(HEADS)[row, column]), int(batch.deprel_BL[row, column])
        heads.append(-np.log(probabilities[row, column, head]))
        if label:
            left = torch.cat([dependents[row, column], one])
            right = torch.cat([above[row, head], one])
            scores = torch.stack([left @ weight @ right for weight in parser.labels_CIJ])
            labels.append(-float(scores.log_softmax(0)[label]))
    found = float(model(batch).objectives["parse_head.v1"])
    assert found == pytest.approx(np.mean(heads) + 0.1 * np.mean(labels), rel=1e-4)
    unlabelled = replace(batch, deprel_BL=torch.zeros_like(batch.deprel_BL))
    found = float(model(unlabelled).objectives["parse_head.v1"])
    assert found == pytest.approx(np.mean(heads), rel=1e-4)


def test_the_head_learns_trees(bert_config) -> None:
    bert_config.hidden_dropout_prob = bert_config.attention_probs_dropout_prob = 0.0
    batch, model = parsed_batch(), model_of(bert_config, layer=2, arc=32)
    model.encoder.parser.reset_parameters()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        model.train()(batch).objectives["parse_head.v1"].backward()
        optimizer.step()
    scores = model.eval().encoder(batch, output_tree_scores=True).tree_scores.arcs_BLH
    real = batch.attention_mask_BL
    assert (scores.argmax(-1) == batch.extra(HEADS))[real].float().mean() > 0.9


def test_a_layer_that_is_not_there_is_refused(bert_config) -> None:
    with pytest.raises(SpecError, match=r"model\.layer is 3"):
        model_of(bert_config, layer=3)


def test_a_run_teaches_the_head_to_parse(store, small_recipe, tmp_path) -> None:
    settings = ("model.name=lisa.v1", "joint_root=false", "separator_edge=none")
    recipe = replace(small_recipe(*settings), objectives=(ParseHeadOptions(),))
    run = train(recipe, store, tmp_path)
    losses = run.progress.losses
    assert np.mean(losses[-2:]) < np.mean(losses[:2]) - 0.1  # mostly that of heads


def test_a_model_whose_head_nothing_teaches_is_warned_of() -> None:
    options = LisaOptions()
    values = {key: value for key, _, value in described(RECIPES["lisa-atis"]())}
    assert list(options.warnings(None, values)) == []
    (warning,) = options.warnings(None, {})
    assert "add parse_head.v1" in warning
    assert list(replace(options, use_syntax=False).warnings(None, {})) == []
