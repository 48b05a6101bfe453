"""Extracted answers: scores against public scorers, losses against definitions, real passages."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.text import squad
from transformers import BertConfig

from featurestore import ExampleRow, FeatureStore, open_store
from syntax.batches import AssemblySpec
from syntax.errors import SpecError, UnknownNameError
from syntax.examples import DatasetSpec, LabelSpec, SpanLabel
from tests.trainer.rows import parsed_row, write_rows
from tests.trainer.runs import finished, recipes_of
from tests.trainer.tagged import sentences
from trainer.batch import SyntaxBatch
from trainer.evaluation.transfer import evaluate_crossed, evaluate_run, write_table
from trainer.evaluation.verifier import Weights, verify_run
from trainer.loop import train
from trainer.metrics.answers import answer_scores, best_threshold, normalised
from trainer.models.config import SyntaxConfig
from trainer.models.outputs import SyntaxEncoding, SyntaxOutput
from trainer.options import ExtractiveQaOptions, StockOptions
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.tasks.extractive_qa import ExtractiveQa, ExtractiveQaHead
from trainer.tasks.questions import LOWEST, best_spans, shared_loss

ANSWERS = LabelSpec("answers", "spans", field="passage")
ANSWERABLE = LabelSpec("answerable", "class", ("no", "yes"))
WORD = st.sampled_from(["the", "a", "Elbe", "elbe,", "river", "--", "1,000", "an"])
ANSWER = st.lists(WORD, max_size=4).map(" ".join)


def public_scores(said: str, golds: list[str]) -> tuple[float, float]:
    """By torchmetrics: SQuAD 1.1's script, but for the F1 of answers of no words (2.0's)."""
    answers = {"answer_start": [0] * len(golds), "text": golds}
    found = squad([{"prediction_text": said, "id": "1"}], [{"answers": answers, "id": "1"}])
    return float(found["exact_match"]) / 100, float(found["f1"]) / 100


def f1_of_squad1(said: str, gold: str) -> float:
    """Rajpurkar et al. 2016's own script, spelt out."""
    shared = sum((Counter(normalised(said)) & Counter(normalised(gold))).values())
    return 2 * shared / (len(normalised(said)) + len(normalised(gold))) if shared else 0.0


@given(ANSWER, st.lists(ANSWER, min_size=1, max_size=3))
def test_scores_equal_the_public_scorer(said, golds) -> None:
    """Also where normalisation leaves nothing: there SQuAD 1.1 and 2.0 differ."""
    exact, f1 = answer_scores(said, golds)
    assert exact == public_scores(said, golds)[0]
    assert f1 == pytest.approx(max(f1_of_squad1(said, gold) for gold in golds))
    if normalised(said):
        assert f1 == pytest.approx(public_scores(said, golds)[1], abs=1e-5)
    left = [gold for gold in golds if normalised(gold)] or [""]
    assert answer_scores(said, golds, rules="squad2") == pytest.approx(
        public_scores(said, left), abs=1e-5
    )


@pytest.mark.parametrize(("said", "scores"), [("", (1.0, 1.0)), ("Elbe", (0.0, 0.0))])
def test_no_answer_is_an_answer(said, scores) -> None:
    """SQuAD 2.0's rules."""
    assert answer_scores(said, [], rules="squad2") == scores


@pytest.mark.parametrize("rules", ["squad", "mlqa"])
def test_an_answer_of_which_nothing_is_left_shares_no_word(rules) -> None:
    """As in the scripts of SQuAD 1.1 and MLQA, whose F1 is 0 without a shared word."""
    assert answer_scores("", ["--"], rules=rules) == (1.0, 0.0)
    assert answer_scores("", ["--", "Elbe"], rules=rules) == (1.0, 0.0)
    assert answer_scores("Elbe", ["--"], rules=rules) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("options", "dataset", "rules"),
    [
        ({}, "squad", "squad"),
        ({}, "xquad", "squad"),
        ({}, "mlqa", "mlqa"),
        ({"no_answer": True}, "squad", "squad2"),
        ({"rules": "mlqa"}, "xquad", "mlqa"),
    ],
)
def test_each_dataset_is_scored_by_its_own_rules_unless_told(options, dataset, rules) -> None:
    assert ExtractiveQaOptions(**options).rules_of(dataset) == rules


