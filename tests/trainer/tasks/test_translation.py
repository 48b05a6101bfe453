"""Translation: targets, loss, scores, batches of both sides, and whole runs."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from clients.bpe import BpeOptions, train_bpe
from clients.wordpiece import save_tokenizer
from featurestore import open_store
from service.tokenizers import load_tokenizer
from syntax.errors import MissingExtraError, SpecError
from syntax.examples import DatasetSpec, LabelSpec
from tests.trainer.rows import keep_parses, parsed_row, write_rows
from tests.trainer.runs import finished, resumed
from trainer.api import evaluate
from trainer.data import open_source
from trainer.evaluation.analyse import analyse
from trainer.evaluation.compare import System, compare_systems
from trainer.evaluation.predictions import (
    Prediction,
    predictions_file,
    read_predictions,
    write_predictions,
)
from trainer.loop import train
from trainer.metrics.translation import (
    bleu,
    bleu_counts,
    bleu_scorer,
    collins_sign_test,
    smoothed_bleu,
    translation_scores,
)
from trainer.nn.target import IGNORED, target_tokenizer
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.schedule import learning_rate

PAIRS = [
    (f"{one} {seen} {what}.", f"{eins} {sieht} {was}.")
    for one, eins in (("A man", "Ein Mann"), ("The bee", "Die Biene"), ("Ann", "Anna"))
    for seen, sieht in (("sees", "sieht"), ("paints", "malt"))
    for what, was in (("a mill", "eine Mühle"), ("the river", "den Fluss"), ("her", "sie"))
]
TARGET = LabelSpec("target", "string")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    """A joint tokenizer."""
    path = tmp_path_factory.mktemp("tokenizer") / "joint"
    texts = [text for pair in PAIRS for text in pair]
    save_tokenizer(train_bpe(lambda: texts, BpeOptions(vocab_size=90)), path, {})
    return str(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory, folder, english):
    """A store of the pairs; the last of `dev` has no translation."""
    tokenizer = load_tokenizer(folder)
    with open_store(str(tmp_path_factory.mktemp("pairs") / "store")) as store:
        for split, chosen in (("train", PAIRS), ("dev", [*PAIRS[:4], ("A man sees.", None)])):
            spec = DatasetSpec("translation", split, "en", ("source",), (TARGET,), "sentence")
            rows = [
                parsed_row(english, tokenizer, seq, f"{seq}", [source], {"target": to}, "sentence")
                for seq, (source, to) in enumerate(chosen)
            ]
            write_rows(store, english, tokenizer, spec, rows)
        yield store


def small(name="translation", *settings):
    sizes = ("model.layers=1", "hidden_size=16", "model.heads=2", "feed_forward=32")
    steps = ("batch_tokens=64", "max_steps=6", "warmup_steps=2", "learning_rate=0.01")
    every = ("evaluate_every=3", "checkpoint_every=3", "log_every=1", "task.beam=2")
    return with_settings(RECIPES[name](), [*sizes, *steps, *every, *settings])


CORPORA = {
    "usual": (
        ["Ein Mann sieht den Fluss.", "Die Biene malt!"],
        ["Der Mann sieht den Fluss.", "Sie malt."],
    ),
    "no four-gram in common": (["ein Haus", "zwei"], ["ein Baum steht dort", "zwei Tage"]),
    "short": (["Mühle (alt)"] * 3, ["Die Mühle (alt) ist dort, im Tal."] * 3),
}


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)
def test_bleu_and_chrf_are_sacrebleus(corpus) -> None:
    hypotheses, references = corpus
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    found = translation_scores(hypotheses, references, 0.0)
    assert (found.bleu, found.headline) == (expected, expected)
    assert found.chrf == sacrebleu.corpus_chrf(hypotheses, [references]).score
    pairs = list(zip(hypotheses, references, strict=True))
    assert found.exact_match == sum(one == other for one, other in pairs) / len(pairs)
    assert found.smoothed_bleu == pytest.approx(np.mean([smoothed_bleu(*pair) for pair in pairs]))
    assert found.signatures["bleu"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")
    counts = [
        bleu_counts(*pair, bleu_scorer()) for pair in zip(hypotheses, references, strict=True)
    ]
    assert bleu(np.array(counts).sum(0)) == pytest.approx(expected)


PROGRAM = "int add ( int a , int b ) { int c = a + b ; return c ; }"


@pytest.mark.parametrize("language", ["java", "c_sharp"])
def test_codebleu_sees_syntax_and_data_flow_where_words_differ(language) -> None:
    pytest.importorskip("codebleu", reason="needs the extra `code`")
    renamed = PROGRAM.replace(" c ", " total ")
    scores = [
        translation_scores([program], [PROGRAM], 0.0, "none", "codebleu", language)
        for program in (PROGRAM, renamed, "return c ;", "")
    ]
    found = [one.headline for one in scores]
    assert found[0] == pytest.approx(100)
    assert scores[1].bleu < found[1] < 100
    # Syntax and data flow are the same: what is left are the two counts of words.
    assert found[1] > 50
    assert found[1] > found[2] > found[3]
    assert translation_scores([], [], 0.0, "none", "codebleu", language).headline == 0


def test_codebleu_without_its_package_or_a_language_is_refused(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "codebleu", None)
    with pytest.raises(MissingExtraError, match=r"CodeBLEU needs the package codebleu; .*\[code\]"):
        translation_scores([PROGRAM], [PROGRAM], 0.0, code="java")
    with pytest.raises(SpecError, match=r"metric=codebleu needs task\.code, `java` or `c_sharp`"):
        small("translation", "task.metric=codebleu")


@given(*[st.text("aB_9.( ", max_size=14)] * 2)
def test_smoothed_bleu_is_the_root_of_four_smoothed_precisions(ours: str, theirs: str) -> None:
    found = smoothed_bleu(ours, theirs)
    one, other = (slow_words(text) for text in (ours, theirs))
    product = 1.0
    for order in (1, 2, 3, 4):
        written = [tuple(one[at : at + order]) for at in range(len(one) - order + 1)]
        wanted = [tuple(other[at : at + order]) for at in range(len(other) - order + 1)]
        matches = sum(min(written.count(x), wanted.count(x)) for x in set(written))
        more = 1 if order > 1 else 0
        product *= (matches + more) / (len(written) + more) if written or more else 0
    penalty = math.exp(1 - (len(other) + 1) / (len(one) + 1)) if len(one) < len(other) else 1
    assert found == pytest.approx(100 * product**0.25 * penalty)
    if one and len(one) == len(other):  # the lengths to which one is added are then no matter
        scorer = sacrebleu.BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, force=True)
        expected = scorer.sentence_score(" ".join(one), [" ".join(other)])
        if len(one) >= 4 and set(one) & set(other):
            assert found == pytest.approx(expected.score)


def slow_words(text: str) -> list[str]:
    """Letters and digits stay together; every other visible character is a word."""
    words, before = [], ""
    for character in text.lower():
        if character.isalnum() and before.isalnum():
            words[-1] += character
        elif character != " ":
            words.append(character)
        before = character
    return words


def test_the_sign_test_exchanges_one_sentence_at_a_time() -> None:
    references = [target for _, target in PAIRS]
    ours = [*references[:9], *["Ein Mann"] * 9]
    theirs = [*references[:6], *["Anna sieht sie."] * 12]
    one, other = (
        np.array([bleu_counts(x, y, bleu_scorer()) for x, y in zip(side, references, strict=True)])
        for side in (ours, theirs)
    )
    before, better, worse = sacrebleu.corpus_bleu(theirs, [references]).score, 0, 0
    for at, text in enumerate(ours):
        swapped = [*theirs[:at], text, *theirs[at + 1 :]]
        after = sacrebleu.corpus_bleu(swapped, [references]).score
        better, worse = better + (after > before), worse + (after < before)
    found = collins_sign_test(one, other)
    assert (found.only_one, found.only_other) == (better, worse)
    assert found.p == stats.binomtest(better, better + worse).pvalue


def test_runs_are_compared_by_bleu(tmp_path) -> None:
    references = [target for _, target in PAIRS]

    def system(texts):
        found = {
            str(at): Prediction(
                str(at), gold, text, text == gold, {"bleu": bleu_counts(text, gold, bleu_scorer())}
            )
            for at, (text, gold) in enumerate(zip(texts, references, strict=True))
        }
        write_predictions(found.values(), tmp_path / "predictions.jsonl")
        assert read_predictions(tmp_path / "predictions.jsonl") == list(found.values())
        return System("translation", "bleu", {"de": [found]}, ("",), ())

    theirs = ["Anna sieht sie." for _ in references]
    (line,) = compare_systems(system(references), system(theirs), resamples=200)
    assert line.difference.one == pytest.approx(100)
    assert line.difference.other == sacrebleu.corpus_bleu(theirs, [references]).score
    assert line.difference.low > 0
    assert line.mcnemar[""].only_other == 0


def test_targets_are_ids_with_an_end(folder) -> None:
    target = target_tokenizer(folder)
    ids = target.encode(["Die Mühle.", None, "Anna"], 256)
    assert ids[0, -1] == target.end or IGNORED in ids[0]
    assert (ids[1] == IGNORED).all()
    assert target.lengths(["Die Mühle.", None, "Anna"], 256).tolist() == (
        (ids != IGNORED).sum(1).tolist()
    )
    kept = np.where(ids == IGNORED, target.special.pad_id, ids)
    assert target.decode(kept) == ["Die Mühle.", "", "Anna"]
    after_the_end = np.array([[*ids[2][ids[2] != IGNORED], 7, 8]])
    assert target.decode(after_the_end) == ["Anna"]
    cut = target.encode(["Die Mühle."], 3)
    assert cut.shape == (1, 3)
    assert target.end not in cut
    assert target.lengths(["Die Mühle."], 3).tolist() == [3]
    whole = target.encode(["Anna"], 256)
    assert (target.encode(["Anna"], whole.shape[1]) == whole).all()


@pytest.mark.slow
def test_texts_that_are_cut_are_counted_and_learn_no_end(pairs, tmp_path) -> None:
    """None is cut at the length of the longest text, its end among its pieces; below it, some."""
    target = target_tokenizer(open_source(pairs, small(), "train", "en").dataset.card.tokenizer)
    lengths = target.lengths([text for _, text in PAIRS], 256)
    longest = int(lengths.max())
    epoch = ("max_steps=4", "batch_tokens=null", "batch_size=5", "evaluate_every=null")
    for cut in (0, 1, 4):
        settings = (*epoch, f"task.longest={longest - cut}")
        run = train(small("translation", *settings), pairs, tmp_path / f"{cut}")
        found = run.progress.outcomes.get("target_too_long", 0)
        assert found == (lengths > longest - cut).sum()
        assert (found > 0) == (cut > 0)
        stream = run.streams["main"]
        stream.begin(0)
        for batch in stream.take(4):
            ended = (batch.labels["target"] == target.end).any(1).tolist()
            names = [int(name) for name in batch.example_ids]
            assert ended == [lengths[name] <= longest - cut for name in names]


def test_a_batch_has_at_most_so_many_tokens_on_either_side(pairs) -> None:
    recipe = small()
    source = open_source(pairs, recipe, "train", "en", labelled=True)
    options = recipe.task.fitted(source.dataset)
    stream = source.training_stream(recipe, torch.device("cpu"), epoch=0, rank=0, world_size=1)
    names, sizes = [], []
    for arrays in stream:
        targets = source.task.targets(options.arrays(arrays))["target"]
        sizes.append(max(arrays["input_ids"].size, targets.size))
        names += arrays["example_id"]
    assert max(sizes) <= 64
    assert len(sizes) == len(stream) > 1
    assert sorted(map(int, names)) == list(range(len(PAIRS)))


def test_the_loss_is_smoothed_in_training_alone(pairs, tmp_path) -> None:
    run = train(
        small("translation", "max_steps=1", "layer_dropout=0", "model.dropout=0"), pairs, tmp_path
    )
    model, stream = run.model, run.streams["main"]
    stream.begin(0)
    (batch,) = stream.take(1)
    gold = batch.labels["target"]
    start = torch.full((len(gold), 1), model.head.options.start)
    before = torch.cat([start, gold[:, :-1]], 1).clamp(min=0)
    with torch.no_grad():
        states = model.encoder(batch).last_hidden_state
        logits = model.head.decoder(before, states, batch.attention_mask_BL).logits
        found = {training: model.train(training)(batch).task_loss for training in (True, False)}
    known = gold != IGNORED
    logs = logits.log_softmax(-1)[known]
    sharp = -logs.gather(-1, gold[known][:, None]).mean()
    assert found[False] == pytest.approx(float(sharp), rel=1e-5)
    assert found[True] == pytest.approx(float(0.9 * sharp - 0.1 * logs.mean()), rel=1e-5)


@pytest.mark.slow
def test_a_resumed_run_equals_an_uninterrupted_one(pairs, tmp_path) -> None:
    recipe = small("sgnet-translation")
    whole = train(recipe, pairs, tmp_path / "whole")
    again = resumed(recipe, pairs, tmp_path / "part", 4)
    assert again.progress.losses == whole.progress.losses
    assert again.progress.evaluations == whole.progress.evaluations
    scores = whole.progress.evaluations[-1].scores
    assert scores["examples"] == 4  # and one without a translation
    assert set(scores) >= {"bleu", "chrf", "loss", "signatures"}


def test_bleu_is_told_by_the_length_of_the_source(pairs, english, tmp_path) -> None:
    """Figure 5 of SG-Net; the unlabelled example is counted, and scored nowhere."""
    finished(small(), pairs, tmp_path)
    keep_parses(pairs, english, "translation", "dev", "sentence")
    evaluate(tmp_path, pairs, "dev")
    path = predictions_file(tmp_path, "dev", "en")
    unlabelled = [one for one in read_predictions(path) if one.gold is None]
    said = ["Ein Mann sieht den Fluss.", "Ein Mann sieht sie.", "Anna malt.", "Die Mühle."]
    answers = [
        Prediction(f"{at}", gold, text, False, {"bleu": bleu_counts(text, gold, bleu_scorer())})
        for at, ((_, gold), text) in enumerate(zip(PAIRS, said, strict=False))
    ]
    write_predictions([*answers, *unlabelled], path)
    found = analyse(tmp_path, None, "length", pairs, "dev", bins=20, resamples=100)
    assert (found.metric, found.left_out) == ("bleu", {"examples without label": 1})
    lengths = [len(source.replace(".", " .").split()) for source, _ in PAIRS[:4]]
    assert [group.name for group in found.groups] == [f"{one}" for one in sorted(set(lengths))]
    for group in found.groups:
        chosen = [at for at, length in enumerate(lengths) if str(length) == group.name]
        texts, references = [said[at] for at in chosen], [PAIRS[at][1] for at in chosen]
        expected = sacrebleu.corpus_bleu(texts, [references]).score
        assert group.one.score == pytest.approx(expected)


def test_any_encoder_of_pieces_can_be_translated_from(pairs, tmp_path) -> None:
    model = ("model.name=stock.v1", "encoder=parsebank-tiny", "weights=random")
    settings = ("max_steps=2", "evaluate_every=2", "warmup_steps=1", "task.beam=1")
    recipe = with_settings(RECIPES["translation"](), [*model, *settings, "batch_tokens=64"])
    run = train(recipe, pairs, tmp_path)
    decoder, encoder = run.model.head.decoder.config, run.model.encoder.stock.config
    assert (decoder.d_model, decoder.decoder_layers, decoder.decoder_ffn_dim) == (
        encoder.hidden_size,
        encoder.num_hidden_layers,
        encoder.intermediate_size,
    )


@pytest.mark.parametrize("name", ["translation", "sgnet-translation"])
def test_the_rate_is_that_of_vaswani_et_al(name) -> None:
    training = RECIPES[name]().training
    for step in (1, 2000, 8000, 32_000):
        expected = 512**-0.5 * min(step**-0.5, step * 8000**-1.5)
        assert learning_rate(step - 1, 300_000, training) == pytest.approx(expected)


@pytest.mark.slow
def test_pairs_are_learned_by_heart(pairs, tmp_path) -> None:
    """The whole way: trees, one tokenizer for both sides, search, texts."""
    settings = ("max_steps=150", "evaluate_every=150", "task.tie=all", "layer_dropout=0")
    sizes = ("hidden_size=32", "feed_forward=64", "batch_tokens=256", "warmup_steps=20")
    run = train(small("sgnet-translation", *settings, *sizes), pairs, tmp_path)
    assert run.progress.evaluations[-1].headline > 90
    assert run.recipe.task.tokenizer is not None
    shared = run.model.encoder.stock.embed_tokens.weight
    assert run.model.head.decoder.get_input_embeddings().weight is shared
    names = [name for name, _ in run.model.head.named_parameters()]
    assert not any("embed_tokens" in name for name in names)


def test_what_does_not_fit_is_refused(pairs, folder, tmp_path, monkeypatch) -> None:
    words = tmp_path / "words"
    texts = [target for _, target in PAIRS]
    save_tokenizer(train_bpe(lambda: texts, BpeOptions("words", 60)), words, {})
    start = partial(train, store=pairs, output=tmp_path / "run")
    with pytest.raises(SpecError, match=r"task\.tie=all makes embeddings"):
        start(small("translation", f"task.tokenizer={words}", "task.tie=all"))
    with pytest.raises(SpecError, match="no folder with a fast tokenizer"):
        start(small("translation", f"task.tokenizer={tmp_path}"))
    with pytest.raises(SpecError, match=r"task\.bleu is 'moses'"):
        start(small("translation", "task.bleu=moses"))
    monkeypatch.setitem(sys.modules, "codebleu", None)
    with pytest.raises(MissingExtraError, match="CodeBLEU needs the package codebleu"):
        start(small("translation", "task.code=java"))
    options = replace(RECIPES["translation"]().task, tokenizer=folder, fingerprint="0" * 32)
    with pytest.raises(SpecError, match="put the earlier one back"):
        options.target()
