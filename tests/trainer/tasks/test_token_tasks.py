"""Tagging, and intents with slots: scores against definitions, runs on real parses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report
from sklearn.metrics import fbeta_score

from clients.benchmarks.fce import EDITS
from featurestore import FeatureStore, open_store
from syntax.batches import AssemblySpec
from syntax.errors import SpecError
from syntax.examples import LabelSpec
from tests.trainer.runs import recipes_of
from tests.trainer.tagged import INTENT, NAME, TAGS, append_tagged
from trainer.batch import SyntaxBatch
from trainer.loop import train
from trainer.metrics.entities import entities, entity_scores, tokens_tagged
from trainer.metrics.tagging import tagging_scores, tagging_shares
from trainer.models.outputs import SyntaxOutput
from trainer.options import IntentSlotsOptions, TokenClassificationOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.tasks import TASKS
from trainer.tasks.intent_slots import intent_slots_scores
from trainer.tasks.tokens import piece_loss

CI = st.sampled_from(["c", "i"])
TAG = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B", "E-A", "S-A", "S-B", "E-B", "B", "I"])
SENTENCES = st.lists(st.lists(st.tuples(TAG, TAG), min_size=1, max_size=7), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    with open_store(str(tmp_path_factory.mktemp("tagged") / "store")) as store:
        append_tagged(store, english, tokenizer, "train")
        append_tagged(store, english, tokenizer, "dev")
        yield store


@given(SENTENCES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_entity_scores_equal_seqeval(sentences) -> None:
    gold = [[ours for ours, _ in sentence] for sentence in sentences]
    predicted = [[theirs for _, theirs in sentence] for sentence in sentences]
    if not any(map(entities, [*gold, *predicted])):
        return
    expected = classification_report(gold, predicted, output_dict=True, zero_division=0)
    for name, scores in entity_scores(gold, predicted).items():
        theirs = expected[name or "micro avg"]
        assert scores.precision == pytest.approx(theirs["precision"])
        assert scores.recall == pytest.approx(theirs["recall"])
        assert scores.f1 == pytest.approx(theirs["f1-score"])
        assert scores.support == theirs["support"]


@given(st.lists(st.lists(st.tuples(CI, CI), min_size=1), min_size=1))
def test_scores_of_one_tag_equal_scikit_learns(sentences) -> None:
    pairs = [([ours for ours, _ in one], [theirs for _, theirs in one]) for one in sentences]
    flat = [[tag == "i" for pair in pairs for tag in pair[side]] for side in (0, 1)]
    found = tagging_scores(pairs, 0.0, "f05", tokens_tagged("i"))
    assert (
        found.headline == found.f05 == pytest.approx(fbeta_score(*flat, beta=0.5, zero_division=0))
    )
    assert found.f1 == pytest.approx(fbeta_score(*flat, beta=1, zero_division=0))
    shares = [tagging_shares(*pair, tokens_tagged("i"))["f05"] for pair in pairs]
    total = sum(whole for _, whole in shares)
    assert found.f05 == pytest.approx(sum(part for part, _ in shares) / total if total else 0.0)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.tuples(TAG, TAG), min_size=1)), min_size=1))
def test_an_utterance_is_right_when_its_intent_and_every_tag_are(utterances) -> None:
    intents = np.array([right for right, _ in utterances])
    slots = [([ours for ours, _ in tags], [theirs for _, theirs in tags]) for _, tags in utterances]
    expected = [
        right and all(ours == theirs for ours, theirs in tags) for right, tags in utterances
    ]
    scores = intent_slots_scores(intents, slots, 0.0)
    assert scores.exact_match == pytest.approx(sum(expected) / len(expected))
    assert scores.intent_accuracy == pytest.approx(intents.mean())


def test_the_loss_is_that_of_labelled_pieces_only(make_batch) -> None:
    batch = make_batch(sizes=(4, 3))
    logits = torch.randn(2, 4, 5)
    batch.labels["tags"] = torch.tensor([[-100, 1, -100, 2], [-100, 4, -100, -100]])
    expected = torch.stack(
        [
            torch.nn.functional.cross_entropy(logits[row, at], torch.tensor(tag))
            for row, at, tag in ((0, 1, 1), (0, 3, 2), (1, 1, 4))
        ]
    ).mean()
    assert float(piece_loss(logits, batch, "tags")) == pytest.approx(float(expected))
    assert piece_loss(logits, make_batch(), "tags") is None


def predictions_of(tagged, task, say, **options):
    """Predictions of dev by a model that says something of the targets of each batch."""
    data, scorer = tagged.dataset(NAME, split="dev", lang="en"), task.scorer(None)
    assembly = AssemblySpec(**task.stream_options)
    for arrays in data.stream(batch_size=16, assembly=assembly, **options):
        targets = task.targets(arrays)
        logits = torch.nn.functional.one_hot(
            torch.from_numpy(say(targets["tags"])), len(TAGS.names)
        )
        output = SyntaxOutput(task_loss=torch.tensor(0.0), logits={"tags": logits})
        scorer.add(output, SyntaxBatch.from_numpy(arrays, targets))
    return scorer.predictions()


@pytest.mark.parametrize("pieces", ["first", "words"])
def test_right_pieces_give_right_tokens_and_back(tagged, pieces) -> None:
    """What a perfect model predicts scores 1, however tokens were cut into pieces."""
    options = TokenClassificationOptions(pieces=pieces)
    task = TASKS["token_classification.v1"].task(options, {"tags": TAGS})
    found = predictions_of(tagged, task, lambda gold_BL: np.where(gold_BL < 0, 3, gold_BL))
    assert len(found) == 50
    assert all(one.predicted == one.gold != [] for one in found)


def test_local_attention_is_trained_as_published_as_ever(tagged, tmp_path) -> None:
    """Losses recorded before the release's punctuation and tags became settings."""
    run = train(with_settings(RECIPES["sla-fce"](), [*TINY]), tagged, tmp_path)
    losses = [0.67185, 0.45767, 0.38941, 0.40838, 0.36024]
    assert run.progress.losses == pytest.approx(losses, abs=2e-5)


