"""Gradient checkpointing: the same gradients, or a named error."""

from __future__ import annotations

import pytest
import torch

from syntax.errors import SpecError
from trainer.models.build import recompute_activations
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxModel
from trainer.systems import SYSTEMS


def model_of(name: str, encoder) -> SyntaxModel:
    torch.manual_seed(3)
    own = {"gate.v1": {"use_tags": False}, "udprlm.v1": {"labels": ["_", "APP", "root"]}}
    config = SyntaxConfig(
        encoder=encoder.to_dict(),
        model={"name": name, **own.get(name, {})},
        classes={"label": ["a", "b", "c"]},
        task={"name": "sequence_classification.v1", "label": "label"},
        objectives=[{"name": "tree_distance.v1"}],
    )
    return SyntaxModel(config).train()


def gradients(model: SyntaxModel, batch) -> list[torch.Tensor | None]:
    torch.manual_seed(7)
    model.zero_grad()
    model(batch).loss.backward()
    return [None if one.grad is None else one.grad.clone() for one in model.parameters()]


@pytest.mark.parametrize(
    "name",
    [
        *("lisa.v1", "sgnet.v1", "sgnet_transformer.v1", "sla.v1", "syntax_bert.v1"),
        *("syntax_masks.v1", "transformer.v1"),
    ],
)
def test_gradients_are_equal_with_and_without(name, bert_config, batch_for) -> None:
    batch = batch_for(SYSTEMS[name].options())
    model = model_of(name, bert_config)
    plain = gradients(model, batch)
    calls = []
    layer = model.encoder.stock.encoder.layer[0]
    layer.attention.self.query.register_forward_hook(lambda *_: calls.append(1))
    recompute_activations(model)
    again = gradients(model, batch)
    assert len(calls) == 2
    for one, two in zip(plain, again, strict=True):
        assert (one is None and two is None) or torch.equal(one, two)


def test_every_system_supports_it_or_says_that_it_does_not(bert_config) -> None:
    supported = {
        *(
            "lisa.v1",
            "syntax_masks.v1",
            "blocking.v1",
            "microbert.v1",
            "pascal.v1",
            "sgnet.v1",
            "sla.v1",
            "stock.v1",
            "syntax_bert.v1",
        ),
        *("udprlm.v1", "transformer.v1", "sgnet_transformer.v1", "plbart.v1"),
    }
    for name in supported:
        recompute_activations(model_of(name, bert_config))
    for name in SYSTEMS.keys() - supported:
        with pytest.raises(SpecError, match=rf"{name} trains no layers .*gradient_checkpointing"):
            recompute_activations(model_of(name, bert_config))


def test_a_run_trains_with_it(store, small_recipe, tmp_path) -> None:
    from trainer.loop import train

    settings = ("max_steps=2", "evaluate_every=2")
    plain = train(small_recipe(*settings), store, tmp_path / "plain")
    again = train(small_recipe(*settings, "gradient_checkpointing=true"), store, tmp_path / "again")
    assert again.progress.losses == pytest.approx(plain.progress.losses)
