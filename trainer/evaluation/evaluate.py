"""Scoring a model on a stream of batches."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from syntax.errors import SpecError
from trainer.batch import SyntaxBatch
from trainer.data import Source, unlabelled_error
from trainer.options import Recipe
from trainer.tasks.base import Scorer, Scores


@torch.no_grad()
def evaluate(model: nn.Module, batches: Iterable[SyntaxBatch], scorer: Scorer) -> Scores:
    """Score a model on every batch; its training mode is left as it was."""
    training = model.training
    model.eval()
    for batch in batches:
        scorer.add(model(batch), batch)
    model.train(training)
    return scorer.scores()


def check_labelled(source: Source, recipe: Recipe, split: str) -> None:
    """Refuse a language without labels: without this, its scores would all be 0."""
    task, dataset = recipe.task, source.dataset
    names = list(task.found())
    if not names:
        return
    columns = {lang: dataset.where(langs=[lang]).columns(names) for lang in dataset.langs}
    blind = [lang for lang, of in columns.items() if not task.has_labels(of.to_pydict())]
    if blind:
        raise unlabelled_error(dataset, task, split, ",".join(blind), "to be scored by")


def check_languages(train: Source, dev: Source, recipe: Recipe) -> None:
    """Refuse a dev split in other languages than those that are trained on."""
    ours, theirs = train.dataset.langs, dev.dataset.langs
    if ours.keys() == theirs.keys():
        return
    common = ",".join(lang for lang in ours if lang in theirs)
    raise SpecError(
        f"{train.dataset.name} has {', '.join(ours)} in {recipe.data.train_split}, and "
        f"{', '.join(theirs)} in {recipe.data.dev_split}; backfill what is missing, or name "
        f"languages that both have, as `lang={common or 'en'}`"
    )
