"""What an answer to a typing mistake costs: CPU seconds of each of `MISTAKES`, one command each.

    python -m benchmarks.mistakes [--rounds 3] [--beside CHECKOUT] [--write NAME]

A store with the bundled sample and a run of the recipe `sample` are made first, in a temporary
folder or in `--folder`, which keeps them. CPU seconds are user and system time of the command and
all its processes, the best of the rounds, after one command that warms the disk. With another
checkout, both take turns. Beside the mistakes stand commands that are right and should start
quickly (`QUICK`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.result import write_result

PARSEBANK: Final = (sys.executable, "-m", "parsebank")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A command with a mistake.

    Attributes:
        command: Its words; ``{store}``, ``{run}``, ``{table}``, ``{notes}``, ``{damaged}`` and
            ``{missing}`` are places of `places`.
        says: A part of the answer that names the mistake.
    """

    command: str
    says: str

    def words(self, found: Mapping[str, Path]) -> list[str]:
        """The words of the command, with the places."""
        return [word.format(**found) for word in self.command.split()]


MISTAKES: Final = (
    Mistake("parse Birds. --lang English --store {store}", "en"),
    Mistake("parse Birds. --lang tlh --store {store}", "tlh"),
    Mistake("parse Birds. --parser udpipe/englsh-ewt --store {store}", "udpipe/englsh-ewt"),
    Mistake("parse Birds. --lang en --tokenizer {missing} --store {store}", "{missing}"),
    Mistake("parse Birds. --lang en --matrices distnace --store {store}", "distance"),
    Mistake("parse Birds. --lang en --mode sentense --store {store}", "sentence"),
    Mistake("parse Birds. --lang en --policy atach --store {store}", "attach"),
    Mistake("parse --tokens-file {missing} --lang en --store {store}", "{missing}"),
    Mistake("parse Birds. --lang en --store {notes}", "{notes} is a file; a store is a folder"),
    Mistake("parse Birds. --lang en --store {damaged}", "it is not JSON with a format"),
    Mistake("fill {missing} --lang en --store {store}", "{missing}"),
    Mistake("fill {conllu} --lang English --store {store}", "en"),
    Mistake("show --conllu {missing}", "{missing}"),
    Mistake("show Birds. --lang tlh --store {store}", "tlh"),
    Mistake("backfill sampel --split train --lang en --store {store}", "sample"),
    Mistake("backfill sample --split trian --lang en --store {store}", "train"),
    Mistake("backfill sample --split train --lang English --store {store}", "en"),
    Mistake("backfill sample --split train --lang en --mode gould --store {store}", "raw"),
    Mistake(
        "backfill sample --split train --lang en --tokenizer {missing} --store {store}", "{missing}"
    ),
    Mistake("backfill sample --split train --lang en --parser udpipe/x --store {store}", "udpipe"),
    Mistake("backfill xnli --split dev --lang en --path {missing} --store {store}", "{missing}"),
    Mistake(
        "backfill table --split dev --lang en --path {table} --columns nope --store {store}",
        "premise",
    ),
    Mistake("backfill table --split dev --lang en --path {table} --store {store}", "premise"),
    Mistake("tokenizers train sampel --split train --lang en --out {missing}", "sample"),
    Mistake("train sampel --store {store}", "sample"),
    Mistake("train sample --store {missing}", "{missing}"),
    Mistake("train sample --store {store} --set learning_rat=1", "learning_rate"),
    Mistake("train sample --store {store} --set learning_rate=fast", "learning_rate"),
    Mistake("train sample --store {store} --set task.name=classification", "sequence_class"),
    Mistake("train sample --store {store} --set data.dataset=xnli", "sample"),
    Mistake("train sample --store {store} --set data.dev_split=test", "test"),
    Mistake("train sample --store {store} --output {run}", "already"),
    Mistake("evaluate {missing} --store {store}", "{missing}"),
    Mistake("evaluate {run} --store {store} --split tset", "tset"),
    Mistake("evaluate {run} --store {store} --split dev --lang English", "en"),
    Mistake("predict {missing} Birds. --store {store}", "{missing}"),
    Mistake("predict {run} --file {missing} --store {store}", "{missing}"),
    Mistake("predict {run} --split tset --store {store}", "tset"),
    Mistake("compare {missing} {run}", "{missing}"),
    Mistake("compare {run} {run} --split tset", "tset"),
    Mistake("probe {run} --dataset xnli --task upos --store {store}", "sample"),
    Mistake("probe {run} --dataset sample --task upso --store {store}", "upos"),
    Mistake("probe {run} --dataset sample --task upos --layers last --store {store}", "layers"),
    Mistake("picture {run} 1 --split tset --store {store}", "tset"),
    Mistake("reproduce sgnett", "sgnet"),
    Mistake("reproduce noise --size huge", "full"),
    Mistake("reproduce noise --data {missing}", "missing"),
    Mistake("store inspect --store {missing}", "{missing}"),
    Mistake("store inspect --store {notes}", "{notes} is a file; a store is a folder"),
    Mistake("store inspect --store {damaged}", "it is not JSON with a format"),
    Mistake("store stats --store {store} --lang English", "English"),
    Mistake("store export {missing} --dataset xnli --store {store}", "sample"),
    Mistake("store pin paper --dataset xnli --store {store}", "sample"),
    Mistake("store sql --store {missing} select", "{missing}"),
    Mistake("models pull klingon --from {missing} --models-dir {store}", "klingon"),
    Mistake("models remove klingon --models-dir {store}", "klingon"),
    Mistake("models train udpipe --treebank {missing}", "{missing}"),
    Mistake("models add mine --from {missing} --models-dir {store}", "{missing}"),
    Mistake("serve --port 99999", "port"),
    Mistake("serve --log-level loud", "log"),
    Mistake("serve --store {notes}", "{notes} is a file; a store is a folder"),
    Mistake("serve --rate-limit fast", "600/minute"),
    Mistake("serve --host 0.0.0.0 --store {store}", "--allow-remote"),
    Mistake("jobs list --state runing --store {store}", "running"),
    Mistake("jobs list --store {missing}", "{missing}"),
    Mistake("jobs show 0123 --store {missing}", "{missing}"),
    Mistake("benchmarks describe xnlii", "xnli"),
    Mistake("benchmarks check {missing}", "{missing}"),
    Mistake("benchmarks check sample --split trian", "train"),
)

