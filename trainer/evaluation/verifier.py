"""Two models on whether a question has an answer (SG-Net, section 4.1, the answer verifier).

One extracts answers, the other classifies questions with their passages as answerable or not. A
question is left without an answer when ``own * (null score - best score) + other * (logit of no -
logit of yes)`` is above a threshold, which is tuned on dev.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from syntax.errors import SpecError
from trainer.data import Source, device_batches
from trainer.evaluation.evaluate import evaluate
from trainer.evaluation.trained import (
    TrainedRun,
    chosen_languages,
    languages_of,
    load_run,
    open_language,
)
from trainer.options import ExtractiveQaOptions, SequenceClassificationOptions
from trainer.tasks.extractive_qa import ExtractiveQa, QaScores

if TYPE_CHECKING:
    from featurestore import FeatureStore


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the two models: the one that answers, and the verifier."""

    own: float = 0.5
    other: float = 0.5


def verify_run(
    folder: Path,
    verifier: Path,
    store: FeatureStore,
    split: str = "dev",
    langs: Sequence[str] = (),
    *,
    tune_on: str = "dev",
    weights: Weights | None = None,
    parser: str | Iterable[str] | None = None,
) -> dict[str, QaScores]:
    """Score the answers of one run, where another may decide that a question has none.

    The first is a run of ``extractive_qa.v1`` with ``no_answer``, the verifier one of
    ``sequence_classification.v1`` on whether there is an answer. The threshold is tuned on the
    split ``tune_on``, in the language trained on. Languages and parser are given as to
    `chosen_languages` and `TrainedRun.on`.
    """
    reader, judge = (load_run(run).on(store, parser=parser) for run in (folder, verifier))
    _check(reader, judge)
    pair = Pair(reader, judge, store, weights or Weights())
    tuning = languages_of(store, reader, tune_on, reader.recipe.data.lang)
    chosen = chosen_languages(store, reader, split, langs, tuning)
    tuned = pair.scores(tune_on, ",".join(tuning), threshold=None)
    return {lang: pair.scores(split, lang, threshold=tuned.threshold) for lang in chosen}


@dataclass(frozen=True, slots=True)
class Pair:
    """A run that answers, a run that verifies, and what both read."""

    reader: TrainedRun
    judge: TrainedRun
    store: FeatureStore
    weights: Weights

    def scores(self, split: str, lang: str, threshold: float | None) -> QaScores:
        """Scores of one part, with this threshold or with the best one."""
        source = open_language(self.store, self.reader, split, lang)
        options = self.reader.recipe.task
        assert isinstance(options, ExtractiveQaOptions)
        tuned = replace(options, tune_threshold=threshold is None, threshold=threshold or 0.0)
        scorer = ExtractiveQa(tuned, source.labels).scorer(source.dataset)
        evaluate(self.reader.model, _batches(self.reader, source), scorer)
        verdicts = self._verdicts(split, lang)
        scorer.verify(verdicts, self.weights.own, self.weights.other)
        return scorer.scores()

    @torch.no_grad()
    def _verdicts(self, split: str, lang: str) -> dict[str, float]:
        """The logit of no answer minus that of one, by example."""
        source, label = open_language(self.store, self.judge, split, lang), _label(self.judge)
        no, yes = map(source.labels[label].names.index, ("no", "yes"))
        self.judge.model.train(False)
        verdicts: dict[str, float] = {}
        for batch in _batches(self.judge, source):
            logits_BC = self.judge.model(batch).logits[label]
            margins = (logits_BC[:, no] - logits_BC[:, yes]).tolist()
            verdicts.update(zip(batch.example_ids, margins, strict=True))
        return verdicts


def _batches(run: TrainedRun, source: Source) -> Any:
    stream = source.evaluation_stream(run.recipe)
    return device_batches(stream, run.recipe, source.task, run.model.device)


def _label(run: TrainedRun) -> str:
    assert isinstance(run.recipe.task, SequenceClassificationOptions)
    return run.recipe.task.label


def _check(reader: TrainedRun, judge: TrainedRun) -> None:
    task = reader.recipe.task
    if not (isinstance(task, ExtractiveQaOptions) and task.no_answer):
        raise SpecError(
            f"the first run is of {task.name}; a verifier goes with extractive_qa.v1 and "
            "task.no_answer=true"
        )
    classes = judge.requirements.classes
    is_classifier = isinstance(judge.recipe.task, SequenceClassificationOptions)
    names = classes.get(_label(judge)) if is_classifier else None
    if names is None or set(names) != {"no", "yes"}:
        raise SpecError(
            f"the verifier is of {judge.recipe.task.name} over {dict(classes)}; it must tell 'yes' "
            "from 'no', as sgnet-squad2-verifier does"
        )
