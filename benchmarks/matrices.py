"""The matrix kernel against networkx and against plain numpy, on the same trees in one run.

    python -m benchmarks.matrices [--sizes 40,128,384] [--rounds 15]

Every contender makes the distance, depth and ancestor matrices of the same 32 forests, takes any
forest, and is compared with all others before anything is timed; networkx is let off with the
distances alone, and nobody but the kernel has to refuse cycles. The forests are sentences laid end
to end below a joint root until they have the wanted size: real ones from UD_English-EWT where
PARSEBANK_DATA is set, else random ones. Contenders take turns in rounds, on one thread; the table
has the CPU time of the fastest round, the least disturbed. Of the three ways in plain numpy the
fastest counts.

The kernel is measured as trainers use it, a padded batch at a time into memory that is reused, and
tree by tree through `tree_matrices`. It is also compared with copying the same bytes: batches of
like length, padded to whole vectors of 32, distance and ancestors. `assemble_batch` is measured on
pairs of about 64 pieces.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.plain_matrices import NUMPY, Parents, networkx_distance
from benchmarks.result import write_result
from syntax import read_conllu
from syntax.batches import (
    AssemblySpec,
    BatchBuffers,
    FlatExamples,
    SegmentFeatures,
    SpecialTokens,
    assemble_batch,
)
from syntax.matrices import MatrixBuffers, TreeMatrices, batch_matrices, tree_matrices
from syntax.matrices.offsets import offsets_of

BATCH = 32
AT = 128
BATCHES, PADDED = 24, 32
NETWORKX_TARGET, NUMPY_TARGET, EXAMPLES_TARGET, MEMCPY_TARGET = 100, 15, 20_000, 4
SECONDS_PER_TURN = 0.02


def kernel_one(parents: Parents) -> tuple[NDArray[Any], ...]:
    """The kernel, tree by tree."""
    made = tree_matrices(parents)
    return made.distance, made.depth, made.ancestor


@dataclass(frozen=True)
class Forests:
    """Forests of one size, and where they come from."""

    source: str
    size: int
    parents: list[Parents]

    def flat(self) -> tuple[Parents, NDArray[np.int64]]:
        """All parents end to end, and their bounds."""
        return np.concatenate(self.parents), offsets_of([len(one) for one in self.parents])


def sentences() -> tuple[str, list[Parents]]:
    """Trees of sentences, in random order, and their source."""
    rng = np.random.default_rng(0)
    folder = os.environ.get("PARSEBANK_DATA")
    if folder:
        path = Path(folder) / "treebanks" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
        trees = [sentence.tree.parents for sentence in read_conllu(path)]
        return path.stem, [trees[at] for at in rng.permutation(len(trees))]
    return "random projective trees", [
        random_tree(rng, int(rng.integers(4, 40))) for _ in range(999)
    ]


def random_tree(rng: np.random.Generator, size: int) -> Parents:
    """A projective tree: a root in each span, with up to two spans on either side below it."""
    parents = np.full(size, -1, np.int32)
    spans = [(0, size, -1)]
    while spans:
        first, end, above = spans.pop()
        if first < end:
            root = int(rng.integers(first, end))
            parents[root] = above
            for low, high in ((first, root), (root + 1, end)):
                middle = int(rng.integers(low, high + 1))
                spans += [(low, middle, root), (middle, high, root)]
    return parents


def forests(size: int, source: str, trees: list[Parents]) -> Forests:
    """A batch of forests of one size."""
    made, at = [], 0
    for _ in range(BATCH):
        made.append(one_forest(size, trees, at))
        at += int((made[-1] == 0).sum())  # at least as many sentences as hang from the root
    return Forests(source, size, made)


def one_forest(size: int, trees: list[Parents], at: int) -> Parents:
    """Sentences below a joint root; the last one is cut where its head is kept."""
    parents = [np.array([-1], np.int32)]
    start = 1
    while start < size:
        tree = trees[at % len(trees)][: size - start]
        inside = (tree >= 0) & (tree < size - start)
        parents.append(np.where(inside, tree + start, 0).astype(np.int32))
        start, at = start + len(tree), at + 1
    return np.concatenate(parents)


# Measuring


def check(work: Forests) -> None:
    """Every contender gives the same matrices, also of the forests without their joint root."""
    for parents in (*work.parents, *(parents[1:] - 1 for parents in work.parents)):
        mine = kernel_one(parents)
        np.testing.assert_array_equal(networkx_distance(parents), mine[0])
        for contender in NUMPY:
            for theirs, own in zip(contender(parents), mine, strict=True):
                np.testing.assert_array_equal(theirs, own)
    batch = batch_matrices(*work.flat())
    for at, parents in enumerate(work.parents):
        for theirs, own in zip(
            (batch.distance[at], batch.depth[at], batch.ancestor[at]),
            kernel_one(parents),
            strict=True,
        ):
            np.testing.assert_array_equal(theirs, own)


def contenders(work: Forests) -> dict[str, Callable[[], object]]:
    """What each does with all forests."""
    heads, offsets = work.flat()
    buffers = MatrixBuffers()

    def batch() -> TreeMatrices:
        return batch_matrices(heads, offsets, buffers)

    def each(make: Callable[[Parents], object]) -> Callable[[], object]:
        return lambda: [make(parents) for parents in work.parents]

    return {
        "networkx": each(networkx_distance),
        **{contender.__name__: each(contender) for contender in NUMPY},
        "kernel_one": each(kernel_one),
        "kernel_batch": batch,
    }


def take_turns(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """CPU seconds of each call in its fastest round; rounds are interleaved."""
    repeats = {name: calibrate(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            seconds[name].append(clock(call, repeats[name]) / repeats[name])
    return {name: min(times) for name, times in seconds.items()}


def calibrate(call: Callable[[], object]) -> int:
    """How often to call for a turn; the first call, which may compile, does not count."""
    call()
    return max(1, int(SECONDS_PER_TURN / clock(call, 1)))


def clock(call: Callable[[], object], repeats: int) -> float:
    start = time.thread_time()
    for _ in range(repeats):
        call()
    return time.thread_time() - start


@dataclass(frozen=True)
class Row:
    """Microseconds per tree of one size, and the kernel's lead."""

    size: int
    deepest: int
    networkx: float
    numpy_rows: float
    numpy_levels: float
    numpy_doubling: float
    kernel_one: float
    kernel_batch: float
    over_networkx: float
    over_numpy: float


