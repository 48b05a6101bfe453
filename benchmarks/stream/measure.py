"""One contender in a process of its own: ``python -m benchmarks.stream.measure FOLDER NAME``.

Prints its rate and memory as JSON, after one epoch that is checked and not timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.stream import ours, shards, tables
from benchmarks.stream.work import BATCH, Batch, Contender, Epochs, Totals, total

MARKS = (0.25, 0.5, 1.0)
"""Parts of an epoch after which memory is read."""


@dataclass
class Measured:
    """What one process came to.

    Attributes:
        examples: Examples read while timed, over all epochs.
        cpu, wall: Seconds they took; CPU time is user and system, of all threads.
        private: Megabytes of this process alone, without pages of mapped files, after a quarter,
            half and all of each epoch.
        resident: Likewise with pages of mapped files.
    """

    examples: int
    cpu: float
    wall: float
    private: list[float]
    resident: list[float]


def all_contenders(target: int) -> list[Contender]:
    """Ours first; ``target`` is the usual length of an example."""
    return [*ours.contenders(BATCH * target), *tables.contenders(), *shards.contenders()]


def measure(opened: Epochs, count: int, seconds: float, epochs: int) -> Measured:
    """Whole epochs until both ``seconds`` of CPU time and ``epochs`` have passed."""
    done = Measured(0, 0.0, 0.0, [], [])
    epoch = 0
    while done.cpu < seconds or epoch < epochs:
        epoch += 1
        cpu, wall = time.process_time(), time.perf_counter()
        done.examples += _run(opened(epoch), count, done)
        done.cpu += time.process_time() - cpu
        done.wall += time.perf_counter() - wall
    return done


def _run(batches: Iterable[Batch], count: int, done: Measured) -> int:
    """Examples of an epoch; reads memory on the way, three times."""
    marks = [round(mark * count) for mark in MARKS]
    seen = 0
    for batch in batches:
        seen += len(batch["input_ids"])
        if marks and seen >= marks[0]:
            marks.pop(0)
            _note_memory(done)
    return seen


def _note_memory(done: Measured) -> None:
    memory = psutil.Process().memory_info()
    done.resident.append(round(memory.rss / 1e6, 1))
    done.private.append(round((memory.rss - memory.shared) / 1e6, 1))


def check(contender: Contender, epochs: Epochs, wanted: Totals) -> None:
    """One epoch must come to what it should; this also compiles, and warms the page cache.

    Raises:
        RuntimeError: It does not.
    """
    if not contender.matrices:
        wanted = wanted._replace(depth=0, ancestors=0)
    came = total(epochs(0))
    if came != wanted:
        raise RuntimeError(f"{contender.name} came to {came}; expected {wanted}")


def main() -> None:
    task = json.loads(sys.argv[1])
    by_name = {contender.name: contender for contender in all_contenders(task["target"])}
    contender, folder = by_name[task["name"]], Path(task["folder"])
    wanted = Totals(*task["wanted"])
    opened = contender.open(folder)
    check(contender, opened, wanted)
    done = measure(opened, wanted.examples, task["seconds"], task["epochs"])
    print(json.dumps(asdict(done)))


if __name__ == "__main__":
    main()
