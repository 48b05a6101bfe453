"""Scores beside distances of word order: numbers that one can check by hand, and a real table."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from featurestore import open_store
from featurestore.reports.word_order import word_order
from syntax.errors import SpecError
from tests.trainer.treebank import NAME, append_treebank
from trainer.evaluation.transfer import evaluate_run
from trainer.evaluation.word_order import (
    ParsedLanguage,
    correlation_of,
    word_order_table,
    write_word_order,
)
from trainer.loop import train
from trainer.options.settings import with_settings
from trainer.recipes import RECIPES
from trainer.report import result_of
from trainer.results import write_result


def languages(*pairs: tuple[float, float]) -> list[ParsedLanguage]:
    return [ParsedLanguage("xx", 1, 0, 0.0, 0.0, distance, loss) for distance, loss in pairs]


def test_a_correlation_has_an_interval_by_fisher() -> None:
    pairs = [(0.1, 3.0), (0.2, 9.0), (0.3, 7.0), (0.4, 20.0), (0.5, 21.0)]
    found = correlation_of(languages(*pairs))
    distances, losses = zip(*pairs, strict=True)
    pearson = stats.pearsonr(distances, losses)
    assert found.pearson == pytest.approx(pearson.statistic)
    expected = pearson.confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert found.spearman == pytest.approx(0.9)


def test_few_languages_have_no_interval_or_no_correlation() -> None:
    three = correlation_of(languages((0.1, 1.0), (0.2, 3.0), (0.3, 2.0)))
    assert three.interval is None
    assert not math.isnan(three.pearson)
    assert correlation_of(languages((0.1, 1.0), (0.2, 3.0))) is None
    assert correlation_of(languages((0.1, 1.0), (0.1, 3.0), (0.1, 2.0))) is None


@pytest.fixture(scope="module")
def parsed(tmp_path_factory, tokenizer):
    """A store with three languages, and a parser that was trained on English."""
    folder = tmp_path_factory.mktemp("order")
    with open_store(str(folder / "store")) as store:
        for split in ("train", "dev", "test"):
            append_treebank(store, tokenizer, split)
        made = RECIPES["orderfree-selfatt-graph-delex"]()
        settings = ("layers=1", "upos_width=8", "arc=8", "task.relation=4", "max_steps=2")
        named = (f"data.dataset={NAME}", "evaluate_every=2", "checkpoint_every=null", "threads=1")
        run = train(with_settings(made, [*settings, *named]), store, folder / "run")
        write_result(result_of(run), folder / "run")
        yield store, folder / "run"


def test_the_source_has_no_loss_and_no_distance(parsed, tmp_path) -> None:
    store, run = parsed
    transfer = evaluate_run(run, store, "test")
    found = word_order_table(transfer, store, min_count=1)
    (english,) = found.languages
    assert (english.lang, english.loss, english.distance) == ("en", 0.0, 0.0)
    assert english.uas == pytest.approx(100 * transfer.scores["en"].uas_no_punct)
    assert found.correlation is None
    order = word_order(store, types="published", missing="as_published", min_count=1)
    assert order.langs == ("en",)
    path = write_word_order(found, run)
    assert path.name == "word-order-test.json"
    assert "| en | 6 | 0 |" in path.with_suffix(".md").read_text()


def test_a_loss_needs_the_source(parsed) -> None:
    from dataclasses import replace

    store, run = parsed
    transfer = evaluate_run(run, store, "test")
    with pytest.raises(SpecError, match="counted from one source"):
        word_order_table(replace(transfer, sources=("de",)), store, min_count=1)
