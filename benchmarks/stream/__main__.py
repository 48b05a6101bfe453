"""Streaming against other loaders, over the same real trees, in one interleaved run.

    python -m benchmarks.stream [--lengths 40,128,384] [--rounds 3]

Examples are sentences of UD_English-EWT (test and dev) where PARSEBANK_DATA is set, else of the
test treebank, laid end to end to about 40, 128 and 384 wordpieces, in batches of 32. Rates are
examples per CPU second of the process (user and system, all threads), which other jobs on the
machine hardly disturb; those per second are in the results, too. Contenders take turns, each round
in a process of its own, so that its memory is its own; medians over the rounds. Every contender
gives the same sequences, with distance, depth and ancestor matrices, and is checked for it.

All peers make their batches with our kernels from one blob of vectors per example; so what is
compared is storage, choice and fetching. Only the dense pickles, which are how published code does
it, hold the matrices. Peers that are not installed are left out: ``pip install parsebank[bench]``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.result import write_result
from benchmarks.stream.corpus import make_examples, read_sentences
from benchmarks.stream.measure import all_contenders
from benchmarks.stream.work import BATCH, Contender, expected

PIECES = 2_500_000
"""Pieces of all examples of one length: ten row groups, of which a pool holds eight."""

BASELINE = "HF datasets, bucket sampler"
OURS = "ours, buckets"
VECTORS = "ours, buckets, vectors only"
LEAD, VECTORS_LEAD = 1.25, 3.0
"""Over the best peer with buckets: what batches with matrices, and of vectors, have to reach."""

PACKAGES = ("datasets", "litdata", "numba", "numpy", "pyarrow", "pylance", "torch", "webdataset")

Runs = dict[str, list[dict[str, Any]]]


def main() -> int:
    arguments = _arguments()
    sentences = read_sentences()
    lengths = [int(length) for length in arguments.lengths.split(",")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tasks = [_prepare(Path(folder) / str(n), sentences, n, arguments) for n in lengths]
        for number in range(arguments.rounds):
            for task in tasks:
                _round(task, number, arguments.seconds)
        results = [_summary(task) for task in tasks]
    for result in results:
        tell(result, sentences.source)
    missed = [line for result in results for line in verdict(result)]
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    write(sentences.source, arguments, results)
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Streaming against other loaders.")
    parser.add_argument("--lengths", default="40,128,384", help="wordpieces, comma-separated")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="CPU seconds of a turn, at least"
    )
    parser.add_argument("--pieces", type=int, default=PIECES, help="of all examples of a length")
    parser.add_argument("--only", default="", help="contenders whose names contain this")
    return parser.parse_args()


def chosen(target: int, only: str) -> Iterator[Contender]:
    """The contenders that can run here; says why others cannot."""
    for contender in all_contenders(target):
        if only not in contender.name:
            continue
        if contender.package and find_spec(contender.package) is None:
            print(f"left out: {contender.name}, because {contender.package} is not installed")
        else:
            yield contender


def _prepare(
    folder: Path, sentences: Any, target: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Write what contenders read, in every form; the turns that are then to be taken."""
    examples = make_examples(sentences, target, arguments.pieces // target)
    contenders = list(chosen(target, arguments.only))
    wanted = {most: expected(examples[:most]) for most in {one.most for one in contenders}}
    turns = {}
    for contender in contenders:
        part = examples[: contender.most]
        where = folder / contender.folder
        if not where.exists():
            where.mkdir(parents=True)
            contender.write(where, part)
        turns[contender.name] = {
            "name": contender.name,
            "target": target,
            "folder": str(where),
            "wanted": wanted[contender.most],
        }
    sizes = {contender.folder: _bytes(folder / contender.folder) for contender in contenders}
    counts = {contender.folder: len(examples[: contender.most]) for contender in contenders}
    return {
        "target": target,
        "pieces": sum(map(len, examples)) / len(examples) + 2,
        "policies": {contender.name: contender.policy for contender in contenders},
        "bytes": {name: round(size / counts[name]) for name, size in sizes.items()},
        "turns": turns,
        "runs": {name: [] for name in turns},
    }


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _round(task: dict[str, Any], number: int, seconds: float) -> None:
    """A turn of every contender; the first lasts several epochs, for the sake of memory."""
    for name, turn in task["turns"].items():
        given = json.dumps({**turn, "seconds": seconds, "epochs": 3 if number == 0 else 1})
        command = [sys.executable, "-m", "benchmarks.stream.measure", given]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        task["runs"][name].append(json.loads(done.stdout.splitlines()[-1]))


def _summary(task: dict[str, Any]) -> dict[str, Any]:
    """Medians over the rounds, and memory in the first one."""
    rows = {}
    for name, runs in task["runs"].items():
        per_cpu = [run["examples"] / run["cpu"] for run in runs]
        rows[name] = {
            "policy": task["policies"][name],
            "examples_per_cpu_second": round(statistics.median(per_cpu)),
            "lowest_and_highest": [round(min(per_cpu)), round(max(per_cpu))],
            "examples_per_second": round(
                statistics.median(run["examples"] / run["wall"] for run in runs)
            ),
            "private_megabytes": runs[0]["private"],
            "resident_megabytes": runs[0]["resident"],
        }
    return {
        "length": task["target"],
        "pieces": round(task["pieces"], 1),
        "bytes_per_example": task["bytes"],
        "contenders": rows,
    }


def tell(result: dict[str, Any], source: str) -> None:
    """The table of one length."""
    rows = result["contenders"]
    base = rows.get(BASELINE) or next(iter(rows.values()))
    print(
        f"\n{source}: {result['pieces']:.0f} pieces, batches of {BATCH}; examples per CPU second,"
    )
    print(f"ratios (CPU, wall) to {BASELINE}, and private MB after 1/4, 1/2 and all of each epoch")
    for name, row in rows.items():
        rate, wall = row["examples_per_cpu_second"], row["examples_per_second"]
        cpu_ratio = rate / base["examples_per_cpu_second"]
        wall_ratio = wall / base["examples_per_second"]
        memory = " ".join(f"{value:.0f}" for value in row["private_megabytes"])
        print(f"{name:36}{rate:10,}{cpu_ratio:7.2f}{wall_ratio:6.2f}   {memory}")
    print(
        "bytes of an example: "
        + ", ".join(f"{k} {v}" for k, v in result["bytes_per_example"].items())
    )


def verdict(result: dict[str, Any]) -> Iterator[str]:
    """The targets that were missed."""
    rates = {name: row["examples_per_cpu_second"] for name, row in result["contenders"].items()}
    where = f"at {result['length']} pieces"
    for name, row in result["contenders"].items():
        rivals = [
            r for r, other in result["contenders"].items() if other["policy"] == row["policy"]
        ]
        ahead = max(rivals, key=lambda rival: rates[rival])
        if name.startswith("ours") and not ahead.startswith("ours"):
            yield f"{where}, {ahead} leads {name} by {rates[ahead] / rates[name]:.2f}"
    sampled = [rates[name] for name, row in result["contenders"].items() if _is_rival(name, row)]
    for name, lead in ((OURS, LEAD), (VECTORS, VECTORS_LEAD)):
        if sampled and name in rates and rates[name] < lead * max(sampled):
            yield f"{where}, {name} is less than {lead} times the best peer with buckets"


def _is_rival(name: str, row: dict[str, Any]) -> bool:
    return row["policy"] == "buckets" and not name.startswith("ours")


def write(source: str, arguments: argparse.Namespace, results: list[dict[str, Any]]) -> None:
    content = {
        "sentences": source,
        "batch": BATCH,
        "rounds": arguments.rounds,
        "baseline": BASELINE,
        "lengths": results,
    }
    write_result("stream", content, libraries=PACKAGES)


if __name__ == "__main__":
    raise SystemExit(main())
