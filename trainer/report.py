"""The account of a finished run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from statistics import fmean
from typing import Any

from trainer.data import Source, parser_names
from trainer.loop import Run

_LIBRARIES = ("parsebank", "torch", "transformers", "accelerate", "numpy")


def result_of(run: Run) -> dict[str, Any]:
    """Everything worth keeping of a finished run, as plain JSON."""
    progress, best = run.progress, run.progress.best
    assert best is not None, "the last step is always evaluated"
    start, end = start_and_end(progress.losses)
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
        "epochs": progress.epoch,
        "examples": progress.examples,
        "seconds": progress.seconds,
        "examples_per_second": progress.examples / progress.seconds,
        "data_share": progress.waited / progress.seconds,
        "loss_start": start,
        "loss_end": end,
        "metric": run.task.metric,
        run.task.metric: best.headline,
        "best_step": best.step,
        "scores": best.scores,
        "evaluations": [asdict(evaluation) for evaluation in progress.evaluations],
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


def _part(source: Source) -> dict[str, Any]:
    dataset = source.dataset
    return {
        "split": dataset.spec.split,
        "lang": source.lang,
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
    }
