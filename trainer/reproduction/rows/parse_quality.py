"""Does a better parse help? SG-Net's layer over trees of two parsers, of none, and at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from trainer.metrics.significance import over_runs
from trainer.reproduction.items import shares_of
from trainer.reproduction.judgement import Design, Floor, is_gain
from trainer.reproduction.row import Figure, Findings, Row, Size
from trainer.reproduction.rows.noise import ATIS, SPLITS, noisy_dataset, slot_f1
from trainer.reproduction.rows.paired import gain
from trainer.reproduction.rows.treebanks import ENCODER
from trainer.reproduction.trial import Trial

PARSERS: Final[Mapping[str, str]] = {"own": "parsebank/english", "udpipe": "udpipe/english-ewt"}
"""The more accurate one first: LAS of raw text 87.19 and 75.80 on UD_English-EWT."""

ARMS: Final = ("plain", *PARSERS, "random")
_DIFFERENCES: Final = (("own", "udpipe"), ("own", "random"), ("own", "plain"))
_DESIGN: Final = Design(effect=0.3, spread=0.25)
_REDUCTION: Final = "MiniLM, of 6 layers of 384; slots of ATIS, 4,478 utterances"


def _dataset(trial: Trial, arm: str, seed: int) -> tuple[str, ...]:
    if arm == "plain":
        return ("data.dataset=atis-own", "model.use_syntax=false")
    if arm == "random":
        return (f"data.dataset={noisy_dataset(trial, 'atis-own', 1.0, seed)}",)
    return (f"data.dataset=atis-{arm}",)


def _run(trial: Trial) -> Findings:
    for name, parser in PARSERS.items():
        parts = ("--path", str(trial.data / ATIS.path), "--split", ",".join(SPLITS), "--lang", "en")
        named = ("--name", f"atis-{name}", "--parser", parser)
        encoder = ("--tokenizer", str(trial.data / ENCODER.path))
        trial.backfill(f"atis-{name}", "atis", *parts, *named, *encoder)
    found = trial.grid(
        ARMS,
        lambda arm, seed: slot_f1(trial, arm, seed, *_dataset(trial, arm, seed)),
    )
    return findings(found, [_together(trial, *pair) for pair in _DIFFERENCES])


def _together(trial: Trial, one: str, other: str) -> str:
    runs = trial.folder / "runs"
    ours, theirs = shares_of(runs, (one, other), trial.seeds, "test", "en", "slot_f1")
    low, high = over_runs(ours, theirs)
    return (
        f"F1 of {one} less {other}: 95 % of the bootstrap over seeds and utterances together "
        f"{100 * low:+.2f} to {100 * high:+.2f}."
    )


def findings(scores: Mapping[str, Sequence[float]], notes: Sequence[str] = ()) -> Findings:
    gains = [
        gain(_GAIN.format(one, other), None, scores[one], scores[other])
        for one, other in _DIFFERENCES
    ]
    arms = [Figure(f"{arm}: F1, %", None, tuple(scores[arm])) for arm in ARMS]
    return Findings(
        [*gains, *arms],
        is_gain(gains[0].interval, _DESIGN.effect),
        tuple(notes),
        floors=(Floor("plain: F1", arms[0].mean, 93),),
    )


_GAIN: Final = "F1 of slots, {} less {}, points"
_REDUCTIONS: Final[Mapping[Size, str]] = {
    "small": f"{_REDUCTION}; 6 passes of 10, in batches of 16",
    "full": _REDUCTION,
}

ROW: Final = Row(
    name="parse-quality",
    claim="A better parse helps SG-Net's layer",
    source="our own question; RQ3 of MicroBERT's authors and SG-Net's section 7.6 ask it",
    convention="F1 of the slots of ATIS's test split, by the last weights; parsers differ by 11 "
    "LAS on UD_English-EWT; random heads are drawn anew for each seed",
    rule="the claim holds if the 95 % interval of F1 over trees of the better parser less that "
    "over trees of the other (Student's t over seeds) is above 0, else fails if below 0.3, and is "
    "undecided otherwise; the encoder alone must reach 93 F1",
    data=(ATIS, ENCODER),
    run=_run,
    code=("trainer/systems/sgnet", "syntax/parsing"),
    kind="own claim",
    effects=tuple(_GAIN.format(*pair) for pair in _DIFFERENCES),
    design=_DESIGN,
    reductions=_REDUCTIONS,
    seeds={"small": 8, "full": 8},
)
