"""What scores without a model, computed again here from the same labels in plain loops."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from seqeval.metrics import f1_score as entity_f1
from sklearn.metrics import f1_score

from featurestore import FeatureStore, open_store
from service.parsers import Limits, ParseInput
from tests.trainer.everything import CHOICE, append_everything, recipe_for
from tests.trainer.related import NAME as RELATED
from tests.trainer.related import append_related, write_related
from tests.trainer.tagged import INTENT, sentences
from tests.trainer.tagged import NAME as TAGGED
from trainer.data import open_source
from trainer.evaluation.baseline import baseline_scores, training_data
from trainer.metrics.answers import answer_scores
from trainer.metrics.probes import edges_of
from trainer.options import SequenceClassificationOptions, StructuralProbeOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.results import read_result
from trainer.tasks import TASKS
from trainer.tasks.base import Baseline
from trainer.tasks.classes import majority_class
from trainer.tasks.questions import FrequentSpan
from trainer.tasks.sequence_classification import SequenceClassification

SETTINGS = ("tokenizer=parsebank-wordpiece-en",)


@pytest.fixture(scope="module")
def everything(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    with open_store(tmp_path_factory.mktemp("baselines")) as store:
        append_everything(store, english, tokenizer, "train", 30)
        append_everything(store, english, tokenizer, "dev", 20, 30)
        yield store


def scored(store: FeatureStore, task: str, *settings: str) -> tuple[Baseline, float]:
    recipe = recipe_for(task, *SETTINGS, *settings)
    train, dev = (open_source(store, recipe, split, "en") for split in ("train", "dev"))
    baseline = train.task.baseline(train.dataset)
    return baseline, baseline.score(dev.dataset)


def column(store: FeatureStore, split: str, name: str) -> list:
    data = store.dataset("everything", split=split, lang="en")
    return data.columns([name])[name].to_pylist()


def test_majority_class_of_training_scores_dev(everything) -> None:
    majority = Counter(column(everything, "train", "intent")).most_common(1)[0][0]
    gold = column(everything, "dev", "intent")
    baseline, score = scored(everything, "sequence_classification.v1")
    assert baseline.name == "majority class"
    assert score == pytest.approx(sum(one == majority for one in gold) / len(gold))
    assert 0 < score < 1
    _, macro = scored(everything, "sequence_classification.v1", "task.metric=macro_f1")
    expected = f1_score(gold, [majority] * len(gold), average="macro", labels=list(INTENT.names))
    assert macro == pytest.approx(expected)


def test_majority_class_counts_labelled_examples_and_breaks_ties_by_order(
    tmp_path, sample_rows, append_rows
) -> None:
    first = sample_rows["train"][0]
    values = ("neutral", "contradiction", None, None, None, "contradiction", "neutral")
    rows = [
        replace(first, seq=at, example_id=f"x{at}", example_key=f"{at:032x}", labels={"label": one})
        for at, one in enumerate(values)
    ]
    with open_store(tmp_path) as store:
        append_rows(store, rows, "train", "en")
        data = store.dataset("sample", split="train", lang="en")
        (label,) = data.labels
        counts = {name: values.count(name) for name in label.names}
        assert label.names[majority_class(data, label)] == max(counts, key=counts.__getitem__)


def test_majority_choice_is_the_one_that_is_right_most_often(everything) -> None:
    baseline, score = scored(everything, "multiple_choice.v1")
    gold = column(everything, "dev", "choice")
    assert baseline.name == "majority class"
    assert score == gold.count(CHOICE.names[0]) / len(gold)


def tokens_of(store: FeatureStore, split: str) -> list[tuple[list[str], list[str]]]:
    """The passages are of tokens that single spaces join."""
    texts, tags = column(store, split, "texts"), column(store, split, "tags")
    return [(text[0].split(" "), own) for text, own in zip(texts, tags, strict=True)]


def lexicon_of(store: FeatureStore) -> tuple[dict[str, str], str]:
    pairs = [pair for example in tokens_of(store, "train") for pair in zip(*example, strict=True)]
    counts: dict[str, Counter[str]] = {}
    for form, tag in pairs:
        counts.setdefault(form, Counter())[tag] += 1
    names = ("O", "B-THING", "I-THING", "B-ACT", "I-ACT")
    most = {form: max(names, key=lambda tag: of[tag]) for form, of in counts.items()}
    return most, Counter(tag for _, tag in pairs).most_common(1)[0][0]


def test_tags_are_those_that_a_form_has_most_often_in_training(everything) -> None:
    known, default = lexicon_of(everything)
    dev = tokens_of(everything, "dev")
    predicted = [[known.get(form, default) for form in forms] for forms, _ in dev]
    baseline, score = scored(everything, "token_classification.v1")
    assert baseline.name == "most frequent tag per form"
    assert score == pytest.approx(entity_f1([tags for _, tags in dev], predicted))
    assert 0 < score < 1
    flat = [
        pair
        for (_, tags), own in zip(dev, predicted, strict=True)
        for pair in zip(tags, own, strict=True)
    ]
    _, accuracy = scored(everything, "token_classification.v1", "task.metric=accuracy")
    assert accuracy == pytest.approx(sum(a == b for a, b in flat) / len(flat))


@pytest.mark.parametrize("metric", ["exact_match", "intent_accuracy", "slot_f1"])
def test_utterances_have_the_majority_intent_and_the_tags_of_their_forms(
    everything, metric
) -> None:
    known, default = lexicon_of(everything)
    majority = Counter(column(everything, "train", "intent")).most_common(1)[0][0]
    dev, intents = tokens_of(everything, "dev"), column(everything, "dev", "intent")
    predicted = [[known.get(form, default) for form in forms] for forms, _ in dev]
    right = [intent == majority for intent in intents]
    whole = [
        is_right and own == tags
        for is_right, own, (_, tags) in zip(right, predicted, dev, strict=True)
    ]
    expected = {
        "exact_match": sum(whole) / len(whole),
        "intent_accuracy": sum(right) / len(right),
        "slot_f1": entity_f1([tags for _, tags in dev], predicted),
    }
    _, score = scored(everything, "intent_slots.v1", f"task.metric={metric}")
    assert score == pytest.approx(expected[metric])


def test_answers_stand_where_most_training_answers_stand(everything) -> None:
    places: Counter[tuple[int, int]] = Counter()
    for split in ("train", "dev"):
        rows = zip(
            column(everything, split, "texts"), column(everything, split, "answers"), strict=True
        )
        if split == "train":
            for (passage, *_), ((answer, *_)) in rows:
                first = passage[: answer["start_char"]].count(" ")
                last = first + passage[answer["start_char"] : answer["end_char"]].count(" ")
                places[first, last] += 1
            best = max(places.values())
            first, last = min(place for place, count in places.items() if count == best)
            continue
        scores = []
        for (passage, *_), (answer, *_) in rows:
            words = passage.split(" ")
            end = min(last, len(words) - 1)
            text = " ".join(words[min(first, end) : end + 1])
            gold = passage[answer["start_char"] : answer["end_char"]]
            scores.append(answer_scores(text, [gold], "en", "squad"))
    baseline, f1 = scored(everything, "extractive_qa.v1")
    assert baseline.name == "most frequent span"
    assert f1 == pytest.approx(sum(one for _, one in scores) / len(scores))
    _, exact = scored(everything, "extractive_qa.v1", "task.metric=exact_match")
    assert exact == pytest.approx(sum(one for one, _ in scores) / len(scores))


def test_no_answer_is_a_place_of_its_own() -> None:
    assert FrequentSpan(None).name == "no answer"
    assert FrequentSpan(None).text("Time flies.") == ""
    assert FrequentSpan((1, 5)).text("Time flies fast.") == "flies fast."
    assert FrequentSpan((4, 5)).text("Time flies fast.") == "fast."
    assert FrequentSpan((0, 0)).text("") == ""


def test_majority_relation_is_scored_without_the_null_class(tmp_path, english, tokenizer) -> None:
    write_related(tmp_path / "ace", english)
    recipe = RECIPES["gate-relation"]()
    settings = (*SETTINGS, f"data.dataset={RELATED}", "model.name=syntax_bert.v1")
    with open_store(tmp_path / "store") as store:
        for split in ("train", "dev"):
            append_related(store, tokenizer, tmp_path / "ace", split)
        chosen = with_settings(recipe, settings)
        train, dev = (open_source(store, chosen, split, "en") for split in ("train", "dev"))
        baseline = train.task.baseline(train.dataset)
        gold = dev.dataset.columns(["relation"])["relation"].to_pylist()
        names = train.labels["relation"].names
        counts = Counter(train.dataset.columns(["relation"])["relation"].to_pylist())
        majority = max(names, key=lambda name: counts[name])
        said = [majority] * len(gold)
        real = [name for name in names if name != "no_relation"]
        expected = f1_score(gold, said, average="micro", labels=real, zero_division=0)
        assert baseline.score(dev.dataset) == pytest.approx(expected)


@pytest.mark.parametrize("target", ["distance", "depth"])
def test_words_hang_from_their_neighbours_in_the_baseline_of_probes(
    tagger, english, target
) -> None:
    """Against trees of the parser itself: distances by walking up, edges between neighbours."""
    hits = total = 0
    for line in sentences():
        forms = tuple(english.parse(ParseInput("raw", line), Limits()).form)
        parse = english.parse(ParseInput("pretokenized", tokens=forms), Limits())
        bounds = [*parse.sentence_first_word, len(parse.form)]
        for start, end in pairwise(bounds):
            heads, kept = parse.head[start:end], np.array(parse.upos[start:end]) != "PUNCT"
            place = np.flatnonzero(kept).tolist()
            if target == "depth":
                depth = np.array([len(_path(heads, word)) for word in range(len(heads))])
                total += bool(place)
                hits += bool(place) and place[0] == place[int(np.argmin(depth[kept]))]
                continue
            gold = edges_of(_distances(heads), kept)
            hits += len(gold & set(pairwise(place)))
            total += len(gold)
    options = StructuralProbeOptions(target=target)
    task = TASKS["structural_probe.v1"].task(options, {})
    with open_store(tagger[1]) as store:
        data = store.dataset(TAGGED, split="dev", lang="en")
        baseline = task.baseline(data)
        assert baseline.name == "linear chain"
        assert baseline.score(data) == pytest.approx(hits / total)


def _path(heads: list[int], word: int) -> list[int]:
    path = [word]
    while heads[path[-1]]:
        path.append(heads[path[-1]] - 1)
    return path


def _distances(heads: list[int]) -> np.ndarray:
    paths = [_path(heads, word) for word in range(len(heads))]
    return np.array([[len(set(a) ^ set(b)) for b in paths] for a in paths], float)


def test_the_baseline_is_in_the_result_and_beside_every_language(trained, store) -> None:
    from trainer.evaluation.transfer import evaluate_run
    from trainer.results import markdown

    result = read_result(trained)
    found = result["baseline"]
    assert (found["name"], found["metric"]) == ("majority class", "accuracy")
    assert f"| baseline (majority class) | {found['score']:.4f} |" in markdown(result)
    table = evaluate_run(trained, store, "dev")
    assert table.header() == ("language", "examples", "accuracy", "majority class")
    assert {len(row) for row in table.rows()} == {4}
    content = table.to_json()["languages"]
    assert content["en"]["baseline"] == content["fr"]["baseline"] == found


def test_a_result_without_a_baseline_is_still_shown(trained) -> None:
    from trainer.results import markdown

    old = {key: value for key, value in read_result(trained).items() if key != "baseline"}
    assert "baseline" not in markdown(json.loads(json.dumps(old)))


def test_without_the_training_data_there_is_no_baseline(
    trained, tmp_path, sample_rows, append_rows
) -> None:
    from trainer.evaluation.transfer import evaluate_run
    from trainer.results import recipe_of

    with open_store(tmp_path) as store:
        append_rows(store, sample_rows["dev"], "dev", "en")
        assert training_data(store, recipe_of(trained)) is None
        table = evaluate_run(trained, store, "dev")
    assert table.baselines == {}
    assert table.header() == ("language", "examples", "accuracy")
    assert "baseline" not in table.to_json()["languages"]["en"]


def test_learning_trees_alone_has_no_baseline(store) -> None:
    task = TASKS["trees.v1"]
    data = store.dataset("sample", split="dev", lang="en")
    assert baseline_scores(task.task(task.options(), {}), data, {"dev": data}) == {}


class WithoutBaseline(SequenceClassification):
    """A task whose baseline fails, as that of a plugin may."""

    def baseline(self, train):
        raise ValueError("no such column")


def test_a_baseline_that_fails_leaves_the_scores_of_the_model(everything, caplog) -> None:
    source = open_source(
        everything, recipe_for("sequence_classification.v1", *SETTINGS), "dev", "en"
    )
    task = WithoutBaseline(SequenceClassificationOptions(label="intent"), source.labels)
    assert baseline_scores(task, source.dataset, {"dev": source.dataset}) == {}
    assert "the baseline failed" in caplog.text
