"""The account of a finished run."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from statistics import fmean
from typing import Any, Final

from syntax import plugins
from trainer.data import Source, parser_names
from trainer.evaluation.baseline import baseline_scores
from trainer.loop import Run
from trainer.progress import Progress

POINTS: Final = 1000

_LIBRARIES = ("parsebank", "torch", "transformers", "accelerate", "numpy")


def result_of(run: Run) -> dict[str, Any]:
    progress, best = run.progress, run.progress.kept(run.training.keep)
    assert best is not None, "the last step is always evaluated"
    start, end = start_and_end(progress.losses)
    baselines = baseline_scores(run.task, run.data.dataset, {"dev": run.dev.dataset})
    return {
        "recipe": run.recipe.to_json(),
        "dataset": {
            "name": run.data.dataset.name,
            "version": run.data.dataset.version,
            "source": run.data.dataset.spec.source,
            "licence": run.data.dataset.spec.licence,
            "train": _part(run.data),
            "dev": _part(run.dev),
        },
        "tokenizer": {
            "name": run.data.dataset.card.tokenizer,
            "fingerprint": run.data.dataset.card.tokenizer_fingerprint,
        },
        "parsers": {**parser_names(run.data), **parser_names(run.dev)},
        "steps": progress.step,
        **({"streams": _streams(run)} if run.recipe.streams else {}),
        "epochs": progress.epoch,
        "examples": progress.examples,
        "seconds": progress.seconds,
        "examples_per_second": progress.examples / progress.seconds,
        "data_share": progress.waited / progress.seconds,
        "loss_start": start,
        "loss_end": end,
        "metric": run.task.metric,
        run.task.metric: best.headline,
        **({"baseline": asdict(baselines["dev"])} if baselines else {}),
        "best_step": best.step,
        "scores": best.scores,
        "evaluations": [asdict(evaluation) for evaluation in progress.evaluations],
        "curve": curve(progress, run.training.log_every),
        **({"outcomes": progress.outcomes} if progress.outcomes else {}),
        "resumed": progress.resumed,
        "environment": _environment(run),
    }


def start_and_end(losses: Sequence[float]) -> tuple[float, float]:
    """Mean loss over the first and over the last tenth of the steps.

    >>> start_and_end([3.0] + [2.0] * 18 + [1.0])
    (2.5, 1.5)
    """
    tenth = max(1, len(losses) // 10)
    return fmean(losses[:tenth]), fmean(losses[-tenth:])


def curve(progress: Progress, log_every: int, points: int = POINTS) -> dict[str, Any]:
    """Losses and dev scores by step; each loss averages a multiple of ``log_every`` steps."""
    losses = progress.losses
    every = log_every * max(1, math.ceil(len(losses) / (log_every * points)))
    steps = [*range(every, len(losses), every), len(losses)] if losses else []
    starts = [0, *steps][:-1]
    return {
        "steps": steps,
        "losses": [fmean(losses[at:end]) for at, end in zip(starts, steps, strict=True)],
        "dev_steps": [evaluation.step for evaluation in progress.evaluations],
        "dev_scores": [evaluation.headline for evaluation in progress.evaluations],
    }


def _streams(run: Run) -> dict[str, Any]:
    return {
        name: {
            "steps": run.progress.fed.get(name, 0),
            "passes": run.streams[name].epoch,
            "name": source.dataset.name,
            "version": source.dataset.version,
            "train": _part(source),
        }
        for name, source in run.sources.items()
    }


def _part(source: Source) -> dict[str, Any]:
    dataset = source.dataset
    return {
        "split": dataset.spec.split,
        "lang": source.lang,
        "languages": dataset.langs,
        "examples": len(dataset),
        **({"unlabelled": source.unlabelled} if source.unlabelled else {}),
        "dropped": dataset.report,
        "fingerprints": dataset.fingerprints,
    }


def _environment(run: Run) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
        "device": str(run.accelerator.device),
        "processes": run.accelerator.num_processes,
        **({"plugins": loaded} if (loaded := plugins.versions()) else {}),
    }