@pytest.mark.parametrize(
    ("text", "lang", "words"),
    [
        ("Die Elbe, in der Schweiz", "de", ["elbe", "in", "schweiz"]),
        ("El río «Ebro»", "es", ["río", "ebro"]),
        ("长江在中国", "zh", ["长", "江", "在", "中", "国"]),
        ("Windows 95系统", "zh", ["windows", "95", "系", "统"]),
        ("the Elbe", "hi", ["the", "elbe"]),
    ],
)
def test_mlqa_compares_each_language_by_its_own_rules(text, lang, words) -> None:
    assert normalised(text, lang, "mlqa") == words


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(-3, 3), st.booleans()), min_size=1, max_size=8)
)
def test_the_best_threshold_is_the_best_of_all(questions) -> None:
    scores = [0.0 if none else score for score, _, none in questions]
    differences = [float(difference) for _, difference, _ in questions]
    silent = [float(none) for _, _, none in questions]

    def mean(threshold: float) -> float:
        rows = zip(scores, differences, silent, strict=True)
        return sum(none if diff > threshold else said for said, diff, none in rows) / len(scores)

    threshold, best = best_threshold(scores, differences, silent)
    assert best == pytest.approx(mean(threshold))
    assert best == pytest.approx(max(mean(value) for value in [-9.0, *differences]))


@given(st.data())
def test_the_shared_loss_runs_over_all_sequences_of_an_example(data) -> None:
    """Fails where each sequence has a softmax of its own."""
    B, L = 5, 4
    seed = data.draw(st.integers(0, 99))
    logits = torch.randn(B, L, generator=torch.Generator().manual_seed(seed))
    example = torch.tensor([0, 0, 1, 1, 2])
    gold = torch.tensor(data.draw(st.lists(st.integers(-1, L - 1), min_size=B, max_size=B)))
    losses = []
    for index in range(3):
        rows = [row for row in range(B) if example[row] == index]
        hits = [math.exp(logits[row, gold[row]]) for row in rows if gold[row] >= 0]
        every = [math.exp(logits[row, at]) for row in rows for at in range(L)]
        if hits:
            losses.append(-math.log(sum(hits) / sum(every)))
    expected = sum(losses) / len(losses) if losses else 0.0
    assert float(shared_loss(logits, gold, example)) == pytest.approx(expected, abs=1e-4)


def test_the_loss_of_the_sentence_head_equals_its_slow_twin(batch_for) -> None:
    """Ahmad et al. 2021, appendix A: one softmax over the sentences of each passage."""
    batch = batch_for(StockOptions(), sizes=(5, 6, 4, 5, 7))
    example, gold = [0, 0, 1, 1, 1], [2, -100, -100, 1, 2]
    batch = replace(
        batch,
        labels={"start": torch.tensor(gold), "end": torch.tensor(gold)},
        extras={
            "example_index": torch.tensor(example),
            "segment_ids": torch.ones_like(batch.input_ids_BL),
        },
    )
    losses, states = {}, torch.randn(*batch.input_ids_BL.shape, 16)
    for sentence_head in (False, True):
        torch.manual_seed(1)
        task = ExtractiveQaOptions(sentence_head=sentence_head, normalisation="passage")
        config = SyntaxConfig(
            encoder=BertConfig(hidden_size=16).to_dict(),
            model={"name": "stock.v1"},
            task=asdict(task),
        )
        head = ExtractiveQaHead(config, 16).eval()
        output = head(SyntaxEncoding(last_hidden_state=states), batch)
        losses[sentence_head] = output.loss.item()
    scores = [head.sentence(one[0]).item() for one in states]
    assert output.logits["sentence"].tolist() == pytest.approx(scores, abs=1e-5)
    expected = []
    for passage in (0, 1):
        rows = [row for row in range(5) if example[row] == passage]
        right = [math.exp(scores[row]) for row in rows if gold[row] >= 0]
        expected.append(-math.log(sum(right) / sum(math.exp(scores[row]) for row in rows)))
    assert losses[True] - losses[False] == pytest.approx(sum(expected) / 2, abs=1e-4)


def test_a_passage_without_any_position_gives_no_nan() -> None:
    logits = torch.full((2, 3), LOWEST).requires_grad_()
    shared_loss(logits, torch.tensor([-1, -1]), torch.tensor([0, 1])).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