QUICK: Final = (
    "--help",
    "train --help",
    "train --list",
    "train sample --describe",
    "benchmarks list",
    "store datasets --store {store}",
    "store inspect --store {store}",
    "store sql --store {store} select",
    "models list",
    "jobs list --store {store}",
    "parse Birds. --lang en --store {store}",
    "backfill sample --split dev --lang en --store {store}",
)
"""Commands without a mistake, whose start a user waits for; `select` stands for `select 1`."""


def places(folder: Path) -> dict[str, Path]:
    """A store, a finished run, a table, and places with something else or nothing."""
    found = {
        name: folder / name
        for name in ("store", "run", "table.tsv", "notes.txt", "damaged", "missing", "one.conllu")
    }
    named = {path.split(".")[0]: place for path, place in found.items()}
    named["conllu"] = named.pop("one")
    named["table"].write_text("premise\thypothesis\nBirds sing.\tThey sing.\n", "utf-8")
    named["notes"].write_text("No store.\n", "utf-8")
    named["conllu"].write_text("1\tBirds" + "\t_" * 8 + "\n\n", "utf-8")
    named["damaged"].mkdir(exist_ok=True)
    (named["damaged"] / "parsebank.json").write_text('{"format": ', "utf-8")
    return named


def fill(found: Mapping[str, Path]) -> None:
    """Make the store and the run, unless they are there."""
    if not (found["run"] / "result.json").is_file():
        steps = (
            f"backfill sample --split all --lang all --store {found['store']}",
            f"train sample --max-steps 5 --store {found['store']} --output {found['run']}",
        )
        for step in steps:
            subprocess.run([*PARSEBANK, *step.split()], check=True, stdout=subprocess.DEVNULL)


def measured(words: Sequence[str], folder: Path, checkout: Path) -> tuple[float, str]:
    """CPU seconds of a command and its processes, and what it wrote."""
    before = os.times()
    words = ["select 1" if word == "select" else word for word in words]
    path = os.pathsep.join(filter(None, (str(checkout), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [*PARSEBANK, *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        env={**os.environ, "PYTHONPATH": path},
    )
    after = os.times()
    spent = sum(after[2:4]) - sum(before[2:4])
    return spent, done.stdout + done.stderr


def row_of(
    one: Mistake, found: Mapping[str, Path], checkouts: Mapping[str, Path], rounds: int
) -> dict[str, Any]:
    """A command, and its CPU seconds by checkout."""
    words, folder = one.words(found), found["store"].parent
    if one.command in QUICK:  # the first of all may parse, compile or write what the others find
        measured(words, folder, checkouts["here"])
    turns = {
        name: [measured(words, folder, checkout) for _ in range(rounds)]
        for name, checkout in checkouts.items()
    }
    answer = turns["here"][0][1]
    last = answer.strip().splitlines()[-1:] or [""]
    seconds = {name: round(min(spent for spent, _ in turn), 2) for name, turn in turns.items()}
    named = one.says.format(**found) in answer
    print(
        *(f"{spent:6.2f}" for spent in seconds.values()), "" if named else "NOT NAMED", one.command
    )
    print(f"        {last[0][:160]}", flush=True)
    return {"command": one.command, "cpu_seconds": seconds, "named": named}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--beside", type=Path, help="another checkout to measure in turns")
    parser.add_argument("--write", metavar="NAME", help="write results/NAME-DATE.json")
    parser.add_argument(
        "--every", type=int, default=1, help="measure only each second, third, ... mistake"
    )
    given = parser.parse_args()
    checkouts = {"here": Path(__file__).parents[1]}
    if given.beside is not None:
        checkouts["beside"] = given.beside.absolute()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        found = places(folder)
        fill(found)
        right = [Mistake(command, "") for command in QUICK]
        commands = (*MISTAKES, *right)[:: given.every]
        for checkout in checkouts.values():
            measured(["train", "sample", "--set", "x=1"], folder, checkout)
        rows = [row_of(one, found, checkouts, given.rounds) for one in commands]
    if given.write:
        write_result(given.write, {"rows": rows}, load=os.getloadavg()[0])


if __name__ == "__main__":
    main()
