"""Whole models in the hands of Hugging Face's libraries: Trainer, pipelines, PEFT."""

from __future__ import annotations

import copy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import IterableDataset
from transformers import PreTrainedTokenizerFast, Trainer, TrainingArguments, pipeline

from service.tokenizers import bundled_tokenizers
from syntax.errors import SpecError
from tests.trainer.runs import batches_of
from trainer.data import open_source, profile_data
from trainer.models.build import build_model

CPU = torch.device("cpu")


class Streamed(IterableDataset):
    """Batches as the tensors that a model takes."""

    def __init__(self, batches) -> None:
        self.batches = batches

    def __iter__(self):
        return (batch.tensors() for batch in self.batches)


@pytest.fixture
def build(store, small_recipe):
    """A new model of the sample recipe with some settings, and its batches."""

    def make(*settings: str):
        recipe = small_recipe(*settings)
        source = open_source(store, recipe, "train", "en")
        model = build_model(recipe, profile_data(source, recipe))
        return model, batches_of(store, recipe, "train", training=True)

    return make


@pytest.mark.slow
def test_trainer_trains_two_steps_on_the_tensors_of_a_stream(build, tmp_path) -> None:
    model, batches = build()
    before = copy.deepcopy(model.state_dict())
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=1,
        remove_unused_columns=False,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
    )
    trainer = Trainer(model, arguments, lambda items: items[0], Streamed(batches))
    assert trainer.train().global_step == 2
    changed = {
        name for name, weight in model.state_dict().items() if (weight != before[name]).any()
    }
    assert {"objectives.0.projection_GR", "head.classifier.dense.weight"} <= changed
    assert any(name.startswith("encoder.gat") for name in changed)


def test_a_pipeline_classifies_texts(build) -> None:
    model, _ = build("use_syntax=false")
    (folder,) = bundled_tokenizers().values()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    classify = pipeline("text-classification", model=model, tokenizer=tokenizer, device=CPU)
    (found,) = classify(["The dog sees the cat."])
    assert found["label"] in set(model.config.id2label.values())
    assert 0 < found["score"] < 1


# peft asks transformers under a name that transformers has deprecated.
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_peft_trains_adapters_alone(build) -> None:
    model, batches = build()
    before = copy.deepcopy(model.state_dict())
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=["query", "value"]))
    optimizer = torch.optim.SGD([one for one in adapted.parameters() if one.requires_grad], 1.0)
    for batch in batches[:2]:
        optimizer.zero_grad()
        adapted(**batch.tensors()).loss.backward()
        optimizer.step()
    after = adapted.state_dict()
    adapters = {name: weight for name, weight in after.items() if "lora_B" in name}
    assert adapters
    assert all(weight.any() for weight in adapters.values())
    merged = {name.replace(".base_layer", ""): weight for name, weight in after.items()}
    assert all(torch.equal(merged[f"base_model.model.{name}"], old) for name, old in before.items())


@torch.no_grad()
def test_tensors_give_what_the_batch_gives(build) -> None:
    model, batches = build()
    batch = batches[0]
    model.eval()
    (name,) = batch.labels
    tensors = {**batch.tensors(), "labels": batch.labels[name]}
    expected, found = model(batch), model(**tensors)
    assert torch.equal(found.logits, expected.logits[name])
    assert float(found.loss) == float(expected.loss)
    del tensors["upos"]
    with pytest.raises(SpecError, match="no upos; give the tags"):
        model(**tensors)
    with pytest.raises(SpecError, match="carries no distance"):
        model(input_ids=batch.input_ids_BL, attention_mask=batch.attention_mask_BL)
    with pytest.raises(SpecError, match="without `input_ids`"):
        model()
