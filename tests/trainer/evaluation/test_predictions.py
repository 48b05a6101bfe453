"""Predictions of single examples: they add up to the scores, and survive the disk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef

from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from tests.trainer.tagged import INTENT, NAME, TAGS, append_tagged
from trainer.batch import SyntaxBatch
from trainer.evaluation.predictions import Prediction, read_predictions, write_predictions
from trainer.metrics.classification import classification_scores
from trainer.models.outputs import SyntaxOutput
from trainer.options import (
    IntentSlotsOptions,
    MultipleChoiceOptions,
    SequenceClassificationOptions,
    TokenClassificationOptions,
)
from trainer.tasks import TASKS

LABEL = LabelSpec("label", "class", ("entailment", "neutral", "contradiction"))


def metric_of(predictions: list[Prediction], metric: str) -> float:
    """A metric from the shares of examples, as a reader of the file would."""
    shares = [one.shares[metric] for one in predictions if one.gold is not None]
    return sum(part for part, _ in shares) / sum(whole for _, whole in shares)


def assert_adds_up(scorer, metrics: list[str]) -> None:
    content = scorer.scores().to_json()
    for metric in metrics:
        assert metric_of(scorer.predictions(), metric) == pytest.approx(content[metric])


def output_of(logits: dict[str, torch.Tensor]) -> SyntaxOutput:
    return SyntaxOutput(task_loss=torch.tensor(1.0), logits=logits)


def test_classes_are_named_with_their_probability(make_batch) -> None:
    scorer = (
        TASKS["sequence_classification.v1"]
        .task(SequenceClassificationOptions(), {"label": LABEL})
        .scorer(None)
    )
    batch = make_batch()
    batch.labels["label"][:] = torch.tensor([0, 2, -1])
    scorer.add(output_of({"label": 5 * torch.eye(3)}), batch)
    right, wrong, unknown = scorer.predictions()
    assert right == Prediction(
        "example-0", "entailment", "entailment", True, {"accuracy": (1.0, 1.0)}, right.probability
    )
    assert right.probability == pytest.approx(float((5 * torch.eye(3)).softmax(-1)[0, 0]))
    assert (wrong.gold, wrong.predicted, wrong.right) == ("contradiction", "neutral", False)
    assert (unknown.gold, unknown.predicted, unknown.right) == (None, "contradiction", None)
    assert_adds_up(scorer, ["accuracy"])


def test_a_choice_is_named_once_for_its_example(make_batch) -> None:
    batch = make_batch(sizes=(4, 4, 4, 4))
    choice = torch.tensor([0, 1, 0, 1])
    batch = replace(
        batch, extras={"choice_index": choice}, example_ids=("one", "one", "two", "two")
    )
    batch.labels["label"][:] = torch.tensor([1, 1, 0, 0])
    label = LabelSpec("label", "class", ("A", "B"))
    scorer = (
        TASKS["multiple_choice.v1"].task(MultipleChoiceOptions(), {"label": label}).scorer(None)
    )
    scorer.add(output_of({"label": torch.tensor([[0.0, 1.0], [0.0, 1.0]])}), batch)
    found = [(one.example_id, one.gold, one.predicted) for one in scorer.predictions()]
    assert found == [("one", "B", "B"), ("two", "A", "B")]
    assert_adds_up(scorer, ["accuracy"])


@pytest.mark.parametrize(
    ("name", "options", "metrics"),
    [
        (
            "token_classification.v1",
            TokenClassificationOptions(),
            ["f1", "precision", "recall", "accuracy"],
        ),
        (
            "intent_slots.v1",
            IntentSlotsOptions(slots="tags"),
            ["exact_match", "intent_accuracy", "slot_f1", "slot_precision", "slot_recall"],
        ),
    ],
)
def test_tags_add_up_to_their_scores(tmp_path, english, tokenizer, name, options, metrics) -> None:
    from featurestore import open_store

    task = TASKS[name].task(options, {"tags": TAGS, "intent": INTENT})
    scorer, rng = task.scorer(None), torch.Generator().manual_seed(0)
    with open_store(tmp_path) as store:
        append_tagged(store, english, tokenizer, "dev")
        data = store.dataset(NAME, split="dev", lang="en")
        for arrays in data.stream(batch_size=16, assembly=AssemblySpec(**task.stream_options)):
            gold = {key: torch.from_numpy(v) for key, v in task.targets(arrays).items()}
            logits = {
                key: torch.nn.functional.one_hot(value.clamp(0), 5) * 2.0
                + torch.randn(*value.shape, 5, generator=rng)
                for key, value in gold.items()
            }
            logits = {key: v[..., :2] if key == "intent" else v for key, v in logits.items()}
            scorer.add(output_of(logits), SyntaxBatch.from_numpy(arrays, task.targets(arrays)))
        names = set(data.columns(["example_id"])["example_id"].to_pylist())
    assert {one.example_id for one in scorer.predictions()} == names
    assert any(one.right is False for one in scorer.predictions())
    assert_adds_up(scorer, metrics)


CLASSES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)


@given(CLASSES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_class_scores_equal_scikit_learns(pairs) -> None:
    gold, predicted = (np.array(side) for side in zip(*pairs, strict=True))
    scores = classification_scores(gold, predicted, 0.0, LABEL.names)
    expected = f1_score(gold, predicted, labels=[0, 1, 2], average="macro", zero_division=0)
    assert scores.metrics["macro_f1"] == pytest.approx(expected)
    assert scores.metrics["mcc"] == pytest.approx(matthews_corrcoef(gold, predicted), abs=1e-9)


def test_predictions_survive_the_disk(tmp_path) -> None:
    predictions = [
        Prediction("ü-1", "yes", "no", False, {"accuracy": (0.0, 1.0)}, 0.5),
        Prediction("2", None, ["O", "B-LOC"]),
        Prediction("3", {"intent": "a"}, {"intent": "a"}, True, {"f1": (2.0, 4.0)}),
    ]
    write_predictions(predictions, tmp_path / "p.jsonl")
    assert read_predictions(tmp_path / "p.jsonl") == predictions


BROKEN = {
    "cut": "{",
    "list": "[]",
    "no shares": '{"example_id": "1"}',
    "half a share": '{"shares": {"f1": [1]}}',
    "deep": "[" * 200_000,
}


@pytest.mark.parametrize("line", BROKEN.values(), ids=BROKEN)
def test_a_line_that_is_no_prediction_is_named(tmp_path, line) -> None:
    path = tmp_path / "p.jsonl"
    write_predictions([Prediction("1", None, "no")], path)
    path.write_text(path.read_text("utf-8") + line + "\n", "utf-8")
    with pytest.raises(SpecError, match="line 2 is not a prediction"):
        read_predictions(path)