@given(st.integers(0, 50), st.integers(1, 4))
def test_the_best_span_is_the_best_of_all(seed, longest) -> None:
    generator = torch.Generator().manual_seed(seed)
    start, end = torch.randn(2, 2, 6, generator=generator)
    ours = torch.rand(2, 6, generator=generator) < 0.7
    score, first, last = best_spans(start, end, ours, longest)
    for row in range(2):
        allowed = [
            (float(start[row, i] + end[row, j]), i, j)
            for i, j in product(range(6), repeat=2)
            if ours[row, i] and ours[row, j] and i <= j < i + longest
        ]
        best = max(allowed, default=(-math.inf, 0, 0))
        assert float(score[row]) == pytest.approx(best[0])
        if allowed:
            assert (int(first[row]), int(last[row])) == best[1:]


PASSAGES = 16


@pytest.fixture(scope="module")
def qa(tmp_path_factory, english, tokenizer) -> Iterator[FeatureStore]:
    """What is the last word of a passage of three sentences? Every fourth question has none.

    The test split does not say which of them have one.
    """
    rows, lines = [], sentences()
    for seq in range(PASSAGES):
        passage = " ".join(lines[seq : seq + 3])
        texts = ("Which word comes last?" if seq % 4 else "What is not said?", passage)
        last = SpanLabel(passage.rindex(" ") + 1, len(passage) - 1)
        spans = (last,) if seq % 4 else ()
        rows.append(row_of(english, tokenizer, seq, f"qa-{seq}", texts, spans))
    blind = [row if row.labels["answers"] else replace(row, labels={}) for row in rows]
    with open_store(str(tmp_path_factory.mktemp("qa") / "store")) as store:
        for split in ("train", "dev", "test"):
            chosen = blind if split == "test" else rows
            write_rows(store, english, tokenizer, spec_of("squad", split, "en"), chosen)
        yield store


def row_of(parser, tokenizer, seq, name, texts, spans) -> ExampleRow:
    """A question and its passage, and where its answers are."""
    labels = {"answers": spans, "answerable": "yes" if spans else "no"}
    return parsed_row(parser, tokenizer, seq, name, texts, labels)


def spec_of(name, split, lang) -> DatasetSpec:
    return DatasetSpec(name, split, lang, ("question", "passage"), (ANSWERS, ANSWERABLE))


TINY = (
    *("data.dataset=squad", "data.tokenizer=parsebank-wordpiece-en", "encoder=parsebank-tiny"),
    *("weights=random", "threads=1", "batch_size=8", "max_length=48", "evaluate_every=null"),
    *("checkpoint_every=null", "segment_limits=[]"),
)