def measure(work: Forests, rounds: int) -> Row:
    """Check and time all contenders on forests of one size."""
    check(work)
    seconds = take_turns(contenders(work), rounds)
    each = {name: value / BATCH * 1e6 for name, value in seconds.items()}
    return Row(
        size=work.size,
        deepest=int(batch_matrices(*work.flat()).depth.max()),
        **{name: round(value, 2) for name, value in each.items()},
        over_networkx=round(each["networkx"] / each["kernel_batch"], 1),
        over_numpy=round(min(each[way.__name__] for way in NUMPY) / each["kernel_batch"], 1),
    )


@dataclass(frozen=True)
class Copied:
    """Microseconds per tree of bucketed batches, and of copying their bytes.

    ``memcpy`` copies the same bytes again and again, which are in the cache then; ``cold_memcpy``
    those of every batch, from where a loader with matrices in memory would find them.
    """

    size: int
    kernel: float
    memcpy: float
    cold_memcpy: float
    times_memcpy: float
    times_cold_memcpy: float


def measure_copy(work: Forests, trees: list[Parents], rounds: int) -> Copied:
    """The kernel on batches of like length around a size, against copies of what it writes."""
    rng = np.random.default_rng(work.size)
    lengths = np.sort(rng.normal(work.size, work.size / 4, BATCHES * BATCH).clip(8).astype(int))
    starts = rng.integers(len(trees), size=len(lengths)).tolist()
    made = [one_forest(n, trees, at) for n, at in zip(lengths.tolist(), starts, strict=True)]
    batches = [made[at : at + BATCH] for at in range(0, len(made), BATCH)]
    flat = [Forests(work.source, 0, batch).flat() for batch in batches]
    buffers = MatrixBuffers()
    outputs = [batch_matrices(*one, pad_to_multiple_of=PADDED) for one in flat]
    seconds = take_turns(
        {
            "kernel": lambda: [
                batch_matrices(*one, buffers, pad_to_multiple_of=PADDED) for one in flat
            ],
            "memcpy": lambda: [copy(outputs[-1], out, buffers) for out in outputs],
            "cold_memcpy": lambda: [copy(out, out, buffers) for out in outputs],
        },
        rounds,
    )
    each = {name: round(value / len(made) * 1e6, 2) for name, value in seconds.items()}
    times = {name: round(each["kernel"] / each[name], 2) for name in ("memcpy", "cold_memcpy")}
    return Copied(work.size, **each, **{f"times_{name}": value for name, value in times.items()})


def copy(source: TreeMatrices, like: TreeMatrices, buffers: MatrixBuffers) -> None:
    """As many bytes of ``source``, which is at least as large, as there are in ``like``."""
    for name in ("distance", "ancestor"):
        size = getattr(like, name).size
        target = buffers.take(name, (size,), getattr(like, name).dtype)
        np.copyto(target, getattr(source, name).reshape(-1)[:size])


