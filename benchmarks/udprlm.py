"""UD-PrLM in a small size: what trees and USI, as published and corrected, give a frozen encoder.

    python -m benchmarks.udprlm WORK [--steps 800] [--parser-steps 400] [--conditions none,trees]

Pre-trains an encoder of each condition on the treebanks of ten languages, all as deep and for as
many steps, and trains one fresh parser on the frozen states of each. What counts is the paired
difference of its LAS over treebanks, with a bootstrap over these. Published (Table 3, 22
treebanks): UD-BERT less mBERT +1.14. Decided beforehand: reproduced if ``published`` less ``none``
has this sign with p < .05. Run it again to go on after an interruption: WORK keeps everything, of
one size. Results of several calls come together in benchmarks/results/. It needs PARSEBANK_DATA.

Reductions: an encoder of 3 layers of 128 (published: 12 of 768); ``--steps`` steps of 32 a phase
(published: 600,000 of 128) at 1e-3 (published: 5e-5); masked text is that of the treebanks
(published: Wikipedia, and that); 1,200 sentences of each, of at most 128 pieces (published: all,
256, and 384 of text); one fresh parser of all treebanks at once, with one LSTM of 200, without tags
and characters, for ``--parser-steps`` steps (published: one a treebank, three LSTMs of 400); one
seed (published: five); scored on dev.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.trials import Trial, merge, paired, percent, read, results_of_today

TREEBANKS: Final = (
    *("UD_English-EWT", "UD_French-Sequoia", "UD_Korean-GSD", "UD_Vietnamese-VTB"),
    *("UD_Turkish-IMST", "UD_Greek-GDT", "UD_Wolof-WTB", "UD_Maltese-MUDT"),
    *("UD_Uyghur-UDT", "UD_Coptic-Scriptorium"),
)
LAYERS: Final = 3
PIECES: Final = 128

NO_USI: Final = ("model.usi=false",)
CORRECTED: Final = ("model.neighbours=corrected", "model.mixing=corrected")
CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": ("model.use_syntax=false",),
    "published": (),
    "corrected": CORRECTED,
    "trees": NO_USI,
}
"""Settings by name: masked text alone; USI; USI with both corrections; trees without USI."""

DIFFERENCES: Final = (
    ("published", "none"),
    ("corrected", "published"),
    ("trees", "none"),
    ("published", "trees"),
)


@dataclass(frozen=True)
class Size:
    """How large the trial is; steps are those of a phase."""

    steps: int
    parser_steps: int
    batch: int = 32
    sentences: int = 1200
    vocabulary: int = 8000


@dataclass(frozen=True)
class UdPrlmTrial(Trial):
    """The trial, its size, and its folder."""

    size: Size

    def prepare(self) -> None:
        """A tokenizer, and the treebanks of all languages as one dataset."""
        gold = ("ud", "--path", str(self.treebanks(TREEBANKS)), "--lang", "all")
        tokenizer = self.work / "tokenizer"
        if not tokenizer.exists():
            made = ("--split", "train", "--vocab-size", str(self.size.vocabulary))
            self.command("tokenizers", "train", *gold, *made, "--out", str(tokenizer))
        self.backfill(
            *("ud", *gold, "--split", "train,dev", "--mode", "gold", "--expand-words"),
            *("--max-pieces", str(PIECES), "--limit", str(self.size.sentences)),
            *("--tokenizer", str(tokenizer)),
        )

    def figures(self, condition: str) -> dict[str, Any]:
        """What a condition comes to; scores in percent."""
        run = self._pretrain(condition)
        parser = self._parser(condition, run)
        result = read(run / "result.json")
        scores = self.evaluate(parser, "dev")
        direct = result["scores"].get("streams", {}).get("ud", {})
        return {
            "steps": result["steps"],
            "seconds": round(result["seconds"]),
            "masked_accuracy": round(100 * result["scores"]["accuracy"], 2),
            "direct": {name: round(100 * direct[name], 2) for name in ("uas", "las") if direct},
            "las": percent(scores, "las_subtypes"),
            "uas": percent(scores, "uas"),
        }

    def _pretrain(self, condition: str) -> Path:
        """Both phases; what reads no trees, or has no USI, is one run of as many steps."""
        if condition == "none":
            alone = (*CONDITIONS[condition], "streams=[]")
            return self._phase("1", condition, 2 * self.size.steps, LAYERS, *alone)
        if condition == "trees":
            # Of the trees of both phases: all steps of the first, and 0.8 of the second's.
            share = "streams.ud.share=0.9"
            return self._phase("1", condition, 2 * self.size.steps, LAYERS, share, *NO_USI)
        first = self._phase("1", "phase-1", self.size.steps, LAYERS - 1)
        start = (f"model.start_from={first}", *CONDITIONS[condition])
        return self._phase("2", condition, self.size.steps, LAYERS - 1, *start)

    def _phase(self, phase: str, name: str, steps: int, layers: int, *settings: str) -> Path:
        size = (f"model.layers={layers}", "hidden_size=128", "model.heads=8", "feed_forward=512")
        return self.train(
            *(f"udprlm-phase-{phase}", name, f"streams.ud.data.max_length={PIECES}", *_data()),
            *(f"max_steps={steps}", f"batch_size={self.size.batch}", "learning_rate=1e-3"),
            *(f"evaluate_every={steps}", "checkpoint_every=100", "bucket=true"),
            *(() if phase == "2" else size),
            *settings,
        )

    def _parser(self, condition: str, run: Path) -> Path:
        steps = self.size.parser_steps
        return self.train(
            *("udprlm-parser", f"{condition}-parser", f"model.start_from={run}", *_data()),
            *("task.parser.mixed_layers=3", "task.parser.tag_width=0", "threads=1"),
            *("task.parser.char_width=0", "task.parser.projection=0"),
            *("task.parser.context_layers=1", "task.parser.context_width=200"),
            *(f"max_steps={steps}", f"evaluate_every={steps}", "checkpoint_every=100"),
            *CONDITIONS[condition],
        )


def _data() -> tuple[str, ...]:
    return ("data.dataset=ud", f"data.max_length={PIECES}", "threads=1")


def differences(conditions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Paired over treebanks, of the conditions that are there."""
    return {
        f"{one} - {other}": {
            metric: paired(conditions[one][metric], conditions[other][metric])
            for metric in ("las", "uas")
        }
        for one, other in DIFFERENCES
        if one in conditions and other in conditions
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path, help="folder of the tokenizer, the store and the runs")
    parser.add_argument("--steps", type=int, default=800, help="of each of the two phases")
    parser.add_argument("--parser-steps", type=int, default=400)
    parser.add_argument("--sentences", type=int, default=1200, help="of each treebank and split")
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--results", type=Path, default=results_of_today("udprlm"))
    chosen = parser.parse_args()
    size = Size(chosen.steps, chosen.parser_steps, sentences=chosen.sentences)
    trial = UdPrlmTrial(chosen.work.resolve(), size)
    trial.prepare()
    for condition in chosen.conditions.split(","):
        found = {condition: trial.figures(condition)}
        merge(chosen.results, asdict(size), found, differences)
        print(found, flush=True)


if __name__ == "__main__":
    main()
