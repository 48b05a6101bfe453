"""MicroBERT for Wolof (Gessler and Schneider 2023, Tables 2 and 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from trainer.reproduction.judgement import Floor, is_gain
from trainer.reproduction.row import Figure, Findings, Row, Size, Source
from trainer.reproduction.rows.paired import gain
from trainer.reproduction.rows.treebanks import UD
from trainer.reproduction.trial import Trial

TREEBANK: Final = Source("treebanks/UD_Wolof-WTB", UD)
PAGES: Final = Source(
    "corpora/microbert/wolof-wikipedia-html.tar.xz", "the pages of MicroBERT's Wolof corpus"
)
NAMES: Final = Source("benchmarks/wikiann-lowresource/wolof", "WikiAnn, Wolof")

_LR_SIB: Final = "objectives.phrase.phrase_loss=lr_sib"
_KINDS: Final = ("", "-phrase", "-tree", "-phrase-tree")
_LOCAL: Final = "-phrase-tree-sla"
_PUBLISHED_SIGN: Final = "mlm-phrase-tree-published-sign"

CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "random": (),
    **{
        f"{base}{kind}": (f"microbert-{base}{kind}", *([_LR_SIB] if "phrase" in kind else ()))
        for base in ("mlm", "mlm-xpos")
        for kind in _KINDS
    },
    **{f"{base}{_LOCAL}": (f"microbert-{base}{_LOCAL}", _LR_SIB) for base in ("mlm", "mlm-xpos")},
    _PUBLISHED_SIGN: ("microbert-mlm-phrase-tree",),
}
"""Recipe and settings of each encoder; ``random`` is not trained. Ten are the paper's, whose
figures are of the release's loss of phrases (``lr_sib``). The last condition has the sign of the
paper's formula and no division by the length; no figure of it was published."""

_PUBLISHED_LAS: Final = {"mlm": 77.71, "mlm-xpos": 77.74, "mlm-phrase-tree-sla": 76.25}
_PUBLISHED_EFFECTS: Final = {
    "LAS of dev, tags": 0.77,
    "F1 of names, tags": -3.28,
    "F1 of names, phrases, trees or both": 5.62,
}
"""Means over pairs of the printed cells of ten conditions."""

_PUBLISHED_F1: Final = {"mlm": 83.40, "mlm-tree": 87.16}
_EFFECTS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "tags": [(f"mlm-xpos{kind}", f"mlm{kind}") for kind in (*_KINDS, _LOCAL)],
    "phrases, trees or both": [
        (f"{base}{kind}", base) for base in ("mlm", "mlm-xpos") for kind in _KINDS[1:]
    ],
    "local attention": [(f"{base}{_LOCAL}", f"{base}-phrase-tree") for base in ("mlm", "mlm-xpos")],
}
"""Pairs of conditions with a part and without it."""

SMALL: Final[Mapping[str, tuple[str, ...]]] = {
    "pretraining": (
        *("max_steps=2500", "warmup_steps=250", "evaluate_every=2500", "checkpoint_every=100"),
        *("bucket=true", "batch_size=32", "accumulation=1", "learning_rate=1e-3"),
    ),
    "parser": (
        *("max_steps=800", "task.parser.context=lstm", "task.parser.recurrent_dropout=0"),
        *("task.parser.context_layers=1", "task.parser.context_width=200"),
        *("task.parser.shared_dropout=false", "clip_value=0", "clip_norm=5"),
    ),
    "tagger": ("epochs=10",),
}
_REDUCTIONS: Final[Mapping[Size, str]] = {
    "small": "2,500 steps of 32 examples (published: 62,500 of 256) at a rate of 1e-3 (published: "
    "3e-3, at which batches of 32 learn how frequent pieces are, and no more), a tenth of them "
    "warm-up (published: 16 %), batches of sentences of like length; below the parser one plain "
    "LSTM of 200 (published: three with highways, of 400), 800 steps; the tagger 10 epochs "
    "(published: until 50 evaluations bring nothing); silver trees of a UDPipe model that is "
    "trained on the treebank (published: Stanza)",
    "full": "silver trees of a UDPipe model that is trained on the treebank (published: Stanza)",
}


