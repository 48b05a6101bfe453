"""What must not matter: the compiler, the precision, how a step's examples are split up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import torch
from transformers import BertConfig

from featurestore import FeatureStore, open_store
from syntax.batches import AssemblySpec
from tests.trainer.everything import append_everything, recipe_for
from trainer.batch import SyntaxBatch
from trainer.data import device_batches
from trainer.loop import Run, start, train
from trainer.nn.attention import LocalAttention, _attend_at_once, _attend_twice
from trainer.options import Recipe
from trainer.options.settings import with_settings

WORDS = ("joint_root=false", "separator_edge=none", "policy=none", "template=[]")
MODELS = {
    "gate.v1": (
        *(*WORDS, "truncation=none", "max_length=128", "use_tags=false", "layer_dropout=0"),
        *("deltas=[1, 2]", "heads=4", "head_size=8", "feed_forward=32"),
    ),
    "syntax_bert.v1": (),
    "sgnet.v1": ("joint_root=false", "separator_edge=none"),
    "sla.v1": ("joint_root=false", "separator_edge=none", "threshold=1"),
}
EXAMPLES = 16


@pytest.fixture(scope="module")
def uri(tmp_path_factory, english, tokenizer) -> str:
    uri = str(tmp_path_factory.mktemp("precision") / "store")
    with open_store(uri) as store:
        append_everything(store, english, tokenizer, "train", EXAMPLES)
        append_everything(store, english, tokenizer, "dev", 4, EXAMPLES)
    return uri


@pytest.fixture
def small(uri) -> Iterator[FeatureStore]:
    with open_store(uri) as store:
        yield store


@pytest.fixture
def recipe(tmp_path):
    """A recipe without dropout, whose steps are all alike."""
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    folder = tmp_path / "encoder"
    BertConfig(intermediate_size=32, **size, **off).save_pretrained(folder)

    def make(model: str, *settings: str, task: str = "sequence_classification.v1") -> Recipe:
        chosen = with_settings(recipe_for(task), [f"model.name={model}", *MODELS[model]])
        drawn = ["model.dropout=0", *(["gat_dropout=0"] if model == "syntax_bert.v1" else [])]
        once = ("evaluate_every=null", "checkpoint_every=null", "max_steps=3", "warmup_steps=0")
        return with_settings(chosen, [f"encoder={folder}", *drawn, *once, *settings])

    return make


def losses(store: FeatureStore, recipe: Recipe, output) -> list[float]:
    return train(recipe, store, output).progress.losses


@pytest.mark.slow_cases
@pytest.mark.parametrize("model", MODELS)
def test_bf16_stays_near_its_fp32_twin(small, recipe, tmp_path, model) -> None:
    exact = losses(small, recipe(model), tmp_path)
    mixed = losses(small, recipe(model, "precision=bf16"), tmp_path)
    assert mixed == pytest.approx(exact, rel=0.02)
    assert mixed != exact


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("model", MODELS)
def test_the_compiled_model_trains_like_the_eager_one(
    small, recipe, tmp_path, model, monkeypatch
) -> None:
    """SLA's as it is; of the others the graphs alone, without minutes of a C++ compiler."""
    eager = losses(small, recipe(model), tmp_path)
    if model != "sla.v1":
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    compiled = losses(small, recipe(model, "compile=true"), tmp_path)
    assert compiled == pytest.approx(eager, rel=1e-4)


def whole_and_halves(run: Run) -> tuple[SyntaxBatch, list[SyntaxBatch]]:
    """All examples as one batch, and the same in two."""
    batches = []
    for size in (EXAMPLES, EXAMPLES // 2):
        stream = run.data.dataset.stream(
            batch_size=size,
            shuffle=False,
            max_length=24,
            assembly=AssemblySpec(template=run.recipe.data.template, **run.task.stream_options),
        )
        batches.append(list(device_batches(stream, run.recipe, run.task, torch.device("cpu"))))
    return batches[0][0], batches[1]


@pytest.mark.parametrize("task", ["sequence_classification.v1", "token_classification.v1"])
def test_accumulated_batches_equal_the_bigger_batch(small, recipe, tmp_path, task) -> None:
    """The gradient of a step is the mean of its batches' gradients, each the mean over its labels.

    So it is that of the bigger batch where all have as many labels; where not, a label in a batch
    with few weighs more, as it does on several devices.
    """
    run = start(recipe("syntax_bert.v1", "objectives=[]", task=task), small, tmp_path)
    whole, halves = whole_and_halves(run)
    counts = [int((half.labels["tags"] >= 0).sum()) for half in halves if "tags" in half.labels]
    shares = [count / sum(counts) for count in counts] or [0.5, 0.5]
    with torch.no_grad():
        means = [float(run.model(half).loss) for half in halves]
        by_labels = sum(share * mean for share, mean in zip(shares, means, strict=True))
        assert float(run.model(whole).loss) == pytest.approx(by_labels, rel=1e-5)
    run.step(halves)
    run.report()
    assert run.progress.losses[0] == pytest.approx(sum(means) / 2, rel=1e-5)


def test_local_attention_is_the_same_fused_or_at_once() -> None:
    """On a GPU two fused attentions are mixed, on a CPU the weights of both."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    module = torch.nn.Module().eval()
    module.is_causal = False
    states = tuple(torch.randn(2, 3, 5, 4) for _ in range(3))
    near_BLL = torch.rand(2, 5, 5) < 0.5
    near_BLL |= torch.eye(5, dtype=torch.bool)
    near_BLL[1, :, 4] = False
    near_BLL[1, 4, 4] = True
    padding = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    padding[1, ..., 4] = False
    local = LocalAttention(near_BLL, torch.rand(2, 5))
    added = torch.zeros(2, 1, 5, 5).masked_fill(~padding, torch.finfo(torch.float32).min)
    for mask in (None, padding, added):
        one, two = (
            attend(sdpa_attention_forward, module, states, mask, local)[0][:, :4]
            for attend in (_attend_at_once, _attend_twice)
        )
        assert (one - two).abs().max() < 1e-5
