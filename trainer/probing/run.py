"""Probing an encoder on a stored dataset: the states once, then every task, layer and seed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from syntax.strict_json import parse_json, strict_json
from trainer.evaluation.trained import load_run
from trainer.nn.stock import BUNDLED
from trainer.probing.curve import curve
from trainer.probing.options import SPLITS, ProbedData, ProbeOptions
from trainer.probing.states import LayeredEncoder, RunLayers, StockLayers, encode
from trainer.probing.words import Encoded
from trainer.results import RESULT, read_json, write_json
from trainer.systems.frozen.options import FrozenOptions

if TYPE_CHECKING:
    from featurestore import FeatureDataset, FeatureStore

_LOG: Final = logging.getLogger(__name__)


def probe(
    encoder: str,
    store: FeatureStore,
    data: ProbedData,
    tasks: Sequence[str],
    options: ProbeOptions,
    output: Path | None = None,
) -> dict[str, Any]:
    """The curves of some tasks over the layers of an encoder, as plain JSON.

    The encoder is a folder of a run or of an encoder, or a name on the model hub; a bundled one has
    random weights. The output is written after each task, and tasks that it has are skipped.
    """
    splits, layered = _opened(encoder, store, data)
    facts: dict[str, Any] = {
        "encoder": encoder,
        "dataset": data.dataset,
        "lang": data.lang,
        "version": splits[0].version,
        "splits": dict(zip(data.splits, map(len, splits), strict=True)),
        "fingerprints": splits[0].fingerprints,
        "options": options.to_json(),
    }
    curves, encoded = _finished(facts, output), dict[str, Encoded]()
    ids = splits[-1].columns(["example_id"])["example_id"].to_pylist()
    for task in tasks:
        if task in curves:
            continue
        for name, split in zip(SPLITS, splits, strict=True):
            if name not in encoded:
                _LOG.info("computing states of %d examples of %s", len(split), split.name)
                encoded[name] = encode(layered, split, options.pool)
        curves[task] = curve(task, encoded, options)
        best = curves[task]["best"]
        best["examples"] = {ids[at]: counts for at, counts in best["examples"].items()}
        if output is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            write_json(output, {**facts, "tasks": curves})
    return {**facts, "tasks": {task: curves[task] for task in tasks}}


def _finished(facts: dict[str, Any], output: Path | None) -> dict[str, Any]:
    """The curves that a file has of the same encoder, data and options."""
    if output is None or not output.exists():
        return {}
    earlier = read_json(output, f"{output} is gone")
    curves: dict[str, Any] = earlier.pop("tasks", {})
    return curves if earlier == parse_json(strict_json(facts)) else {}


def _opened(
    encoder: str, store: FeatureStore, data: ProbedData
) -> tuple[list[FeatureDataset], LayeredEncoder]:
    if (Path(encoder) / RESULT).exists():
        run = load_run(Path(encoder))
        tokenizer = data.tokenizer or run.requirements.tokenizer
        splits = [data.open(store, split, tokenizer) for split in data.splits]
        run.requirements.check_tokenizer(
            splits[0].card.tokenizer_fingerprint, splits[0].card.tokenizer
        )
        return splits, RunLayers(run)
    splits = [data.open(store, split, data.tokenizer) for split in data.splits]
    stock = FrozenOptions(encoder=encoder, weights="random" if encoder in BUNDLED else "pretrained")
    return splits, StockLayers(stock, splits[0])
