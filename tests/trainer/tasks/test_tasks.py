from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from syntax.errors import SpecError, UnknownNameError
from syntax.examples import LabelSpec
from trainer.metrics.classification import classification_scores
from trainer.models.outputs import SyntaxOutput
from trainer.options import SequenceClassificationOptions
from trainer.tasks.sequence_classification import ClassificationScorer, SequenceClassification

NAMES = ("entailment", "neutral", "contradiction")
LABEL = LabelSpec("label", "class", NAMES)


def slow_f1(gold: list[int], predicted: list[int], index: int) -> float:
    """By counting, as in the definition."""
    pairs = list(zip(gold, predicted, strict=True))
    hits = sum(g == p == index for g, p in pairs)
    wrong = sum(p == index != g for g, p in pairs)
    missed = sum(g == index != p for g, p in pairs)
    return 2 * hits / (2 * hits + wrong + missed) if hits else 0.0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_scores_equal_their_definitions(pairs) -> None:
    gold, predicted = [g for g, _ in pairs], [p for _, p in pairs]
    scores = classification_scores(np.array(gold), np.array(predicted), 0.0, NAMES)
    assert scores.metrics["accuracy"] == pytest.approx(sum(g == p for g, p in pairs) / len(pairs))
    f1 = [slow_f1(gold, predicted, index) for index in range(3)]
    assert [scores.per_class[name].f1 for name in NAMES] == pytest.approx(f1)
    assert scores.metrics["macro_f1"] == pytest.approx(sum(f1) / 3)
    assert sum(map(sum, scores.confusion)) == scores.examples == len(pairs)
    assert [sum(row) for row in scores.confusion] == [gold.count(index) for index in range(3)]


def test_examples_without_a_label_are_not_scored() -> None:
    scores = classification_scores(np.array([-1, 1]), np.array([0, 1]), 0.0, NAMES)
    assert (scores.examples, scores.metrics["accuracy"]) == (1, 1.0)
    empty = classification_scores(np.array([-1]), np.array([0]), 0.0, NAMES)
    assert (empty.examples, empty.metrics["accuracy"]) == (0, 0.0)


def test_the_scorer_weighs_batches_by_their_labelled_examples(make_batch) -> None:
    scorer = ClassificationScorer(LABEL)
    logits = torch.eye(3)
    for loss, labels in ((1.0, [0, 1, 2]), (4.0, [0, -1, -1]), (float("nan"), [-1, -1, -1])):
        batch = make_batch()
        batch.labels["label"][:] = torch.tensor(labels)
        scorer.add(SyntaxOutput(task_loss=torch.tensor(loss), logits={"label": logits}), batch)
    scores = scorer.scores()
    assert scores.loss == pytest.approx((3 * 1.0 + 1 * 4.0) / 4)
    assert scores.headline == scores.metrics["accuracy"] == 1.0
    assert scores.examples == 4


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "mcc"])
def test_models_are_selected_on_the_metric_that_the_options_name(metric, make_batch) -> None:
    options = SequenceClassificationOptions(metric=metric)
    task = SequenceClassification(options, {"label": LABEL})
    scorer, batch = task.scorer(None), make_batch()
    scorer.add(SyntaxOutput(task_loss=torch.tensor(1.0), logits={"label": torch.eye(3)}), batch)
    content = scorer.scores().to_json()
    assert content[task.metric] == scorer.scores().headline
    assert content["loss"] == pytest.approx(1.0)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_matthews_of_two_classes_equals_the_textbook(pairs) -> None:
    gold, predicted = (np.array(side, int) for side in zip(*pairs, strict=True))
    (tn, fp), (fn, tp) = (
        [int(((gold == g) & (predicted == p)).sum()) for p in (0, 1)] for g in (0, 1)
    )
    spread = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    expected = (tp * tn - fp * fn) / spread**0.5 if spread else 0.0
    scores = classification_scores(gold, predicted, 0.0, ("no", "yes"))
    assert scores.metrics["mcc"] == pytest.approx(expected)


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"class metric 'f2'.*accuracy, macro_f1, mcc"):
        SequenceClassification(SequenceClassificationOptions(metric="f2"), {"label": LABEL})


def test_a_label_of_another_kind_is_refused() -> None:
    score = {"label": LabelSpec("score", "float")}
    with pytest.raises(SpecError, match="'score' is of kind 'float'"):
        SequenceClassification(SequenceClassificationOptions(), score)
