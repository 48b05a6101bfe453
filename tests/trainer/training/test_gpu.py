"""What only a GPU can show; skipped without one."""

from __future__ import annotations

import pytest
import torch

from trainer.loop import train
from trainer.models.config import SyntaxConfig
from trainer.models.model import SyntaxForSequenceClassification
from trainer.nn.attention import SDPA, LocalAttention
from trainer.nn.relative import RelativeBertConfig, RelativeBertModel

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
            "clip_value=1",
        ),
        *(f"precision={precision}", f"matrices={matrices}"),
    )
    run = train(recipe, store, tmp_path)
    assert run.accelerator.device.type == "cuda"
    losses = run.progress.losses
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["relative_key", "relative_key_query"])
def test_local_attention_with_relative_positions_is_the_cpus(kind) -> None:
    """A GPU attends twice, fused; a CPU once, with both weights written out."""
    B, L = 2, 33
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    more = {"intermediate_size": 64, "vocab_size": 50, "max_position_embeddings": 48}
    config = RelativeBertConfig(
        **sizes, **more, initializer_range=0.3, position_embedding_type=kind
    )
    config._attn_implementation = SDPA
    model = RelativeBertModel(config).eval()
    mask_BL = torch.ones(B, L, dtype=torch.long)
    mask_BL[1, 20:] = 0
    near_BLL = (torch.rand(B, L, L) < 0.3) | torch.eye(L, dtype=torch.bool)
    pieces, share_BL = torch.randint(0, 50, (B, L)), torch.rand(B, L)
    found = {}
    for device in ("cpu", "cuda"):
        local = LocalAttention(near_BLL.to(device), share_BL.to(device))
        model = model.to(device)
        model.zero_grad()
        states_BLD = model(
            input_ids=pieces.to(device), attention_mask=mask_BL.to(device), local=local
        ).last_hidden_state
        (states_BLD[mask_BL.bool().to(device)] ** 2).mean().backward()
        gradients = {
            name: weight.grad.cpu()
            for name, weight in model.named_parameters()
            if weight.grad is not None
        }
        found[device] = states_BLD.detach().cpu()[mask_BL.bool()], gradients
    (expected, slopes), (states, own) = found["cpu"], found["cuda"]
    assert (states - expected).abs().max() < 1e-3
    assert slopes.keys() == own.keys()
    assert any("distance_embedding" in name for name in own)
    for name, slope in slopes.items():
        assert (own[name] - slope).abs().max() < 1e-3 + 1e-2 * slope.abs().max(), name