def pairs(trees: list[Parents]) -> FlatExamples:
    """Pairs of real-sized segments, about 64 pieces with their special tokens."""
    segments = []
    for at in range(2 * BATCH):
        parents = forests(27 + at % 8, "", trees[at:] + trees[:at]).parents[0]
        number = np.arange(len(parents), dtype=np.int32)
        tags = (number % 17).astype(np.uint8)
        spans = np.stack([number, number + 1], axis=1)
        segments.append(SegmentFeatures(number, parents, number, tags, tags, 0 * number, spans))
    return FlatExamples.from_segments(list(zip(segments[::2], segments[1::2], strict=True)))


def measure_assembly(trees: list[Parents], rounds: int) -> dict[str, float]:
    """Pairs a second on one core: with matrices, cut to 48 pieces, and vectors alone."""
    examples, buffers = pairs(trees), BatchBuffers()
    special = SpecialTokens(prefix=(1,), separator=(2,), suffix=(2,), pad_id=0, vocab_size=3)
    specs = {
        "matrices": AssemblySpec(max_length=128),
        "truncated": AssemblySpec(max_length=48),
        "vectors": AssemblySpec(matrices=()),
    }
    calls = {
        name: lambda spec=spec: assemble_batch(examples, special, spec, buffers)
        for name, spec in specs.items()
    }
    seconds = take_turns(calls, rounds)
    pieces = float(calls["matrices"]()["lengths"].mean())
    return {"pieces": pieces, **{name: round(BATCH / value) for name, value in seconds.items()}}


# Telling


def show(rows: list[Row], copies: list[Copied]) -> None:
    ways = [way.__name__ for way in NUMPY]
    names = ("networkx", *ways, "kernel_one", "kernel_batch")
    print("us a tree" + "".join(f"{name:>15}" for name in names))
    for row in rows:
        print(f"n = {row.size:<5}" + "".join(f"{getattr(row, name):15.2f}" for name in names))
    for row in rows:
        print(
            f"n = {row.size}: {row.over_networkx:.0f} times the networkx rate, "
            f"{row.over_numpy:.1f} times the best plain numpy one"
        )
    for copied in copies:
        print(
            f"about {copied.size}, bucketed: {copied.kernel} us a tree, "
            f"{copied.times_memcpy} times memcpy of the same bytes ({copied.memcpy} us), "
            f"{copied.times_cold_memcpy} times one that misses the cache ({copied.cold_memcpy} us)"
        )


def verdict(rows: list[Row], copies: list[Copied], assembly: dict[str, float]) -> Iterator[str]:
    """The targets that were missed."""
    for copied in copies:
        if copied.size == AT and copied.times_memcpy > MEMCPY_TARGET:
            yield f"more than {MEMCPY_TARGET} times memcpy at {AT}"
    for row in (row for row in rows if row.size == AT):
        if row.over_networkx < NETWORKX_TARGET:
            yield f"less than {NETWORKX_TARGET} times networkx at {AT}"
        if row.over_numpy < NUMPY_TARGET:
            yield f"less than {NUMPY_TARGET} times plain numpy at {AT}"
    if assembly["matrices"] < EXAMPLES_TARGET:
        yield f"fewer than {EXAMPLES_TARGET} pairs a second"


def restart_on_one_thread() -> None:
    """Numpy reads these when it is imported; small products gain nothing from more threads."""
    limits = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
    if not limits.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **limits})


def main() -> int:
    restart_on_one_thread()
    parser = argparse.ArgumentParser(description="The matrix kernel against networkx and numpy.")
    parser.add_argument("--sizes", default="40,128,384", help="nodes of a tree, comma-separated")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    source, trees = sentences()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    work = [forests(size, source, trees) for size in sizes]
    rows = [measure(one, arguments.rounds) for one in work]
    copies = [measure_copy(one, trees, arguments.rounds) for one in work]
    assembly = measure_assembly(trees, arguments.rounds)
    print(f"{source}, batches of {BATCH}, one thread, fastest of {arguments.rounds} rounds")
    show(rows, copies)
    print(
        f"assemble_batch, pairs of {assembly['pieces']:.0f} pieces a second: "
        f"{assembly['matrices']:,} with matrices, {assembly['truncated']:,} cut to 48 pieces, "
        f"{assembly['vectors']:,} vectors only"
    )
    missed = list(verdict(rows, copies, assembly))
    print("missed: " + "; ".join(missed) if missed else "all targets met")
    write(source, rows, copies, assembly, arguments.rounds)
    return 1 if missed else 0


def write(
    source: str, rows: list[Row], copies: list[Copied], assembly: dict[str, float], rounds: int
) -> None:
    content = {
        "trees": source,
        "batch": BATCH,
        "rounds": rounds,
        "microseconds_per_tree": [asdict(row) for row in rows],
        "bucketed_against_memcpy": [asdict(copied) for copied in copies],
        "pairs_per_second": assembly,
    }
    write_result("matrices", content, libraries=("numpy", "networkx"))


if __name__ == "__main__":
    raise SystemExit(main())
