"""Adversarial training in a small size: does an encoder hide its language, and what does it cost?

    python -m benchmarks.adversarial WORK [--auxiliary fr] [--epochs 24] [--conditions none,gan]

Trains the delexicalised order-free parser (self-attention, graph decoder) on English beside
unlabelled sentences of an auxiliary language, and tests each encoder: how well a classifier tells
the two languages by its states, and LAS on treebanks of other languages. ``none`` trains the
discriminator alone (lambda 0), with the same batches. Decided beforehand: reproduced if the
accuracy of the classifier falls by 5 points and the mean LAS, paired over languages and seeds, by
no more than 0.3. Run it again to go on after an interruption: WORK keeps everything, of one size.
Results of several calls come together in benchmarks/results/. It needs PARSEBANK_DATA.

Reductions: ``--sentences`` of each treebank (published: all), ``--epochs`` passes, half of them the
delay (published: 400, of which 100), of tags alone (published: mBERT or word vectors), tested on
300 sentences of twelve languages (published: all, of 29), two seeds (published: five).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

from benchmarks.trials import Trial, merge, paired, percent, read, results_of_today

SOURCE: Final = "en"
TREEBANKS: Final = (
    *("UD_English-EWT", "UD_French-Sequoia", "UD_German-GSD", "UD_Spanish-GSD", "UD_Russian-GSD"),
    *("UD_Chinese-GSDSimp", "UD_Korean-GSD", "UD_Vietnamese-VTB", "UD_Turkish-IMST"),
    *("UD_Greek-GDT", "UD_Wolof-WTB", "UD_Maltese-MUDT", "UD_Uyghur-UDT"),
)
TESTED: Final = 300

CONDITIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": ("objectives.adversary.strength=0",),
    "gan": (),
    "gan-0.1": ("objectives.adversary.strength=0.1",),
    "reversal": ("objectives.adversary.method=reversal",),
}
"""Settings by name; lambda is 0.01 where it is not told."""


@dataclass(frozen=True)
class Size:
    """How large the trial is."""

    auxiliary: str
    epochs: int
    sentences: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class AdversarialTrial(Trial):
    """The trial, its size, and its folder."""

    size: Size

    def prepare(self) -> None:
        """The treebanks of all languages as one dataset."""
        path = str(self.treebanks(TREEBANKS))
        gold = ("ud", "--path", path, "--lang", "all", "--mode", "gold")
        learned = ("--split", "train,dev", "--limit", str(self.size.sentences))
        self.backfill("ud", *gold, *learned)
        self.backfill("tested", *gold, "--split", "test", "--limit", str(TESTED))

    def figures(self, condition: str) -> dict[str, Any]:
        """What a condition comes to; scores in percent, by seed."""
        runs = {seed: self._run(condition, seed) for seed in self.size.seeds}
        results = {seed: read(run / "result.json") for seed, run in runs.items()}
        scores = {seed: self.evaluate(run, "test", "tested") for seed, run in runs.items()}
        return {
            "steps": results[self.size.seeds[0]]["steps"],
            "seconds": round(mean(result["seconds"] for result in results.values())),
            "language_test": {seed: self._language_test(run) for seed, run in runs.items()},
            "las": {seed: percent(of, "las_no_punct") for seed, of in scores.items()},
            "uas": {seed: percent(of, "uas_no_punct") for seed, of in scores.items()},
        }

    def _run(self, condition: str, seed: int) -> Path:
        return self.train(
            *("adversarial-orderfree", f"{condition}-seed{seed}", "data.dataset=ud"),
            *("streams.auxiliary.data.dataset=ud", "threads=1", "checkpoint_every=200"),
            f"streams.auxiliary.data.lang={self.size.auxiliary}",
            *(f"epochs={self.size.epochs}", f"delay={self.size.epochs // 2}"),
            *("evaluate_epochs=4", *CONDITIONS[condition]),
            seed=seed,
        )

    def _language_test(self, run: Path) -> float:
        """Accuracy of the classifier, in percent."""
        found = run / "language-test-dev.json"
        if not found.exists():
            langs = f"{SOURCE},{self.size.auxiliary}"
            self.command(
                "language-test", str(run), "--lang", langs, "--store", str(self.work / "store")
            )
        return round(100 * read(found)["accuracy"], 2)


def differences(conditions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Paired over languages other than the source, and seeds: each condition less ``none``."""
    if "none" not in conditions:
        return {}
    plain = conditions["none"]
    return {
        f"{name} - none": {
            "language_test": round(_mean(found) - _mean(plain), 2),
            **{metric: paired(_flat(found[metric]), _flat(plain[metric])) for metric in _METRICS},
        }
        for name, found in conditions.items()
        if name != "none"
    }


_METRICS: Final = ("las", "uas")


def _mean(found: Mapping[str, Any]) -> float:
    return mean(found["language_test"].values())


def _flat(scores: Mapping[Any, Mapping[str, float]]) -> dict[str, float]:
    """Scores by language and seed, without the source's."""
    return {
        f"{lang}-{seed}": score
        for seed, of in scores.items()
        for lang, score in of.items()
        if lang != SOURCE
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path, help="folder of the store and the runs")
    parser.add_argument("--auxiliary", default="fr", help="a language with a train split")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--sentences", type=int, default=2000, help="of each treebank and split")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--results", type=Path, default=results_of_today("adversarial"))
    chosen = parser.parse_args()
    seeds = tuple(int(seed) for seed in chosen.seeds.split(","))
    size = Size(chosen.auxiliary, chosen.epochs, chosen.sentences, seeds)
    trial = AdversarialTrial(chosen.work.resolve(), size)
    trial.prepare()
    for condition in chosen.conditions.split(","):
        found = {condition: trial.figures(condition)}
        merge(chosen.results, asdict(size), found, differences)
        print(found, flush=True)


if __name__ == "__main__":
    main()
