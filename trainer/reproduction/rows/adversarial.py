"""Adversarial training of the order-free parser (Ahmad et al. 2019, auxiliary languages)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from trainer.reproduction.row import Figure, Findings, Row, Size
from trainer.reproduction.rows.paired import Scores, gain, less, mean, note, over_languages
from trainer.reproduction.rows.treebanks import ENGLISH, OTHERS, TOKENIZER
from trainer.reproduction.rows.word_order import gold_trees
from trainer.reproduction.trial import Trial
from trainer.results import read_json

AUXILIARY: Final = "fr"
TARGETS: Final = {lang: one for lang, one in OTHERS.items() if lang not in ("zh", "ja", "cop")}

RECIPE: Final = "adversarial-orderfree"
CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": ("objectives.adversary.strength=0",),
    "gan": (),
}
"""Settings by name; with a factor of 0 the discriminator alone learns, of the same batches."""

SMALL: Final = ("epochs=6", "training.delay=3", "evaluate_epochs=3", "checkpoint_every=200")
_BOTH: Final = (
    "tags alone (published: mBERT or word vectors); the language test tells English and French "
    "apart (published: seven languages)"
)
_REDUCTIONS: Final[Mapping[Size, str]] = {
    "small": f"{_BOTH}; 6 passes, of which 3 of parsing alone (published: 400, of which 100), at a "
    "rate of 1e-3 (published 1e-4, too small for so few passes)",
    "full": _BOTH,
}


def _language_test(trial: Trial, run: Path) -> float:
    """Words of dev whose language a classifier of the states tells, in percent."""
    file = run / "language-test-dev.json"
    if not file.exists():
        langs = ("--lang", f"en,{AUXILIARY}", "--store", str(trial.store))
        trial.parsebank("language-test", str(run), *langs)
    return 100 * float(read_json(file, "`parsebank language-test` did not write it")["accuracy"])


def _run(trial: Trial) -> Findings:
    gold_trees(trial, "en", ENGLISH.path, "train,dev,test")
    for lang, treebank in TARGETS.items():
        gold_trees(trial, lang, treebank.path, "train,dev,test" if lang == AUXILIARY else "test")
    small = (*SMALL, "learning_rate=1e-3") if trial.size == "small" else ()

    def measured(condition: str, seed: int) -> tuple[Scores, float]:
        run = trial.train(RECIPE, condition, seed, (*small, *CONDITIONS[condition]))
        found = trial.scores(run, "test")
        las = {lang: 100 * float(found[lang]["las_no_punct"]) for lang in TARGETS}
        return las, _language_test(trial, run)

    found = trial.grid(CONDITIONS, measured)
    las = {condition: [scores for scores, _ in of] for condition, of in found.items()}
    told = {condition: [share for _, share in of] for condition, of in found.items()}
    fallen = gain("language test, gan less none, points", None, told["gan"], told["none"])
    gained = less("mean LAS, gan less none", 56.22 - 55.86, las["gan"], las["none"])
    figures = [fallen, gained]
    for condition in CONDITIONS:
        figures += [
            Figure(f"{condition}: language test, %", None, tuple(told[condition])),
            Figure(f"{condition}: mean LAS", None, tuple(map(mean, las[condition]))),
        ]
    return Findings(
        figures,
        holds=fallen.mean <= -5 and gained.mean >= -0.3,
        notes=(note("LAS, gan less none", over_languages(las["gan"], las["none"])),),
    )


ROW: Final = Row(
    name="adversarial",
    claim="An encoder that hides its language from a discriminator tells it less, and parses "
    "other languages no worse",
    source="Ahmad et al. 2019, unlabeled auxiliary languages; en-fr over word vectors",
    convention="LAS of test without UPOS PUNCT and SYM, relations without subtypes, mean over "
    "languages other than English; accuracy of a classifier of words on dev",
    rule="the accuracy of the language test falls by 5 points or more against the same "
    "training without the adversary, and the mean LAS by no more than 0.3",
    data=(ENGLISH, TOKENIZER, *TARGETS.values()),
    run=_run,
    reductions=_REDUCTIONS,
    seeds={"small": 2, "full": 5},
)
