"""The command ``parsebank`` as its users type it, each time in new processes.

    python -m benchmarks.backfill.cold [--rounds 3] [--pairs 7500]

In turns, on the English pairs of XNLI (without PARSEBANK_DATA: of the bundled sample), as many
processes as cores:

* *raw*: a script that loads the UDPipe model in a pool and parses each distinct text: nothing else.
* *first udpipe*: ``parsebank backfill`` with this model into a new store.
* *first*: the same with the parser in the box.
* *again*: the same command once more: nothing is to be done.
* *tokenizer NAME*: the same with another tokenizer: nothing is parsed.
* *gold*: 150 sentences of a treebank with their trees, and XLM-R's tokenizer (only with
  PARSEBANK_DATA).
* *parse*: a new sentence, read by the parser in the box.
* *sql*: ``parsebank store sql "select 1"``.
* *ready*: Python, an embedded service, and the answer to its first request.
* *help*: ``parsebank --help``.

Seconds are wall-clock seconds, and processor seconds of all processes of a command. Both
*first* are compared with the mean of the raw runs around them. `python -m benchmarks.backfill`
measures the same on a service that is warm.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.backfill.corpus import DATA, read_corpora, second_tokenizer, settings
from benchmarks.result import write_result
from service.parsers import find_parser

PYTHON: Final = (sys.executable, "-P", "-m")
PARSEBANK: Final = (*PYTHON, "parsebank")
READY: Final = "import sys; from clients import Client; Client.embedded(store=sys.argv[1]).info()"

TARGETS: Final = {
    "first udpipe of raw": 1.3,
    "first of raw": 1.25,
    "again": 2.0,
    "tokenizer": 7.0,
    "gold": 4.0,
    "parse": 1.5,
    "sql": 0.6,
    "ready": 1.5,
    "help": 0.2,
}
"""At most so many seconds; of raw, times its seconds."""

UDPIPE: Final = "udpipe/english-ewt"
XLM_R: Final = "xlm-roberta-base_from_multilingual-e5-small"

Cost = tuple[float, float]
"""Wall-clock and processor seconds."""


def run(*command: str) -> Cost:
    """Run a command to its end, with compiled modules as users have them."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, check=True, env=environment, **quiet)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def backfill(store: Path, pairs: int | None, *options: str) -> Cost:
    """The command that a user types."""
    path = ("--path", str(Path(DATA) / "benchmarks" / "xnli")) if DATA else ()
    limit = ("--limit", str(pairs)) if pairs else ()
    name, splits = ("xnli", "dev,test") if DATA else ("sample", "train,dev")
    what = (name, *path, "--split", splits, "--lang", "en", *limit, *options)
    return run(*PARSEBANK, "backfill", *what, "--store", str(store))


def gold(store: Path) -> Cost:
    folder = Path(DATA or "")
    what = ("ud", "--path", str(folder / "treebanks" / "UD_Wolof-WTB"), "--split", "dev")
    how = ("--lang", "wo", "--mode", "gold", "--tokenizer", str(folder / "tokenizers" / XLM_R))
    return run(*PARSEBANK, "backfill", *what, *how, "--limit", "150", "--store", str(store))


def tokenizers(second: str) -> Iterator[tuple[str, str]]:
    """Names and folders of other tokenizers than the default one."""
    yield Path(second).name, second
    if DATA:
        yield "xlm-roberta-base", str(Path(DATA) / "tokenizers" / XLM_R)


def measure(folder: Path, raw: tuple[str, ...], pairs: int | None, second: str) -> dict[str, Cost]:
    """One round of all commands."""
    store, other = folder / "store", folder / "other"
    costs = {
        "raw": run(*raw),
        "first udpipe": backfill(other, pairs, "--parser", UDPIPE),
        "first": backfill(store, pairs),
        "raw after": run(*raw),
    }
    costs["again"] = backfill(store, pairs)
    for name, path in tokenizers(second):
        costs[f"tokenizer {name}"] = backfill(store, pairs, "--tokenizer", path)
    if DATA:
        costs["gold"] = gold(store)
    costs["parse"] = run(*PARSEBANK, "parse", f"{time.time()} birds sing.", "--store", str(store))
    costs["sql"] = run(*PARSEBANK, "store", "sql", "select 1", "--store", str(store))
    costs["ready"] = run(sys.executable, "-P", "-c", READY, str(store))
    costs["help"] = run(*PARSEBANK, "--help")
    shutil.rmtree(store)
    shutil.rmtree(other)
    return costs


def ratios(costs: dict[str, Cost]) -> dict[str, list[float]]:
    """What the targets are about: wall-clock, then processor seconds."""
    found: dict[str, list[float]] = {name: [*cost] for name, cost in costs.items()}
    before, after = found["raw"], found.pop("raw after")
    found["raw"] = [(one + other) / 2 for one, other in zip(before, after, strict=True)]
    of_raw = {
        f"{name} of raw": [one / raw for one, raw in zip(found[name], found["raw"], strict=True)]
        for name in ("first udpipe", "first")
    }
    return {**found, **of_raw}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--pairs", type=int, help="only the first so many of each split")
    options = arguments.parse_args()
    corpus = next(read_corpora(options.pairs))
    workers = len(os.sched_getaffinity(0))
    model = str(find_parser(settings(corpus.lang), lang=corpus.lang).path)
    with tempfile.TemporaryDirectory() as name, second_tokenizer() as second:
        folder = Path(name)
        texts = folder / "texts.json"
        texts.write_text(json.dumps(corpus.texts), encoding="utf-8")
        raw = (*PYTHON, "benchmarks.backfill.raw", str(texts), model, str(workers))
        rounds = []
        for number in range(options.rounds):
            rounds.append(ratios(measure(folder, raw, options.pairs, second)))
            shown = ", ".join(
                f"{name} {wall:.2f} ({cpu:.2f})" for name, (wall, cpu) in rounds[-1].items()
            )
            print(f"round {number + 1}: {shown}")
    medians = {
        name: [statistics.median(one[name][at] for one in rounds) for at in range(2)]
        for name in rounds[0]
    }
    for name, (wall, processor) in medians.items():
        target = TARGETS.get(name.partition(" ")[0] if name.startswith("tokenizer") else name)
        wanted = f"; target <= {target}" if target else ""
        print(f"{name}: {wall:.2f} (processor {processor:.2f}){wanted}")
    content = {"texts": len(corpus.texts), "median": medians, "rounds": rounds}
    write_result("backfill-cold", {"workers": workers, **content})


if __name__ == "__main__":
    main()