def _prepare(trial: Trial) -> None:
    treebank = str(trial.data / TREEBANK.path)
    pages = ("microbert", "--path", str(trial.data / PAGES.path), "--lang", "wo")
    models, tokenizer = trial.folder / "models", trial.folder / "tokenizer"
    if not models.exists():
        model = ("--treebank", treebank, "--lang", "wo", "--name", "wolof-wtb")
        trial.parsebank("models", "train", "udpipe", *model, "--out", str(models))
    if not tokenizer.exists():
        trial.parsebank(
            *("tokenizers", "train", *pages, "--split", "train", "--out", str(tokenizer))
        )
    words = ("--expand-words", "--max-pieces", "512")
    names = ("wikiann", "--path", str(trial.data / NAMES.path), "--lang", "wo")
    gold = ("ud", "--path", treebank, "--lang", "wo", *words)
    every = "train,dev,test"
    _backfill(trial, "wolof-gold", *gold, "--split", every)
    # What local attention reads while the gold trees are learned.
    parsed = ("ud", "--path", str(_words(trial)), "--lang", "wo", "--mode", "pretokenized")
    _backfill(trial, "wolof-parsed", *parsed, "--split", every)
    _backfill(trial, "wolof-silver", *pages, *words, "--split", "train,dev", *_RETOKENIZE)
    _backfill(trial, "wolof-names", *names, "--mode", "pretokenized", "--split", every)


def _words(trial: Trial) -> Path:
    """The treebank with its words as tokens, which a parser takes as they are."""
    folder = trial.folder / "words"
    folder.mkdir(exist_ok=True)
    for file in sorted((trial.data / TREEBANK.path).glob("*.conllu")):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not _TOKEN.match(line)]
        (folder / file.name).write_text("".join(kept), encoding="utf-8")
    return folder


_TOKEN: Final = re.compile(r"[0-9]+-[0-9]+\t")
_RETOKENIZE: Final = ("--mode", "retokenize")


def _backfill(trial: Trial, name: str, *arguments: str) -> None:
    target = ("--tokenizer", str(trial.folder / "tokenizer"), "--name", name)
    models = {"PARSEBANK_MODELS_DIR": str(trial.folder / "models")}
    trial.backfill(name, *arguments, *target, environment=models)


def _encoder(trial: Trial, condition: str, seed: int) -> tuple[str, ...]:
    folder = trial.folder / "encoders" / f"{condition}-{seed}"
    if not CONDITIONS[condition]:  # the sizes of a trained one, and no weights
        return (*_encoder(trial, "mlm", seed)[:1], "model.weights=random")
    recipe, *settings = CONDITIONS[condition]
    datasets = ("data.dataset=wolof-silver", "data.gold=wolof-gold")
    run = trial.train(
        recipe, condition, seed, (*datasets, *_small(trial, "pretraining"), *settings)
    )
    if not folder.exists():
        trial.parsebank("export", str(run), str(folder))
    return (f"model.encoder={folder}", "model.weights=pretrained")


