"""UD-PrLM: what trees and USI, as published and corrected, give a frozen encoder (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from trainer.reproduction.judgement import Floor, is_gain
from trainer.reproduction.row import Figure, Findings, Row, Size, Source
from trainer.reproduction.rows.paired import less, mean, note, over_languages
from trainer.reproduction.rows.treebanks import ENGLISH, OTHERS
from trainer.reproduction.trial import Trial

TREEBANKS: Final[Mapping[str, Source]] = {
    "en": ENGLISH,
    **{lang: OTHERS[lang] for lang in ("fr", "ko", "vi", "tr", "el", "wo", "mt", "ug", "cop")},
}
"""Treebanks with a train split; that of Korean is of an earlier release."""

_NO_USI: Final = "model.usi=false"
_CORRECTED: Final = ("model.neighbours=corrected", "model.mixing=corrected")
CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": ("model.use_syntax=false",),
    "published": (),
    "corrected": _CORRECTED,
    "trees": (_NO_USI,),
}
"""Settings of the model: masked text alone; USI; USI with both corrections; trees without USI."""

_DIFFERENCES: Final = {
    ("published", "none"): 1.14,
    ("corrected", "published"): None,
    ("trees", "none"): None,
    ("published", "trees"): None,
}

SMALL: Final[Mapping[str, tuple[str, ...]]] = {
    "encoder": ("hidden_size=128", "model.heads=8", "feed_forward=512"),
    "training": (
        *("batch_size=32", "learning_rate=1e-3", "checkpoint_every=100", "bucket=true"),
        "data.max_length=128",
    ),
    "parser": (
        *("max_steps=400", "evaluate_every=400", "checkpoint_every=100", "data.max_length=128"),
        *("task.parser.tag_width=0", "task.parser.char_width=0", "task.parser.projection=0"),
        "task.parser.word_width=0",
        *("task.parser.context_layers=1", "task.parser.context_width=200"),
        "task.parser.mixed_layers=3",
    ),
}
_STEPS: Final = 500
_BOTH: Final = (
    "masked text is that of the treebanks (published: Wikipedia, and that); ten treebanks "
    "(published: 60, scored on 22), and one fresh parser of all of them (published: one each)"
)
_REDUCTIONS: Final[Mapping[Size, str]] = {
    "small": f"{_BOTH}; 1,200 sentences of each, of at most 128 pieces; an encoder of 3 layers of "
    "128 (published: 12 of 768), 500 steps of 32 a phase (published: 600,000 of 128) at a rate of "
    "1e-3 (published: 5e-5); the fresh parser has one LSTM of 200, reads states alone, and has 400 "
    "steps",
    "full": _BOTH,
}


def _prepare(trial: Trial) -> None:
    folder, tokenizer = trial.folder / "treebanks", trial.folder / "tokenizer"
    folder.mkdir(exist_ok=True)
    for source in TREEBANKS.values():
        for file in sorted((trial.data / source.path).rglob("*.conllu")):
            link = folder / file.name.replace(".2022-09-14", "")
            if not link.exists():
                link.symlink_to(file.resolve())
    gold = ("ud", "--path", str(folder), "--lang", "all")
    if not tokenizer.exists():
        pieces = ("--vocab-size", "8000") if trial.size == "small" else ()
        made = ("--split", "train", *pieces, "--out", str(tokenizer))
        trial.parsebank("tokenizers", "train", *gold, *made)
    small = ("--limit", "1200", "--max-pieces", "128") if trial.size == "small" else ()
    words = ("--expand-words", *(small or ("--max-pieces", "256")))
    splits = ("--split", "train,dev", "--mode", "gold", "--tokenizer", str(tokenizer))
    trial.backfill("ud", *gold, *splits, *words)


def _pretrained(trial: Trial, condition: str, seed: int) -> Path:
    """An encoder of a condition: all are as deep, and trained for as many steps."""
    own = CONDITIONS[condition]
    if condition == "none":
        return _phase(trial, 1, condition, seed, 0, "streams=[]", *own)
    if condition == "trees":
        # As many trees as in both phases: in all steps of the first, and in 0.8 of the second's.
        return _phase(trial, 1, condition, seed, 0, "streams.ud.share=0.9", *own)
    first = _phase(trial, 1, "phase-1", seed, 1)
    return _phase(trial, 2, condition, seed, 1, f"model.start_from={first}", *own)


def _phase(trial: Trial, phase: int, name: str, seed: int, further: int, *settings: str) -> Path:
    """A run of one phase; without a further layer and a second phase, of both at once."""
    layers, steps = (3, _STEPS) if trial.size == "small" else (12, 600_000)
    steps *= 1 if further else 2
    sizes = SMALL["encoder"] if trial.size == "small" else ()
    size = (f"model.layers={layers - further}", *sizes)
    small = (*SMALL["training"], "streams.ud.data.max_length=128")
    given = (
        *("data.dataset=ud", "data.lang=*", f"max_steps={steps}", f"evaluate_every={steps}"),
        *("streams.ud.data.lang=*", "data.gold=null", "data.lang_exponent=null"),
        *(size if phase == 1 else ()),
        *(small if trial.size == "small" else ()),
    )
    return trial.train(f"udprlm-phase-{phase}", name, seed, (*given, *settings))


def _parser(trial: Trial, condition: str, seed: int) -> dict[str, Any]:
    start = (f"model.start_from={_pretrained(trial, condition, seed)}", *CONDITIONS[condition])
    small = SMALL["parser"] if trial.size == "small" else ()
    settings = ("data.lang=*", *start, *small)
    run = trial.train("udprlm-parser", f"{condition}-parser", seed, settings)
    found = trial.scores(run, "dev")
    return {lang: found[lang] for lang in TREEBANKS}


def _run(trial: Trial) -> Findings:
    _prepare(trial)
    found = trial.grid(CONDITIONS, partial(_parser, trial))
    las, uas = (
        {
            condition: [{x: 100 * one[score] for x, one in of.items()} for of in seeds]
            for condition, seeds in found.items()
        }
        for score in ("las_subtypes", "uas")
    )
    figures = [
        less(f"{one} less {other}: mean LAS", published, las[one], las[other])
        for (one, other), published in _DIFFERENCES.items()
    ]
    for condition in CONDITIONS:
        runs = [_pretrained(trial, condition, seed) for seed in trial.seeds]
        accuracy = tuple(100 * float(trial.result(run)["scores"]["accuracy"]) for run in runs)
        figures += [
            Figure(f"{condition}: mean LAS", None, tuple(map(mean, las[condition]))),
            Figure(f"{condition}: mean UAS", None, tuple(map(mean, uas[condition]))),
            Figure(f"{condition}: accuracy of masked pieces, %", None, accuracy),
        ]
    differences = {
        f"{one} less {other}": over_languages(las[one], las[other]) for one, other in _DIFFERENCES
    }
    first = differences["published less none"]
    masked = next(one.mean for one in figures if one.name.startswith("none: accuracy of masked"))
    return Findings(
        figures,
        holds=is_gain((first.low, first.high), 1.0),
        floors=(Floor("none: accuracy of masked pieces", masked, 25),),
        notes=tuple(note(f"LAS, {name}", one) for name, one in differences.items()),
    )


ROW: Final = Row(
    name="udprlm",
    claim="Pre-training on trees, which USI brings into the states, helps a parser over the "
    "frozen encoder",
    source="UD-PrLM, Table 3: the frozen UD-BERT is 1.14 LAS better than mBERT",
    convention="LAS of dev with punctuation and whole relations, gold words, mean over "
    "languages; all encoders are as deep and trained for as many steps",
    rule="the claim holds if the 95 % interval of the LAS of `published` less that of `none` "
    "(paired bootstrap over ten treebanks) is above 0, else fails if below 1, and is undecided "
    "otherwise; without syntax the encoder must find 25 % of the masked pieces",
    data=tuple(TREEBANKS.values()),
    run=_run,
    code=(
        "trainer/systems/udprlm",
        "trainer/tasks/graph_parser.py",
    ),
    effects=("published less none: mean LAS",),
    reductions=_REDUCTIONS,
    seeds={"small": 1, "full": 5},
)
