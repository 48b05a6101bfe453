"""Taggers with an LSTM and a CRF, on the tokens of a store."""

from __future__ import annotations

import numpy as np
import pytest

from syntax.errors import SpecError
from tests.trainer.everything import recipe_for
from tests.trainer.runs import batches_of, finished
from trainer.data import open_source
from trainer.evaluation.trained import ask, load_run, open_language
from trainer.nn.crf import bioul_names, to_bioul

PARTS = (
    *("task.tagger.lstm_layers=1", "task.tagger.lstm_width=16", "task.tagger.lstm_dropout=0"),
    *("task.tagger.states=mix", "task.tagger.pieces=mean"),
)


@pytest.mark.parametrize("crf", ["bio", "bioul"])
def test_the_tokens_of_a_batch_have_their_pieces_and_tags(everything, crf) -> None:
    made = recipe_for("token_classification.v1", f"task.tagger.crf={crf}", *PARTS)
    names = open_source(everything, made, "dev", "en").labels["tags"].names
    own = bioul_names(names) if crf == "bioul" else names
    for batch in batches_of(everything, made):
        pieces, places, tags = (
            batch.labels[f"token_{name}"].numpy() for name in ("pieces", "places", "tags")
        )
        for row, ids in enumerate(batch.arrays["token_ids"]):
            shown = [int(token) for token in ids[batch.arrays["token_starts"][row]]]
            assert places[row, : len(shown)].tolist() == [
                int(np.flatnonzero(ids == token)[0]) for token in shown
            ]
            for position, token in enumerate(ids.tolist()):
                expected = shown.index(token) if token in shown else -1
                assert pieces[row, position] == expected
            stored = [names[tag] for tag in batch.arrays["tags"][row]][: len(shown)]
            spelled = to_bioul(stored) if crf == "bioul" else stored
            assert [own[tag] for tag in tags[row, : len(shown)]] == spelled
            assert (tags[row, len(shown) :] == -100).all()


ALLENNLP = ("task.tagger.crf_ends=false", "task.tagger.crf_loss=sum", "epochs=12")


@pytest.mark.slow
@pytest.mark.parametrize("released", [(), ALLENNLP])
def test_a_tagger_with_a_crf_is_trained_saved_and_loaded(everything, tmp_path, released) -> None:
    settings = ("task.tagger.crf=bioul", *PARTS, "epochs=8", "learning_rate=0.005", *released)
    made = recipe_for("token_classification.v1", *settings, "model.dropout=0")
    run = finished(made, everything, tmp_path)
    assert run.progress.losses[-1] < run.progress.losses[0]
    kept = load_run(tmp_path).on(everything)
    answers = ask(kept, open_language(everything, kept, "dev", "en"))
    best = run.progress.best
    assert answers.scores.f1 == pytest.approx(best.headline)
    assert answers.scores.f1 > 0
    for one in answers.predictions:
        # A CRF opens no mention with I-.
        pairs = zip(["O", *one.predicted], one.predicted, strict=False)
        assert all(tag[0] != "I" or before[1:] == tag[1:] for before, tag in pairs)


def test_words_of_tokens_and_other_tags_are_refused(everything) -> None:
    with pytest.raises(SpecError, match=r"set task\.pieces=first"):
        recipe_for("token_classification.v1", "task.tagger.crf=bio", "task.pieces=words")