def _small(trial: Trial, part: str) -> tuple[str, ...]:
    return SMALL[part] if trial.size == "small" else ()


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of a condition, in per cent, by seed of the encoder and of what is trained over it.

    ``dev`` is LAS as the paper reports it, ``test`` LAS of every word, ``names`` F1 of names.
    """

    dev: tuple[float, ...]
    test: tuple[float, ...]
    names: tuple[float, ...]


def _scores(trial: Trial, condition: str) -> Scores:
    is_local = condition.endswith(_LOCAL)
    own = "-sla" if is_local else ""
    parsed = ("data.dataset=wolof-parsed", "data.treebank=wolof-gold")
    trees = parsed if is_local else ("data.dataset=wolof-gold",)
    names = ("data.dataset=wolof-names",)
    parsers, taggers = [], []
    for seed in trial.seeds:
        both = ("data.lang=wo", *_encoder(trial, condition, seed))
        parser = (*trees, *both, *_small(trial, "parser"))
        tagger = (*names, *both, *_small(trial, "tagger"))
        name = f"microbert-ud-frozen{own}"
        parsers.append(trial.train(name, f"{condition}-parser", seed, parser))
        taggers.append(trial.train(f"microbert-ner{own}", f"{condition}-tagger", seed, tagger))
    return Scores(
        tuple(100 * trial.result(run)["scores"]["las_no_punct_subtypes"] for run in parsers),
        tuple(100 * trial.scores(run, "test")["wo"]["las"] for run in parsers),
        tuple(100 * trial.scores(run, "test")["wo"]["f1"] for run in taggers),
    )


def _run(trial: Trial) -> Findings:
    _prepare(trial)
    scores = {condition: _scores(trial, condition) for condition in CONDITIONS}
    runs = [trial.result(trial.folder / "runs" / "mlm" / f"seed{seed}") for seed in trial.seeds]
    return findings(scores, 100 * fmean(float(run["scores"]["accuracy"]) for run in runs))


def findings(scores: Mapping[str, Scores], masked: float) -> Findings:
    """From the scores by condition, and the share of masked pieces that `mlm` finds, in percent."""
    dev = {condition: of.dev for condition, of in scores.items()}
    names = {condition: of.names for condition, of in scores.items()}
    signs = (dev["mlm-phrase-tree"], dev[_PUBLISHED_SIGN])
    figures = [
        *(
            Figure(f"{condition}: LAS of dev", _PUBLISHED_LAS.get(condition), values)
            for condition, values in dev.items()
        ),
        gain("LAS of dev, mlm less random", None, dev["mlm"], dev["random"]),
        gain("LAS of dev, phrase loss released less published", None, *signs),
        gain("LAS of dev, phrases and trees less mlm, released loss", None, signs[0], dev["mlm"]),
        gain("LAS of dev, phrases and trees less mlm, published loss", None, signs[1], dev["mlm"]),
        *_effects("LAS of dev", dev),
        *_effects("F1 of names", names),
    ]
    for condition, of in scores.items():
        name = f"{condition}: LAS of test, every word (CoNLL 2018)"
        figures.append(Figure(name, None, of.test))
        name = f"{condition}: F1 of names, test"
        figures.append(Figure(name, _PUBLISHED_F1.get(condition), of.names))
    (tags,) = [one for one in figures if one.name.startswith("LAS of dev, tags")]
    return Findings(
        figures,
        holds=is_gain(tags.interval, 0.5),
        floors=(Floor("mlm: masked pieces found, %", masked, 25),),
        notes=(
            "The released loss of phrases takes the divergence of two pieces' attention as their "
            "likeness, and so pushes pieces of a phrase apart; it also divides by the length, "
            "which makes it small. The published formula pulls them together.",
            "The paper has one run of each condition; over all its languages, tags add about 1 "
            "point of LAS. Local attention reads trees of the UDPipe model, which has learned from "
            "the treebank's train split: there they are nearly gold.",
            "125 entities in the test split of names: one of them is 0.8 points of F1.",
        ),
    )


def _effects(score: str, values: Mapping[str, Sequence[float]]) -> list[Figure]:
    """The gain by each part, of each seed: mean over pairs of conditions with and without it."""
    figures = []
    for added, every in _EFFECTS.items():
        of_pairs = np.array([np.subtract(values[with_it], values[less]) for with_it, less in every])
        name = f"{score}, {added}: mean gain over {len(every)} pairs of conditions"
        published = _PUBLISHED_EFFECTS.get(f"{score}, {added}")
        figures.append(Figure(name, published, tuple(of_pairs.mean(axis=0).tolist())))
    return figures


ROW: Final = Row(
    name="wolof",
    claim="Tags that a small BERT of Wolof learns beside masked pieces help a parser",
    source="Gessler and Schneider 2023, Tables 2 and 3",
    convention="LAS of dev without UPOS PUNCT and SYM, subtypes compared, as the paper "
    "reports it, over a frozen encoder; F1 of WikiAnn's test split",
    rule="the claim holds if the 95 % interval of the gain of LAS by tags (Student's t over seeds, "
    "each with its own pre-training) is above 0, else fails if below 0.5, and is undecided "
    "otherwise; `mlm` must find 25 % of the masked pieces; other differences are "
    "reported with their intervals",
    data=(TREEBANK, PAGES, NAMES),
    run=_run,
    code=(
        "trainer/systems/microbert",
        "trainer/systems/sla",
        "trainer/objectives",
        "trainer/tasks/graph_parser.py",
    ),
    effects=(
        "LAS of dev, tags: mean gain over 5 pairs of conditions",
        "F1 of names, tags: mean gain over 5 pairs of conditions",
        "F1 of names, phrases, trees or both: mean gain over 6 pairs of conditions",
    ),
    reductions=_REDUCTIONS,
    seeds={"small": 4, "full": 4},
)
