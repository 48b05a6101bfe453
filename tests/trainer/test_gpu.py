"""What only a GPU can show; skipped without one."""

from __future__ import annotations

import pytest
import torch

from trainer.loop import train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxForSequenceClassification

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("variant", ["as_published", "as_released"])
@torch.no_grad()
def test_the_gpu_gives_the_cpus_logits(bert_config, batch, variant) -> None:
    options = {"gat": variant, "attention_bias": variant}
    config = SyntaxConfig(
        encoder=bert_config.to_dict(),
        model={"name": "syntax_bert.v1", **options},
        classes={"label": ["a", "b", "c"]},
        objectives=[{"name": "tree_distance.v1", "states": "syntax"}, {"name": "tree_depth.v1"}],
    )
    model = SyntaxForSequenceClassification(config).eval()
    expected = model(batch)
    found = model.cuda()(batch.pin_memory().to("cuda", non_blocking=True))
    assert (found.logits["label"].cpu() - expected.logits["label"]).abs().max() < 1e-3
    for name, loss in expected.objectives.items():
        assert float(found.objectives[name]) == pytest.approx(float(loss), rel=1e-3)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("matrices", ["host", "device"])
def test_a_run_learns_on_the_gpu(
    store, small_recipe, tmp_path, monkeypatch, forget_accelerate, precision, matrices
) -> None:
    monkeypatch.delenv("ACCELERATE_USE_CPU")
    forget_accelerate()
    recipe = small_recipe(
        *(
            "max_steps=60",
            "objectives.tree_distance.weight=0.05",
            "objectives.tree_depth.weight=0.05",
            "data.max_length=200",
            "log_every=20",
        ),
        *(f"precision={precision}", f"matrices={matrices}"),
    )
    run = train(recipe, store, tmp_path)
    assert run.accelerator.device.type == "cuda"
    losses = run.progress.losses
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])