@pytest.mark.parametrize("name", recipes_of("extractive_qa.v1"))
def test_every_recipe_of_the_task_trains(name, qa, tmp_path) -> None:
    recipe = RECIPES[name]()
    further = ["max_steps=2", *(["stride=20"] if recipe.data.stride else [])]
    if recipe.model.name == "udprlm.v1":
        further.append('model.labels=["_", "APP", "root"]')  # else those of the run it starts from
    run = train(with_settings(recipe, [*TINY, *further]), qa, tmp_path)
    scores = run.progress.best.scores
    blank = RECIPES[name]().task.no_answer
    assert scores["examples"] == (PASSAGES if blank else PASSAGES * 3 // 4)
    assert scores["unreachable"] == 0
    assert all(map(math.isfinite, run.progress.losses))


def scored(task, data, knowing=None, shift: int = 0, **assembly):
    """The scorer of a task behind the answers of a model that knows all, or is some pieces off."""
    scorer = task.scorer(data)
    assembled = AssemblySpec(**assembly, **task.stream_options)
    for arrays in data.stream(batch_size=4, matrices=(), assembly=assembled):
        output, batch = perfect(arrays, knowing or task)
        output.logits["start"] = output.logits["start"].roll(shift, 1)
        scorer.add(output, batch)
    return scorer


def task_of(**options) -> ExtractiveQa:
    return ExtractiveQa(ExtractiveQaOptions(**options), {"answers": ANSWERS})


def test_gold_positions_give_back_the_gold_answers(qa) -> None:
    """Windows and all: what a perfect model says scores 1."""
    data = qa.dataset("squad", split="dev", lang="en")
    windows = {"max_length": 24, "truncation": "only_second", "stride": 6}
    scores = scored(task_of(no_answer=True), data, **windows).scores()
    assert (scores.f1, scores.exact_match, scores.unreachable) == (1.0, 1.0, 0)
    assert scores.examples == PASSAGES


def test_the_answer_is_the_best_span_of_the_best_sentence(qa) -> None:
    """Span scores of other windows do not matter: they are all as wrong as they can be."""
    data = qa.dataset("squad", split="dev", lang="en")
    task = task_of(sentence_head=True)
    windows = {"max_length": 24, "truncation": "only_second", "stride": 6}
    for told in ("sentence", None):
        scorer = task.scorer(data)
        assembled = AssemblySpec(**windows, **task.stream_options)
        for arrays in data.stream(batch_size=4, matrices=(), assembly=assembled):
            output, batch = perfect(arrays, task)
            has_answer = torch.from_numpy(task.targets(arrays)["start"]) >= 0
            ours = batch.extra("segment_ids") == 1
            wrong = ours & ~has_answer[:, None]
            for end in ("start", "end"):
                output.logits[end] = output.logits[end].masked_fill(wrong, 1e6)
            if told:
                output.logits[told] = has_answer.float()
            scorer.add(output, batch)
        assert (scorer.scores().f1 == 1.0) == (told is not None)


@pytest.mark.parametrize(("split", "no_answer"), [("dev", False), ("test", True)])
def test_questions_without_a_known_answer_are_not_scored(qa, split, no_answer) -> None:
    """Unanswered ones where a task has an answer to all; else those without a label."""
    data = qa.dataset("squad", split=split, lang="en")
    scorer = scored(task_of(no_answer=no_answer), data, task_of(no_answer=True))
    scores, unknown = scorer.scores(), [one for one in scorer.predictions() if one.right is None]
    assert (scores.examples, scores.f1) == (PASSAGES * 3 // 4, 1.0)
    assert scores.unanswerable == 0.0
    assert [one.gold for one in unknown] == [None] * (PASSAGES // 4)


@pytest.fixture
def bilingual(tmp_path, english, tokenizer) -> Iterator[FeatureStore]:
    """One question in two languages, of the test under one id."""
    texts = ("What does the dog see?", "The dog sees the cat.")
    with open_store(tmp_path / "bilingual") as store:
        for split, lang in product(("train", "dev", "test"), ("de", "en")):
            name = "q" if split == "test" else f"q-{lang}"
            row = row_of(english, tokenizer, 0, name, texts, (SpanLabel(13, 20),))
            write_rows(store, english, tokenizer, spec_of("mlqa", split, lang), [row])
        yield store


def test_answers_are_compared_by_the_rules_of_the_language_of_each_question(bilingual) -> None:
    """Without its article an English answer is the same; in German `the` is none."""
    scorer = scored(task_of(), bilingual.dataset("mlqa", split="dev", lang="de,en"), shift=1)
    assert scorer.scores().examples == 2
    found = {one.example_id: (one.predicted, one.right) for one in scorer.predictions()}
    assert found == {"q-de": ("cat", False), "q-en": ("cat", True)}


def test_questions_of_several_languages_under_one_id_are_refused_before_training(
    bilingual, tmp_path
) -> None:
    task = task_of()
    message = "1 questions of mlqa test have one id in de and en, such as 'q'; .* `lang=en`"
    with pytest.raises(SpecError, match=message):
        task.scorer(bilingual.dataset("mlqa", split="test", lang="*"))
    assert task.scorer(bilingual.dataset("mlqa", split="test", lang="de"))
    settings = [*TINY, "dataset=mlqa", "lang=de,en", "dev_split=test", "max_steps=1"]
    with pytest.raises(SpecError, match=message):
        train(with_settings(RECIPES["squad"](), settings), bilingual, tmp_path / "run")


def test_a_parser_may_be_named_for_the_language_that_the_threshold_is_tuned_on(
    bilingual, english, tmp_path
) -> None:
    for name in ("sgnet-squad2", "sgnet-squad2-verifier"):
        stride = ["stride=20"] if RECIPES[name]().data.stride else []
        settings = [*TINY, *stride, "dataset=mlqa", "max_steps=1"]
        finished(with_settings(RECIPES[name](), settings), bilingual, tmp_path / name)
    folders = (tmp_path / "sgnet-squad2", tmp_path / "sgnet-squad2-verifier")
    parser = f"en:{english.identity.name}"
    assert verify_run(*folders, bilingual, "dev", ["de"], parser=parser).keys() == {"de"}
    with pytest.raises(UnknownNameError, match=r"for 'fr', which is not read here; .* de, en"):
        verify_run(*folders, bilingual, "dev", ["de"], parser="fr:any")


def perfect(arrays, task):
    """The output of a model that knows, and its batch."""
    targets = task.targets(arrays)
    extras = [name for name in task.extras if name in arrays]
    batch = SyntaxBatch.from_numpy(arrays, targets, extras)
    logits = {}
    for end in ("start", "end"):
        hot = torch.nn.functional.one_hot(
            batch.labels[end].clamp(min=0), batch.input_ids_BL.shape[1]
        )
        logits[end] = 10.0 * hot
        # A window without the answer must not outdo [CLS] of the others.
        logits[end][:, 0] += 0.5 * (batch.labels[end] == 0)
    return SyntaxOutput(logits=logits), batch


def test_the_threshold_of_dev_scores_other_data(qa, tmp_path) -> None:
    settings = [*TINY, "stride=20", "max_steps=3"]
    run = finished(with_settings(RECIPES["sgnet-squad2"](), settings), qa, tmp_path)
    tuned = run.progress.best.scores
    again = evaluate_run(tmp_path, qa, "dev").scores["en"]
    assert again.threshold == tuned["threshold"]
    assert again.f1 == pytest.approx(tuned["f1"])


def test_an_evaluation_says_by_whose_rules(qa, tmp_path) -> None:
    run = finished(with_settings(RECIPES["squad"](), [*TINY, "max_steps=1"]), qa, tmp_path)
    assert run.progress.best.scores["rules"] == "squad"
    for rules, told, name in ((None, "squad", "SQuAD 1.1"), ("mlqa", "mlqa", "MLQA")):
        path = write_table(evaluate_run(tmp_path, qa, "dev", rules=rules), tmp_path)
        found = json.loads(path.read_text("utf-8"))
        assert (found["rules"], found["languages"]["en"]["rules"]) == (told, told)
        assert f"compared as by {name}." in path.with_suffix(".md").read_text("utf-8")
    crossed = evaluate_crossed(tmp_path, qa, "dev", rules="squad2")
    assert crossed.to_json()["rules"] == "squad2"
    assert "compared as by SQuAD 2.0." in crossed.markdown()


@pytest.mark.slow
def test_it_learns_by_heart(qa, tmp_path) -> None:
    settings = [*TINY, "stride=20", "max_steps=120", "learning_rate=0.002", "warmup_share=0"]
    run = train(with_settings(RECIPES["sgnet-squad2"](), settings), qa, tmp_path)
    assert run.progress.best.headline > 0.8


@pytest.mark.slow
def test_a_verifier_decides_where_it_counts_alone(qa, tmp_path) -> None:
    """A classifier that knows by heart which questions have answers leaves no doubt."""
    reader, judge = tmp_path / "reader", tmp_path / "judge"
    short = [*TINY, "stride=20", "max_steps=2"]
    learnt = [*TINY, "max_steps=60", "learning_rate=0.002", "warmup_share=0"]
    for name, changes, folder in (
        ("sgnet-squad2", short, reader),
        ("sgnet-squad2-verifier", learnt, judge),
    ):
        run = finished(with_settings(RECIPES[name](), changes), qa, folder)
    assert run.progress.best.headline == 1.0
    alone = verify_run(reader, judge, qa, weights=Weights(0.0, 1.0))["en"]
    assert alone.unanswerable == 1.0
    ours = evaluate_run(reader, qa, "dev").scores["en"]
    without = verify_run(reader, judge, qa, weights=Weights(1.0, 0.0))["en"]
    assert without.f1 == pytest.approx(ours.f1)
    with pytest.raises(SpecError, match="a verifier goes with"):
        verify_run(judge, judge, qa)
    with pytest.raises(SpecError, match="must tell 'yes'"):
        verify_run(reader, reader, qa)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_answer": True, "normalisation": "passage"}, "no_answer goes with"),
        ({"no_answer": True, "sentence_head": True}, "sentence_head goes with"),
        ({"tune_threshold": True}, "tune_threshold is about"),
        ({"max_answer": 0}, r"task\.max_answer is 0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, message) -> None:
    with pytest.raises(SpecError, match=message):
        ExtractiveQaOptions(**options)


def test_a_label_of_another_kind_is_refused() -> None:
    with pytest.raises(SpecError, match="needs one of kind 'spans'"):
        ExtractiveQa(ExtractiveQaOptions(), {"answers": LabelSpec("answers", "string")})