def test_tags_that_spell_no_entities_have_no_scores_of_entities() -> None:
    """A recipe of six tags on a dataset of two, or of two on one of six, is refused by name."""
    make = TASKS["token_classification.v1"].task
    two, six = LabelSpec("errors", "tags", ("c", "i")), LabelSpec("errors", "tags", EDITS)
    released, published = (RECIPES[name]().task for name in ("sla-fce-as-released", "sla-fce"))
    with pytest.raises(SpecError, match=r"spell none: c, i; set task\.positive"):
        make(released, {"errors": two})
    with pytest.raises(SpecError, match=r"task\.positive is 'i'"):
        make(published, {"errors": six})
    make(published, {"errors": two})
    make(TokenClassificationOptions(label="errors", metric="accuracy"), {"errors": two})


def test_released_fce_is_scored_by_spans() -> None:
    """F0.5 of conlleval's chunks: two of three are found, among four; tokens would count more."""
    gold = ["B-R", "I-R", "I-R", "O", "B-U", "O", "B-M", "O"]
    predicted = ["B-R", "I-R", "I-R", "O", "B-U", "I-U", "B-M", "B-M"]
    task = TASKS["token_classification.v1"].task(
        RECIPES["sla-fce-as-released"]().task, {"errors": LabelSpec("errors", "tags", EDITS)}
    )
    scores = tagging_scores([(gold, predicted)], 0.0, task.metric, task._read)
    precision, recall = 2 / 4, 2 / 3
    assert (scores.precision, scores.recall) == pytest.approx((precision, recall))
    expected = 1.25 * precision * recall / (recall + 0.25 * precision)
    assert scores.headline == pytest.approx(expected)


def test_tokens_that_truncation_cut_off_are_predicted_outside(tagged) -> None:
    task = TASKS["token_classification.v1"].task(TokenClassificationOptions(), {"tags": TAGS})
    for one in predictions_of(tagged, task, np.ones_like, max_length=6):
        assert len(one.predicted) == len(one.gold)
        assert one.predicted[-1] == "O" or len(one.gold) <= 4


TINY = (
    *("data.tokenizer=parsebank-wordpiece-en", f"data.dataset={NAME}", "max_length=64"),
    *("encoder=parsebank-tiny", "weights=random", "learning_rate=0.003", "warmup_steps=0"),
    *("batch_size=10", "epochs=1", "evaluate_every=null", "checkpoint_every=null", "threads=1"),
)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["token_classification.v1", "intent_slots.v1"])
@pytest.mark.parametrize("model", ["syntax_bert.v1", "sla.v1"])
def test_a_run_learns_to_tag(tagged, tmp_path, task, model) -> None:
    root = "true" if model == "syntax_bert.v1" else "false"
    named = [f"task.name={task}", f"model.name={model}", f"data.joint_root={root}"]
    named += ["slots=tags"] if task == "intent_slots.v1" else []
    run = train(with_settings(RECIPES["sample"](), [*named, *TINY, "epochs=12"]), tagged, tmp_path)
    best = run.progress.best
    assert best is not None
    key = "f1" if task == "token_classification.v1" else "slot_f1"
    assert best.scores[key] > 0.6
    assert best.scores[run.task.metric] == best.headline


@pytest.mark.slow_cases
@pytest.mark.parametrize("name", recipes_of("token_classification.v1", "intent_slots.v1"))
def test_every_recipe_of_these_tasks_trains(name, tagged, tmp_path, tiny_encoder) -> None:
    recipe = RECIPES[name]()
    columns = {"ner_tags": ["label=tags"], "slots": ["slots=tags"], "errors": []}
    settings = [*TINY, *columns[recipe.task.columns()[-1]], "max_steps=1"]
    if name == "sla-fce-as-released":  # Tags of spans, and strings of pieces.
        settings += ["label=tags", f"encoder={tiny_encoder}"]
    run = train(with_settings(recipe, settings), tagged, tmp_path)
    assert run.finished
    assert run.progress.best.headline == run.progress.best.scores[recipe.task.metric]


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        (TokenClassificationOptions(), {"tags": INTENT}, "is of kind 'class'"),
        (
            TokenClassificationOptions(),
            {"tags": LabelSpec("tags", "tags", ("O",))},
            "with 1 names",
        ),
        (TokenClassificationOptions(positive="x"), {"tags": TAGS}, "positive is 'x'"),
        (IntentSlotsOptions(), {"intent": TAGS, "slots": TAGS}, "is of kind 'tags'"),
    ],
)
def test_labels_of_another_kind_are_refused(options, labels, message) -> None:
    with pytest.raises(SpecError, match=message):
        TASKS[options.name].task(options, labels)
