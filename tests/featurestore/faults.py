"""Kill what works on stores and damage their files, as often as wanted; print what was done.

    python -m tests.featurestore.faults [--kills 500] [--bits 200] [--seed 0]

Each round starts writers, readers, compactions and deletions at once on one store and kills them
at one moment. Every fifth round a vacuum is killed too, and then a data file is torn, removed or
changed in one bit, or the newest entry of a log is emptied or cut, and the store repaired. After
each round every record that was acknowledged must be there, once, and none that was deleted; only
the rows of the damaged file or entry may be missing.

Then single bits of the data files of a store change, with labels, matrices, states, drops, pins and
descriptions: each is found and named, no reader gets another value, and of every tenth a repair and
the same backfill restore everything. The first loss ends the program with its seed and round.
"""

from __future__ import annotations

import argparse
import logging
import random
import tempfile
from collections import Counter
from pathlib import Path

from featurestore import open_store
from syntax.batches import SpecialTokens

from .conftest import handle_of, small_corpus
from .damages import check_many, fill
from .trials import CASTS, run_store
from .writers import Writers


def change_bits(folder: Path, count: int, seed: int) -> Counter[str]:
    """Change single bits of a small store; how many of each table."""
    logging.disable()  # each would be named several times
    records, rows = small_corpus()
    tokens = SpecialTokens(prefix=(2,), separator=(3,), suffix=(3,), pad_id=0, vocab_size=5000)
    handle = handle_of(tokens)
    with open_store(folder / "store") as store:
        fill(store, handle, records, rows)
    found = check_many(folder / "store", count, seed, handle, (records, rows), count // 10)
    print(f"{count} bits changed, none unseen")  # noqa: T201
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--kills", type=int, default=500)
    arguments.add_argument("--bits", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    chance, total, stores = random.Random(options.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as name:
        writers = Writers(Path(name))
        while total["kills"] < options.kills:
            cast = chance.choice(list(CASTS))
            folder = Path(name, f"store-{stores}")
            done = run_store(folder, writers, cast, f"{options.seed}/{stores} {cast}", True)
            kept = {"parses": len(done.parses), "examples": len(done.examples)}
            total += done.counts + Counter({**kept, "deleted": len(done.deleted)})
            stores += 1
            print(f"{stores} stores, {total['kills']} kills, none lost")  # noqa: T201
        damaged = change_bits(Path(name, "bits"), options.bits, options.seed)
    total.update({f"bits of {table}": count for table, count in damaged.items()})
    print(", ".join(f"{name} {count}" for name, count in sorted(total.items())))  # noqa: T201


if __name__ == "__main__":
    main()
