"""MicroBERT for Wolof in a small size: what each condition gives a parser and a tagger of names.

    python -m benchmarks.wolof WORK [--steps 2500] [--batch 32] [--conditions mlm,random]

Trains each condition with the published corpus, tokenizer, rates and proportions, but fewer and
smaller steps, and evaluates its encoder frozen below a parser (UD_Wolof-WTB, three seeds) and
fine-tuned below a tagger (WikiAnn, five seeds), beside an encoder that was never trained. Run it
again to go on after an interruption: WORK keeps the tokenizer, the store and all runs. The results
go to benchmarks/results/. It needs PARSEBANK_DATA.

Reductions: ``--steps`` steps of ``--batch`` examples without accumulation (published: 62,500 of
256), a rate of 1e-3 (published: 3e-3, at which batches of 32 learn how frequent pieces are, and no
more), a tenth of the steps as warm-up (published: 16 %), batches of sentences of like length
(published: shuffled), one plain LSTM of 200 below the parser (published: three
with highways, of 400), ``--parser-steps`` and ``--tagger-epochs`` (published: until 50 evaluations
bring nothing). Silver trees are of a UDPipe model trained on the treebank (published: Stanza).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(os.environ.get("PARSEBANK_DATA", "data"))
TREEBANK: Final = DATA / "treebanks" / "UD_Wolof-WTB"
PAGES: Final = DATA / "corpora" / "microbert" / "wolof-wikipedia-html.tar.xz"
NAMES: Final = DATA / "benchmarks" / "wikiann-lowresource" / "wolof"

PARSER_SEEDS: Final = "1,2,3"
TAGGER_SEEDS: Final = "1,2,3,4,5"

_LR_SIB: Final = ("objectives.phrase.phrase_loss=lr_sib",)

CONDITIONS: Final[dict[str, tuple[str, tuple[str, ...]] | None]] = {
    "mlm": ("microbert-mlm", ()),
    "random": None,
    "mlm-xpos": ("microbert-mlm-xpos", ()),
    "mlm-phrase-tree": ("microbert-mlm-phrase-tree", _LR_SIB),
    "mlm-phrase-tree-sla": ("microbert-mlm-phrase-tree-sla", _LR_SIB),
    "mlm-phrase-tree-published-sign": ("microbert-mlm-phrase-tree", ()),
}
"""Recipe and settings by name; ``random`` is not trained. The published figures of phrase and tree
are of the release's loss (``lr_sib``); the last condition has the sign of the paper's formula and
no division by the length, which was not published."""


@dataclass(frozen=True)
class Trial:
    """Where a trial keeps its files, and how large it is."""

    work: Path
    steps: int
    batch: int
    parser_steps: int
    tagger_epochs: int

    def command(self, *arguments: str) -> None:
        """Run a parsebank command; the models of this trial are found."""
        command = (str(Path(sys.executable).parent / "parsebank"), *arguments)
        print("$ parsebank", *arguments, flush=True)
        models = {"PARSEBANK_MODELS_DIR": str(self.work / "models")}
        subprocess.run(command, check=True, env={**os.environ, **models})

    def prepare(self) -> None:
        """Tokenizer, UDPipe model, and three datasets: silver trees, gold trees, names."""
        pages = ("microbert", "--path", str(PAGES), "--lang", "wo")
        if not (self.work / "models").exists():
            model = ("--treebank", str(TREEBANK), "--lang", "wo", "--name", "wolof-wtb")
            self.command("models", "train", "udpipe", *model, "--out", str(self.work / "models"))
        if not (self.work / "tokenizer").exists():
            out = ("--split", "train", "--out", str(self.work / "tokenizer"))
            self.command("tokenizers", "train", *pages, *out)
        words = ("--expand-words", "--max-pieces", "512")
        gold = ("ud", "--path", str(TREEBANK), "--lang", "wo", *words)
        self._backfill("wolof-gold", *gold, "--split", "train,dev,test")
        self._backfill(
            "wolof-silver", *pages, *words, "--split", "train,dev", "--mode", "retokenize"
        )
        names = ("wikiann", "--path", str(NAMES), "--lang", "wo", "--mode", "pretokenized")
        self._backfill("wolof-names", *names, "--split", "train,dev,test")

    def _backfill(self, name: str, *arguments: str) -> None:
        report = self.work / f"{name}.json"
        if not report.exists():
            target = ("--tokenizer", str(self.work / "tokenizer"), "--name", name, "--no-matrices")
            where = ("--store", str(self.work / "store"), "--report", str(report))
            self.command("backfill", *arguments, *target, *where)

    def run(self, condition: str) -> dict[str, Any]:
        """Train a condition, evaluate its encoder, and give what came out."""
        pretrained: dict[str, Any] = {}
        encoder, weights = self.work / "encoders" / condition, "pretrained"
        if (chosen := CONDITIONS[condition]) is None:
            encoder, weights = self.work / "encoders" / "mlm", "random"
        else:
            pretrained = self._pretrain(condition, *chosen)
            if not encoder.exists():
                self.command("export", str(self.work / "runs" / condition), str(encoder))
        start = (f"model.encoder={encoder}", f"model.weights={weights}", "threads=1")
        parser = self._evaluate(
            *("microbert-ud-frozen", f"{condition}-parser", PARSER_SEEDS),
            *(*start, "data.dataset=wolof-gold", f"max_steps={self.parser_steps}"),
            *("task.parser.context=lstm", "task.parser.recurrent_dropout=0"),
            *("task.parser.context_layers=1", "task.parser.context_width=200"),
            *("task.parser.shared_dropout=false", "clip_value=0", "clip_norm=5"),
        )
        tagger = self._evaluate(
            *("microbert-ner", f"{condition}-tagger", TAGGER_SEEDS),
            *(*start, "data.dataset=wolof-names", f"epochs={self.tagger_epochs}"),
        )
        return {"pretraining": pretrained, "parser": parser, "tagger": tagger}

    def _pretrain(self, condition: str, recipe: str, further: tuple[str, ...]) -> dict[str, Any]:
        output = self.work / "runs" / condition
        self._train(
            *(recipe, output, "data.dataset=wolof-silver", "data.gold=wolof-gold"),
            *(f"max_steps={self.steps}", f"warmup_steps={self.steps // 10}", "bucket=true"),
            *(f"batch_size={self.batch}", "accumulation=1", "learning_rate=1e-3"),
            "checkpoint_every=100",
            *(f"evaluate_every={self.steps}", "threads=1", *further),
        )
        return _read(output / "result.json")

    def _evaluate(self, recipe: str, name: str, seeds: str, *settings: str) -> dict[str, Any]:
        """Scores of dev, as the papers report them, and of test, by seed."""
        output = self.work / "runs" / name
        self._train(recipe, output, "data.lang=wo", *settings, seeds=seeds)
        folders = [output / f"seed{seed}" for seed in seeds.split(",")]
        for folder in folders:
            if not (folder / "evaluation-test.json").exists():
                self.command("evaluate", str(folder), "--store", str(self.work / "store"))
        return {
            "dev": [_read(folder / "result.json") for folder in folders],
            "test": [_read(folder / "evaluation-test.json") for folder in folders],
        }

    def _train(self, recipe: str, output: Path, *settings: str, seeds: str = "0") -> None:
        if seeds == "0" and (output / "result.json").exists():
            return
        sets = [part for setting in settings for part in ("--set", setting)]
        resume = ["--resume"] if seeds == "0" and (output / "checkpoint").exists() else []
        where = ("--store", str(self.work / "store"), "--output", str(output), "--seed", seeds)
        self.command("train", recipe, *where, *sets, *resume)


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def figures(done: dict[str, Any]) -> dict[str, Any]:
    """What a condition came to: figures in percent, each with its values by seed."""
    pretraining, parser, tagger = done["pretraining"], done["parser"], done["tagger"]
    languages = [scored["languages"]["wo"] for scored in parser["test"]]
    return {
        "steps": pretraining.get("steps", 0),
        "seconds": pretraining.get("seconds"),
        "data_share": pretraining.get("data_share"),
        "outcomes": pretraining.get("outcomes"),
        "dev": pretraining.get("scores"),
        "las_dev_no_punct_subtypes": _spread(
            [scored["scores"]["las_no_punct_subtypes"] for scored in parser["dev"]]
        ),
        "las_test_conll18": _spread([scored["las"] for scored in languages]),
        "f1_test": _spread([scored["languages"]["wo"]["f1"] for scored in tagger["test"]]),
    }


def _spread(shares: list[float]) -> dict[str, Any]:
    """Mean, standard deviation of a sample, and the values."""
    values = [round(100 * share, 2) for share in shares]
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.mean(values), "deviation": deviation, "values": values}


def write(trial: Trial) -> Path:
    """Write the figures of all conditions that are done."""
    files = {name: trial.work / "figures" / f"{name}.json" for name in CONDITIONS}
    results = {name: _read(path) for name, path in files.items() if path.exists()}
    now = datetime.now(UTC)
    path = Path(__file__).parent / "results" / f"wolof-{now:%Y-%m-%d}.json"
    size = {
        "steps": trial.steps,
        "batch": trial.batch,
        "parser_steps": trial.parser_steps,
        "tagger_epochs": trial.tagger_epochs,
    }
    content = {"when": now.isoformat(), "machine": platform.platform(), **size, **results}
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path, help="folder of the tokenizer, the store and the runs")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--parser-steps", type=int, default=800)
    parser.add_argument("--tagger-epochs", type=int, default=10)
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    chosen = parser.parse_args()
    trial = Trial(
        *(chosen.work.resolve(), chosen.steps, chosen.batch),
        *(chosen.parser_steps, chosen.tagger_epochs),
    )
    trial.prepare()
    kept = trial.work / "figures"
    kept.mkdir(exist_ok=True)
    for condition in chosen.conditions.split(","):
        found = json.dumps(figures(trial.run(condition)))
        (kept / f"{condition}.json").write_text(found)
        print(condition, found, write(trial), flush=True)


if __name__ == "__main__":
    main()
