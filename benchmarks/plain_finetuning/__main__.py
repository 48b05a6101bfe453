"""Are our baselines as good as plain fine-tuning? The recipes without trees, beside transformers.

    python -m benchmarks.plain_finetuning --data DATA --encoder FOLDER [--tasks cola,wikiann]

Both sides have the same encoder, texts, size of batches, rates, passes and seeds, draw batches
without regard to length, and are scored by their last weights. The other side
(`benchmarks.plain_finetuning.plain`) has its own tokenizer calls, batches and loops, so that a
fault of ours in any of these shows. BERT's models read a class from a pooler, which is new where
the encoder has none; our recipes from a new layer over the first piece. A call again goes on where
the last one ended.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.plain_finetuning.plain import Setting
from benchmarks.plain_finetuning.tasks import TASKS, Task
from benchmarks.result import write_result
from syntax import fingerprint


def ours(task: Task, folder: Path, seed: int, setting: Setting) -> float:
    """The recipe without trees, by its commands."""
    store, run = folder / "store", folder / f"seed{seed}"
    if not (folder / "filled").exists():
        where = ("--path", folder / "files", "--split", "train,dev", "--lang", "en")
        encoder = ("--tokenizer", setting.encoder, "--no-matrices", "--store", store)
        _parsebank("backfill", task.reader, *where, *task.backfill, *encoder)
        (folder / "filled").touch()
    if not (run / "result.json").exists():
        settings = [
            *(f"model.encoder={setting.encoder}", "model.use_syntax=false", "keep=last"),
            *(f"epochs={setting.epochs}", f"learning_rate={setting.new_rate}", "accumulation=1"),
            *(f"batch_size={setting.batch_size}", f"warmup_share={setting.warmup}"),
            *(f"max_length={setting.max_length}", "evaluate_every=epoch", "bucket=false"),
            *task.settings,
        ]
        sets = [part for one in settings for part in ("--set", one)]
        _parsebank("train", task.recipe, "--store", store, "--output", run, "--seed", seed, *sets)
    if not (run / "evaluation-dev.json").exists():
        _parsebank("evaluate", run, "--store", store, "--split", "dev")
    found = json.loads((run / "evaluation-dev.json").read_text(encoding="utf-8"))
    return float(found["languages"]["en"][task.metric])


def _parsebank(*arguments: object) -> None:
    command = (sys.executable, "-P", "-m", "parsebank", *map(str, arguments))
    subprocess.run(command, check=True)


def theirs(task: Task, folder: Path, seed: int, setting: Setting) -> float:
    path = folder / f"transformers-{seed}.json"
    if not path.exists():
        train, dev = (task.read(folder / "files", split) for split in ("train", "dev"))
        path.write_text(json.dumps(task.plain(train, dev, setting).score(seed)), encoding="utf-8")
    return float(json.loads(path.read_text(encoding="utf-8")))


def compared(name: str, work: Path, data: Path, setting: Setting, seeds: int) -> dict[str, Any]:
    """Scores of both sides by seed, in per cent."""
    task = TASKS[name]
    facts = {**asdict(setting), "settings": [*task.settings], "backfill": [*task.backfill]}
    folder = work / name / fingerprint(facts)[:12]
    (folder / "files").mkdir(parents=True, exist_ok=True)
    task.divide(data, folder / "files")
    scores = {
        side.__name__: [100 * side(task, folder, seed, setting) for seed in range(1, seeds + 1)]
        for side in (ours, theirs)
    }
    return {"metric": task.metric, "setting": asdict(setting), **scores}


def told(name: str, found: dict[str, Any]) -> str:
    sides = {side.__name__: found[side.__name__] for side in (ours, theirs)}
    values = ", ".join(
        f"{side} {fmean(scores):.2f} ± {stdev(scores) if len(scores) > 1 else 0:.2f}"
        for side, scores in sides.items()
    )
    return f"{name} ({found['metric']}): {values}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="Default: each task's own.")
    parser.add_argument("--work", type=Path, default=Path("plain-finetuning"))
    arguments = parser.parse_args()
    found = {}
    for name in arguments.tasks.split(","):
        setting = replace(TASKS[name].setting, encoder=str(arguments.encoder.absolute()))
        if arguments.epochs:
            setting = replace(setting, epochs=arguments.epochs)
        place = (arguments.work.absolute(), arguments.data)
        found[name] = compared(name, *place, setting, arguments.seeds)
        print(told(name, found[name]), flush=True)
    for one in found.values():  # a result has no path of this machine
        one["setting"]["encoder"] = arguments.encoder.name
    name = f"plain-finetuning-{arguments.tasks.replace(',', '-')}"
    write_result(name, {"tasks": found}, libraries=("torch", "transformers"))


if __name__ == "__main__":
    main()
