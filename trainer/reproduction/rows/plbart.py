"""PLBART: what its noise covers, and whether denoising is learned."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import trainer
from featurestore import open_store
from syntax.mixing import stream_seed
from syntax.trees.conllu import read_conllu
from trainer.denoising import Draws, SpanNoise
from trainer.reproduction.row import Figure, Findings, Row, Size
from trainer.reproduction.rows.treebanks import ENGLISH
from trainer.reproduction.trial import Trial
from trainer.systems.plbart.code import functions_of

ARMS: Final = ("plbart", "plbart-as-released")
LANGUAGES: Final = {"python": "python", "en": "ud"}
"""Languages by the name of their dataset, as the token has it and as the store has it."""

_PACKAGES: Final = ("syntax", "featurestore", "service", "clients", "trainer")
_CHARACTERS: Final = 700_000
_SENTENCES: Final = 4000
_STEPS: Final[Mapping[Size, int]] = {"small": 600, "full": 100_000}
_CUT: Final = 256
_VOCABULARY: Final = 4000
_END, _MASK = 2, 4
"""Ids in the tokenizers that are trained here (`clients.wordpiece.SPECIAL_TOKENS`)."""

Ids = NDArray[Any]
_LEFT_OUT: Final = (
    "the functions of Parsebank and the sentences of a treebank, about 1 MB (published: 655 GB of "
    "Java, Python and English)"
)


def settings(size: Size, released: bool) -> tuple[str, ...]:
    task: dict[str, Any] = {"name": "denoising.v1", "language": "en"}
    if released:
        task |= {"noise": "as_released", "covered": 0.3}
    data = {"dataset": LANGUAGES["en"], "policy": "none", "joint_root": False}
    english = {"name": "en", "data": {**data, "max_length": _CUT}, "task": task}
    steps = _STEPS[size]
    both = (
        *("data.dataset=python", "task.language=python", f"data.max_length={_CUT}"),
        f"streams={json.dumps([english])}",
    )
    if size == "full":
        return both
    return (
        *both,
        *("model.layers=2", "hidden_size=128", "model.heads=4", "feed_forward=512"),
        *("batch_tokens=2048", "accumulation=1", "learning_rate=2e-3", "warmup_steps=100"),
        *(f"max_steps={steps}", f"evaluate_every={steps}", "checkpoint_every=100"),
        *(f"model.dropout_steps={steps // 2},{steps * 4 // 5}", "clip_norm=1"),
    )


def _functions() -> list[str]:
    top = Path(trainer.__file__).parents[1]
    modules = chain.from_iterable(sorted((top / name).rglob("*.py")) for name in _PACKAGES)
    found, size = [], 0
    for path in modules:
        for line, _ in functions_of(path.read_text("utf-8")):
            found.append(line)
            size += len(line)
        if size > _CHARACTERS:
            break
    return found


def _write_corpus(trial: Trial) -> Path:
    corpus, functions = trial.folder / "corpus", _functions()
    train = [line for at, line in enumerate(functions) if at % 20]
    source = trial.data / ENGLISH.path / "en_ewt-ud-train.conllu"
    sentences = [one.text for one in islice(read_conllu(source), _SENTENCES)]
    files = {
        "python/train": train,
        "python/dev": functions[::20],
        "both/train": [*train, *sentences],
    }
    for folder, lines in files.items():
        (corpus / folder).mkdir(parents=True, exist_ok=True)
        (corpus / folder / "lines.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return corpus


def _prepare(trial: Trial) -> None:
    corpus, tokenizer = _write_corpus(trial), trial.folder / "tokenizer"
    if not tokenizer.exists():
        special = ",".join(f"<{language}>" for language in LANGUAGES)
        given = ("--path", str(corpus / "both"), "--split", "train", "--lang", "en")
        size = ("--kind", "bpe", "--vocab-size", str(_VOCABULARY), "--special", special)
        trial.parsebank("tokenizers", "train", "text", *given, *size, "--out", str(tokenizer))
    both = ("--split", "train,dev", "--lang", "en", "--tokenizer", str(tokenizer))
    code = ("--path", str(corpus / "python"), "--mode", "raw", "--split-long", "--name", "python")
    trial.backfill("python", "text", *code, *both)
    english = ("--path", str(trial.data / ENGLISH.path), "--mode", "gold")
    trial.backfill("en", "ud", *english, "--limit", str(_SENTENCES), *both)


def _texts(trial: Trial, dataset: str, split: str) -> Iterator[tuple[str, Ids, Ids]]:
    """Id of each example, its pieces, and their words; cut as in training."""
    with open_store(trial.store) as store:
        data = store.dataset(dataset, split=split, lang="en")
        for batch in data.stream(batch_size=64, max_length=_CUT, matrices=()):
            text_BL = batch["attention_mask"].astype(bool) & (batch["word_ids"] >= 0)
            for row, name in enumerate(batch["example_id"]):
                yield (
                    name,
                    batch["input_ids"][row, text_BL[row]],
                    batch["word_ids"][row, text_BL[row]],
                )


def unigram_loss(train: Iterable[Ids], dev: Iterable[Ids], vocabulary: int) -> float:
    """Mean cross-entropy of the pieces of dev, in nats, by their shares in train.

    Every text has one end more. Each count is one higher, so that no piece has a share of 0.
    """
    counts, tokens = np.ones(vocabulary), [*dev]
    for text in train:
        np.add.at(counts, text, 1)
        counts[_END] += 1
    losses = -np.log(counts / counts.sum())
    whole = np.concatenate([np.append(text, _END) for text in tokens])
    return float(losses[whole].mean())


def shares(texts: Iterable[tuple[str, Ids, Ids]]) -> dict[str, float]:
    """Percentages of pieces, or words, that noise covers, and that its spans are drawn for."""
    published = SpanNoise(_MASK, 0, _END, 1)
    released = SpanNoise(_MASK, 0, _END, 1, "as_released", 0.3)
    pieces = gone = words = drawn = 0
    for name, text, word_ids in texts:
        draws = Draws(stream_seed("share", name))
        count = len(np.unique(word_ids))
        pieces, words = pieces + len(text), words + count
        gone += len(text) - int((published.noised(text, word_ids, draws) != _MASK).sum())
        drawn += sum(released.span_lengths(math.ceil(released.covered * count), draws))
    return {"published": 100 * gone / pieces, "released": 100 * drawn / words}


def _run(trial: Trial) -> Findings:
    _prepare(trial)
    figures, below = [], []
    for language, dataset in LANGUAGES.items():
        train, dev = (
            [text for _, text, _ in _texts(trial, dataset, split)] for split in ("train", "dev")
        )
        unigram = unigram_loss(train, dev, _VOCABULARY)
        figures.append(Figure(f"{language}: loss of a unigram model, nats", None, (unigram,)))
        for arm in ARMS:
            found = [_scores(trial, arm, seed, language) for seed in trial.seeds]
            losses = tuple(float(one["loss"]) for one in found)
            below += [loss < unigram for loss in losses]
            figures.append(Figure(f"{language}, {arm}: loss, nats", None, losses))
            accuracy = tuple(100 * float(one["accuracy"]) for one in found)
            figures.append(Figure(f"{language}, {arm}: accuracy of pieces, %", None, accuracy))
    covered = shares(_texts(trial, "python", "train"))
    figures += [
        Figure("python: pieces covered as published, %", 35.0, (covered["published"],)),
        Figure("python: words drawn as released, %", 30.0, (covered["released"],)),
    ]
    near = abs(covered["published"] - 35) <= 1 and abs(covered["released"] - 30) <= 1
    return Findings(figures, holds=all(below) and near)


def _scores(trial: Trial, arm: str, seed: int, language: str) -> dict[str, Any]:
    run = trial.train(arm, arm, seed, settings(trial.size, arm.endswith("released")))
    found: dict[str, Any] = trial.result(run)["scores"]
    return found if language == "python" else found["streams"][language]


ROW: Final = Row(
    name="plbart",
    claim="An encoder and a decoder learn to write code and English again from what noise has "
    "left of them",
    source="PLBART, section 2.1; the noise of its released script",
    convention="dev: every twentieth function of Parsebank's packages, and UD_English-EWT; "
    "mean cross-entropy of a piece with the noised text and all earlier pieces given",
    rule="in both languages, with the noise as published and as released, the loss is below "
    "that of a unigram model of the training pieces; of the pieces of code 35 % are covered as "
    "published, and of its words 30 % drawn as released, each within 1 point",
    data=(ENGLISH,),
    run=_run,
    code=("trainer/systems/plbart",),
    kind="sanity check",
    reductions={
        "small": f"{_LEFT_OUT}; 2+2 layers of 128 (published: 6+6 of 768), 4,000 pieces "
        "(published: 50,000), 600 steps of at most 2,048 positions (published: 100,000 of "
        "2,048 texts)",
        "full": _LEFT_OUT,
    },
    seeds={"small": 1, "full": 3},
)
