"""Relations between mentions: scores against scikit-learn's, mentions and tags of positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_score, recall_score

from syntax.errors import SpecError
from syntax.examples import LabelSpec
from trainer.metrics.relations import relation_scores
from trainer.models.outputs import SyntaxOutput
from trainer.options import RelationOptions
from trainer.tasks.mentions import mention_ids, token_tag_ids
from trainer.tasks.relation import Relation, max_over

NAMES = ("part", "no_relation", "role", "place")
LABELS = {
    "relation": LabelSpec("relation", "class", NAMES),
    "subject": LabelSpec("subject", "spans", ("PER",)),
    "object": LabelSpec("object", "spans", ("ORG",)),
    "ner": LabelSpec("ner", "tags", ("O", "PER")),
}
IDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@given(IDS)
def test_scores_equal_those_of_scikit_learn_without_the_class_for_none(pairs) -> None:
    gold, predicted = np.array(pairs).T
    scores = relation_scores(gold, predicted, NAMES, "no_relation")
    options = {"labels": [0, 2, 3], "average": "micro", "zero_division": 0.0}
    assert scores.f1 == pytest.approx(f1_score(gold, predicted, **options))
    assert scores.precision == pytest.approx(precision_score(gold, predicted, **options))
    assert scores.recall == pytest.approx(recall_score(gold, predicted, **options))
    each = f1_score(gold, predicted, labels=[0, 2, 3], average=None, zero_division=0.0)
    assert [one.f1 for one in scores.per_class.values()] == pytest.approx(each.tolist())


def test_precision_of_no_answer_is_nothing_and_one_as_released() -> None:
    """The release defines it as 1: a model that never answers would look precise."""
    gold, silent = np.array([0, 2, 1]), np.array([1, 1, 1])
    published = relation_scores(gold, silent, NAMES, "no_relation")
    assert (published.precision, published.recall, published.f1) == (0.0, 0.0, 0.0)
    released = relation_scores(gold, silent, NAMES, "no_relation", empty_precision=1.0)
    assert (released.precision, released.f1) == (1.0, 0.0)


def test_the_class_for_none_may_stand_anywhere_and_unlabelled_pairs_do_not_count() -> None:
    scores = relation_scores(np.array([-1, 1, 0]), np.array([0, 1, 0]), NAMES, "no_relation")
    assert (scores.examples, scores.f1, scores.accuracy) == (2, 1.0, 1.0)
    assert "no_relation" not in scores.per_class


class _Batch:
    """What a scorer reads of a batch."""

    def __init__(self, gold: list[int]) -> None:
        self.labels = {"relation": torch.tensor(gold)}
        self.example_ids = tuple(f"e{number}" for number in range(len(gold)))


def test_predictions_add_up_to_the_scores() -> None:
    scorer = Relation(RelationOptions(), LABELS).scorer(None)
    for gold, said in (([0, 1, 2], [0, 2, 1]), ([3, -1], [3, 0])):
        logits = torch.nn.functional.one_hot(torch.tensor(said), 4).float()
        scorer.add(
            SyntaxOutput(task_loss=torch.tensor(1.0), logits={"relation": logits}), _Batch(gold)
        )
    scores, predictions = scorer.scores(), scorer.predictions()
    for metric in ("f1", "accuracy"):
        shares = [one.shares[metric] for one in predictions if one.shares]
        hits, total = (sum(part) for part in zip(*shares, strict=True))
        assert hits / total == pytest.approx(getattr(scores, metric))
    assert predictions[1].predicted == "role"
    assert predictions[4].right is None


def arrays() -> dict[str, object]:
    return {
        "segment_ids": np.array([[-1, 0, 0, 0, -1], [-1, 0, 0, -1, -1]]),
        "offset_mapping": np.array(
            [
                [[0, 0], [0, 4], [5, 8], [8, 10], [0, 0]],
                [[0, 0], [0, 2], [3, 9], [0, 0], [0, 0]],
            ]
        ),
        "token_ids": np.array([[-1, 0, 1, 1, -1], [-1, 0, 1, -1, -1]]),
        "example_id": ["a", "b"],
    }


def test_mentions_are_what_covers_any_of_their_characters() -> None:
    spans = [np.array([[6, 9, 1]]), np.array([[0, 2, -1]])]
    found = mention_ids({**arrays(), "subject": spans}, "subject")
    assert found.tolist() == [[0, 0, 3, 3, 0], [0, 1, 0, 0, 0]]


def test_a_mention_that_was_cut_off_is_refused_by_name() -> None:
    spans = [np.array([[6, 9, 1]]), np.array([[20, 22, 0]])]
    with pytest.raises(SpecError, match=r"the subject of example 'b' is left; raise data.max_"):
        mention_ids({**arrays(), "subject": spans}, "subject")
    spans[1] = np.empty((0, 3), np.int64)
    with pytest.raises(SpecError, match="example 'b' has no subject"):
        mention_ids({**arrays(), "subject": spans}, "subject")


def test_positions_have_the_tag_of_their_token() -> None:
    tags = [np.array([4, 0]), np.array([], np.int64)]
    found = token_tag_ids({**arrays(), "ner": tags}, "ner")
    assert found.tolist() == [[0, 5, 1, 1, 0], [0, 0, 0, 0, 0]]


def test_the_largest_of_chosen_positions() -> None:
    states = torch.tensor([[[1.0, -5.0], [3.0, -2.0], [9.0, 9.0]]])
    assert max_over(states, torch.tensor([[True, True, False]])).tolist() == [[3.0, -2.0]]


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("relation", LabelSpec("relation", "string"), "relation extraction needs"),
        ("relation", LabelSpec("relation", "class", ("a", "b")), "no class 'no_relation'"),
        ("object", LabelSpec("object", "class", ("a", "b")), "relation.v1 needs 'spans'"),
        ("ner", LabelSpec("ner", "spans"), "relation.v1 needs 'tags'"),
    ],
)
def test_columns_of_another_kind_are_refused(name, spec, message) -> None:
    with pytest.raises(SpecError, match=message):
        Relation(RelationOptions(), {**LABELS, name: spec})


def test_tags_may_be_left_out() -> None:
    options = RelationOptions(tags=None)
    assert options.columns() == ("relation", "subject", "object")
    found = Relation(options, LABELS).targets(
        {
            **arrays(),
            "relation": np.array([0, 1]),
            "subject": [np.array([[0, 4, 0]])] * 2,
            "object": [np.array([[0, 9, 0]])] * 2,
        }
    )
    assert sorted(found) == ["object", "relation", "subject"]
