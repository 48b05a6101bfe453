"""Kill what works on stores and damage their files, as often as wanted; print what was done.

    python -m tests.featurestore.faults [--kills 500] [--seed 0]

Each round starts writers, readers, compactions and deletions at once on one store and kills them
at one moment. Every fifth round a vacuum is killed too, and then a data file is torn or removed, or
the newest entry of a log is emptied or cut, and the store repaired. After each round every record
that was acknowledged must be there, once, and none that was deleted; only the parses of damaged
data files may be missing. The first loss ends the program with its seed and round.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from featurestore import open_store

from .trials import CASTS, DELETIONS, Trials, assert_settled
from .writers import Writers

ALL_CASTS = {**CASTS, "deletions": DELETIONS}

ROUNDS = 25
"""Rounds on one store."""


def run_store(folder: Path, writers: Writers, cast: str, seed: str) -> Counter[str]:
    """Some rounds on a new store; what was done and checked."""
    trials = Trials(folder, writers, seed)
    for number in range(1, ROUNDS + 1):
        did = ""
        try:
            trials.run(ALL_CASTS[cast])
            if number % 5 == 0:
                trials.run(["vacuum"])
                did = trials.damage()
            with open_store(trials.uri) as store:
                trials.check(store)
        except BaseException:
            print(f"store {seed!r}, round {number}: {did or cast}", file=sys.stderr)  # noqa: T201
            raise
    with open_store(trials.uri) as store:
        assert_settled(store, trials)
    acknowledged = {"parses": len(trials.parses), "examples": len(trials.examples)}
    return trials.counts + Counter(acknowledged) + Counter(deleted=len(trials.deleted))


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--kills", type=int, default=500)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    chance, total, stores = random.Random(options.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        writers = Writers(Path(name))
        while total["kills"] < options.kills:
            cast = chance.choice(list(ALL_CASTS))
            folder = Path(name, f"store-{stores}")
            total += run_store(folder, writers, cast, f"{options.seed}/{stores} {cast}")
            stores += 1
            print(f"{stores} stores, {total['kills']} kills, none lost")  # noqa: T201
        writers.close()
    print(", ".join(f"{name} {count}" for name, count in sorted(total.items())))  # noqa: T201


if __name__ == "__main__":
    main()
