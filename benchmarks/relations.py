"""Time of the relations and samples of docs/reference/matrices.md, per example, in batches of 32.

    python -m benchmarks.relations [--sizes 27,128] [--rounds 20]

Random projective trees below [CLS], of as many positions as asked, one text each. The table has the
CPU time of the fastest round, less that of the batch without matrices.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from syntax.batches import AssemblySpec, FlatExamples, SpecialTokens, assemble_batch
from syntax.contrast import PhraseSampler, Sampler, TreeSampler
from syntax.matrices import MATRICES

BATCH = 32
SPECIAL = SpecialTokens(prefix=(1,), separator=(2,), suffix=(2,), pad_id=0, vocab_size=1000)
SAMPLERS: tuple[Sampler, ...] = (
    PhraseSampler(),
    PhraseSampler(way="lr_sib"),
    TreeSampler(),
    TreeSampler(way="lr_sib"),
)


def projective(rng: np.random.Generator, first: int, end: int, above: int) -> dict[int, int]:
    """Parents of the words from ``first`` to ``end``, of which one hangs from ``above``."""
    if first >= end:
        return {}
    root = int(rng.integers(first, end))
    left, right = projective(rng, first, root, root), projective(rng, root + 1, end, root)
    return {root: above, **left, **right}


def batch_of(size: int) -> FlatExamples:
    rng = np.random.default_rng(size)
    trees = [projective(rng, 0, size - 2, -1) for _ in range(BATCH)]
    heads = [tree[word] for tree in trees for word in range(size - 2)]
    places = np.tile(np.arange(size - 2), BATCH)
    tags = (places % 17 + 1).astype(np.uint8)
    return FlatExamples(
        input_ids=places.astype(np.int32),
        head=np.array(heads, np.int32),
        word_ids=places.astype(np.int32),
        upos=tags,
        deprel=tags,
        sentence_ids=np.zeros_like(places, np.int32),
        segment_offsets=np.arange(BATCH + 1) * (size - 2),
        example_offsets=np.arange(BATCH + 1),
        marks=(places % 9 == 4).astype(np.uint8),
    )


def fastest(call: Callable[[], object], rounds: int) -> float:
    """Microseconds of CPU time per example."""
    call()
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best / BATCH * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="27,128")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        flat, plain = batch_of(size), AssemblySpec(matrices=())
        nothing = fastest(partial(assemble_batch, flat, SPECIAL, plain), options.rounds)
        print(f"\n{size} positions; without matrices {nothing:.1f} µs an example")
        for name in MATRICES:
            spec = AssemblySpec(matrices=(name,))
            whole = fastest(partial(assemble_batch, flat, SPECIAL, spec), options.rounds)
            print(f"  {name:28} {whole - nothing:7.1f} µs")
        batch = assemble_batch(flat, SPECIAL, plain)
        keys = [str(number) for number in range(BATCH)]
        for sampler in SAMPLERS:
            taken = fastest(partial(sampler.sample, batch, keys, 0, 0), options.rounds)
            print(f"  {type(sampler).__name__ + ', ' + sampler.way:28} {taken:7.1f} µs")


if __name__ == "__main__":
    main()
