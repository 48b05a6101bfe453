"""SG-Net for translation: the syntax-guided layer against the Transformer alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trainer.evaluation.compare import compare
from trainer.reproduction.judgement import Design, Floor, is_gain
from trainer.reproduction.row import Figure, Findings, Row, Size, Source
from trainer.reproduction.rows.paired import p_value
from trainer.reproduction.trial import Trial

CORPUS: Final = Source("benchmarks/multi30k", "Multi30k, English and German (multi30k/dataset)")
TEST: Final = "test_2016_flickr"
ARMS: Final[Mapping[str, str]] = {"sgnet": "sgnet-translation", "plain": "translation"}
"""The one that is to translate better comes first."""

_PUBLISHED: Final = 27.68 - 27.31
_PIECES: Final[Mapping[Size, str]] = {"small": "4000", "full": "10000"}
_BOTH: Final = (
    *("task.tie=all", "model.heads=4", "training.learning_rate=5e-3", "data.max_length=128"),
    "task.longest=128",
)
SIZES: Final[Mapping[Size, tuple[str, ...]]] = {
    "small": (
        *_BOTH,
        *("model.layers=2", "hidden_size=128", "feed_forward=256", "layer_dropout=0.1"),
        *("batch_tokens=1536", "max_steps=1600", "warmup_steps=400", "evaluate_every=800"),
        *("checkpoint_every=200", "evaluation_batch_size=128"),
    ),
    "full": (
        *_BOTH,
        *("model.layers=4", "hidden_size=256", "feed_forward=1024", "layer_dropout=0.3"),
        *("batch_tokens=4096", "max_steps=15000", "warmup_steps=2000"),
    ),
}
_CORPUS: Final = "Multi30k (29,000 pairs; published: WMT14, 4.4 million), trees of UD"
_REDUCTIONS: Final[Mapping[Size, str]] = {
    "small": f"{_CORPUS}; 2+2 layers of 128 (published: 6+6 of 512), 4,000 joint pieces "
    "(published: 40,000), 1,600 steps of at most 1,536 tokens a side (published: 300,000 of "
    "16,384)",
    "full": f"{_CORPUS}; 4+4 layers of 256 (published: 6+6 of 512), 10,000 joint pieces "
    "(published: 40,000), 15,000 steps of at most 4,096 tokens a side (published: 300,000 of "
    "16,384)",
}


def _prepare(trial: Trial) -> None:
    path, tokenizer = str(trial.data / CORPUS.path), trial.folder / "tokenizer"
    if not tokenizer.exists():
        size = ("--kind", "bpe", "--vocab-size", _PIECES[trial.size])
        both = ("--path", path, "--split", "train", "--lang", "en,de")
        trial.parsebank("tokenizers", "train", "translation", *both, *size, "--out", str(tokenizer))
    parts = ("--path", path, "--split", f"train,dev,{TEST}", "--lang", "en")
    trial.backfill("multi30k", "translation", *parts, "--tokenizer", str(tokenizer))


def _seconds_a_step(trial: Trial, run: Path) -> float:
    """Time of training alone, without waiting for data."""
    result = trial.result(run)
    return float(result["seconds"] * (1 - result["data_share"]) / result["steps"])


def _bleu_of_products(trial: Trial) -> float:
    """BLEU of the first seed by equation 7 to the letter: masked scores are 0, not left out."""
    settings = (*SIZES[trial.size], "model.masking=multiply")
    run = trial.train(ARMS["sgnet"], "sgnet-multiply", trial.seeds[0], settings)
    return float(trial.scores(run, TEST)["en"]["bleu"])


def _run(trial: Trial) -> Findings:
    _prepare(trial)

    def measured(arm: str, seed: int) -> tuple[dict[str, Any], float]:
        run = trial.train(ARMS[arm], arm, seed, SIZES[trial.size])
        return trial.scores(run, TEST)["en"], _seconds_a_step(trial, run)

    found = trial.grid(ARMS, measured)
    scores = {arm: [of_run for of_run, _ in of] for arm, of in found.items()}
    seconds = {arm: [of_run for _, of_run in of] for arm, of in found.items()}
    literal = _bleu_of_products(trial)
    sgnet, plain = (trial.folder / "runs" / arm for arm in ARMS)
    (line,) = compare(sgnet, plain, TEST, ("bleu",)).lines
    gaps = tuple(ours - theirs for ours, theirs in line.seeds.values())
    cost = tuple(ours / theirs for ours, theirs in zip(*seconds.values(), strict=True))
    figures = [Figure(_GAIN, _PUBLISHED, gaps)]
    figures += [
        Figure(f"{arm}: {name}", None, tuple(float(one[key]) for one in scores[arm]))
        for arm in ARMS
        for name, key in (("BLEU", "bleu"), ("chrF", "chrf"))
    ]
    figures.append(Figure("sgnet with scores times the mask: BLEU, one seed", None, (literal,)))
    figures.append(Figure("time of a training step, sgnet / plain", None, cost))
    gap, signs = line.difference, line.mcnemar.items()
    told = ", ".join(f"{name} {x.only_one} to {x.only_other} ({p_value(x.p)})" for name, x in signs)
    bleu = next(one.mean for one in figures if one.name == "plain: BLEU")
    return Findings(
        figures,
        holds=is_gain(figures[0].interval, _DESIGN.effect),
        floors=(Floor("plain: BLEU", bleu, 36),),
        notes=(
            f"BLEU, sgnet less plain: {gap.difference:+.2f}, 95 % of the paired bootstrap over "
            f"sentences {gap.low:+.2f} to {gap.high:+.2f}, {p_value(gap.bootstrap)}.",
            f"Sentences that sgnet translates better, to those of plain (sign test): {told}.",
            f"Signature: {scores['plain'][0]['signatures']['bleu']}.",
        ),
    )


_GAIN: Final = "sgnet less plain: BLEU"
_DESIGN: Final = Design(effect=0.3, spread=0.4)

ROW: Final = Row(
    name="translation",
    claim="A layer in which each source word attends to its ancestors helps a Transformer to "
    "translate",
    source="SG-Net, Table 5: 27.68 BLEU against 27.31 on WMT14 English-German, with BPE",
    convention=f"Multi30k English-German, {TEST}; sacrebleu on text as it is; beam 5, length "
    "penalty 0.6",
    rule="the claim holds if the 95 % interval of BLEU of `sgnet` less that of `plain` (Student's "
    "t over seeds) is above 0, else fails if below 0.3, and is undecided otherwise; `plain` must "
    "reach 36 BLEU",
    data=(CORPUS,),
    run=_run,
    code=(
        "trainer/systems/sgnet",
        "trainer/systems/transformer",
        "trainer/tasks/translation.py",
        "trainer/metrics/translation.py",
    ),
    effects=(_GAIN,),
    design=_DESIGN,
    reductions=_REDUCTIONS,
    seeds={"small": 3, "full": 5},
)
