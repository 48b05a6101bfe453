"""What a corpus of 10^9 sentences takes: hours, files, bytes, requests and dollars.

    python -m benchmarks.plan [--sentences 1000000000]

The life of a store on an object store is simulated commit by commit from rates that this repository
measured (`Rates`, with their sources) and prices that are stated (`Prices`). Prints the tables of
docs/scale.md; no request is sent.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from typing import Final

GB: Final = 1e9


@dataclass(frozen=True)
class Rates:
    """What was measured; sizes are those of one sentence of English Web Treebank.

    Attributes:
        udpipe_ms: CPU milliseconds of a text from upload to stored features with UDPipe
            (XNLI, results/backfill-2026-11-22.json: 25 s for 9,999 texts).
        own: How many times as long the parser in the box takes without 8-bit instructions
            (backfill of XNLI, docs/models.md).
        parse_bytes, example_bytes: Stored bytes of a parse, and of an example without matrices
            (10^6 rows of benchmarks/scale.py).
        footer_bytes: Of Parquet footers, for each parse, likewise.
        key_bytes, order_bytes: Of kept keys, and of the kept order of a dataset, for each row
            (ADR 0031).
        shard: Texts of a shard; each is one commit to parses and one to the dataset
            (setting job_shard_segments).
        shard_ms: CPU milliseconds of claiming and committing a shard (docs/reference/settings.md).
        checkpoint: Commits between two checkpoints of a log (Delta's default).
        action_bytes: Of a checkpoint, for each file that is or was in the table
            (results/commits-2026-11-23.json).
        gets_per_entry, gets, lists, puts: Requests of an append: GETs for each entry since the
            checkpoint, and further ones (counted on moto's S3, 2026-11-23, deltalake 1.6).
        joined_bytes: Size of a file after compaction.
    """

    udpipe_ms: float = 2.5
    own: float = 1.4
    parse_bytes: float = 498
    example_bytes: float = 162
    footer_bytes: float = 14
    key_bytes: float = 24
    order_bytes: float = 44
    shard: int = 3000
    shard_ms: float = 40
    checkpoint: int = 100
    action_bytes: float = 70
    gets_per_entry: float = 2
    gets: float = 5
    lists: float = 3
    puts: float = 2
    joined_bytes: float = 100 * 2**20


@dataclass(frozen=True)
class Prices:
    """Dollars, as S3 Standard and EC2 in us-east-1 were listed in 2025; put in your own."""

    put_or_list: float = 0.005 / 1000
    get: float = 0.0004 / 1000
    gigabyte_month: float = 0.023
    core_hour: float = 0.045


@dataclass
class Log:
    """What the commits of one table come to.

    Attributes:
        commits: Commits, compactions included.
        active, removed: Files in the newest version, and files that compactions replaced.
        puts, lists, gets: Requests.
        read, written: Bytes of checkpoints, and of files that compactions join.
    """

    commits: int = 0
    active: float = 0.0
    removed: float = 0.0
    puts: float = 0.0
    lists: float = 0.0
    gets: float = 0.0
    read: float = 0.0
    written: float = 0.0

    def commit(self, rates: Rates, keeps_removed: bool) -> None:
        """One more commit: its requests, and a checkpoint when it is due."""
        self.commits += 1
        since = self.commits % rates.checkpoint
        listed = self.active + (self.removed if keeps_removed else 0)
        self.gets += rates.gets + rates.gets_per_entry * since
        self.lists += rates.lists
        self.puts += rates.puts
        self.read += listed * rates.action_bytes
        if not since:
            self.puts += 2
            self.written += listed * rates.action_bytes


def simulate(
    sentences: int, row_bytes: float, rates: Rates, compact_every: int, keeps_removed: bool
) -> Log:
    """The life of one table from its first commit to its last compaction.

    Args:
        sentences: Rows.
        row_bytes: Bytes of a row.
        rates: What was measured.
        compact_every: Commits between two compactions, which join the files since the last one;
            0 for one compaction in the end.
        keeps_removed: Whether checkpoints list the files that were replaced for ever.
    """
    log, small = Log(), 0
    for commit in range(-(-sentences // rates.shard)):
        log.active += 1
        small += 1
        log.commit(rates, keeps_removed)
        if compact_every and commit % compact_every == compact_every - 1:
            small = _compact(log, small, row_bytes, rates, keeps_removed)
    _compact(log, small, row_bytes, rates, keeps_removed)
    return log


def _compact(log: Log, small: int, row_bytes: float, rates: Rates, keeps_removed: bool) -> int:
    """Join the small files; how many are left."""
    joined = small * rates.shard * row_bytes
    files = max(1.0, joined / rates.joined_bytes)
    log.active += files - small
    log.removed += small
    log.gets += small
    log.puts += files
    log.read += joined
    log.written += joined
    log.commit(rates, keeps_removed)
    return 0


def dollars(log: Log, prices: Prices) -> float:
    """What the requests of a table cost."""
    return (log.puts + log.lists) * prices.put_or_list + log.gets * prices.get


def table(columns: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """Rows as Markdown."""
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(shown, line))} |" for line in lines) + "\n"


def shown(value: object) -> str:
    """A number with three digits that count."""
    if isinstance(value, float):
        return f"{float(f'{value:.3g}'):,.12g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def parsing(sentences: int, rates: Rates, prices: Prices) -> str:
    """Hours of parsing by cores."""
    rows: list[tuple[object, ...]] = []
    per_commit = rates.shard_ms / rates.shard
    for name, times in (("UDPipe", 1.0), ("parser in the box", rates.own)):
        hours = sentences * (rates.udpipe_ms * times + per_commit) / 3.6e6
        by_cores = (hours / cores for cores in (16, 256, 1024))
        rows.append((name, hours, *by_cores, hours * prices.core_hour))
    return table(("parser", "core hours", "16 cores", "256", "1,024", "dollars"), rows)


def requests(sentences: int, rates: Rates, prices: Prices) -> str:
    """Commits, files, requests and their cost, by how often one compacts."""
    rows: list[tuple[object, ...]] = []
    for name, every, keeps in (
        ("once, at the end", 0, True),
        ("every 1,000 commits", 1000, True),
        ("every 1,000, removed files forgotten", 1000, False),
    ):
        logs = [
            simulate(sentences, size, rates, every, keeps)
            for size in (rates.parse_bytes, rates.example_bytes)
        ]
        total = [sum(getattr(log, one.name) for log in logs) for one in fields(Log)]
        commits, active, _, puts, lists, gets, read, _ = total
        cost = sum(dollars(log, prices) for log in logs)
        largest = max(log.active + log.removed * keeps for log in logs) * rates.action_bytes / 1e6
        rows.append((name, commits, active, puts, lists, gets, read / GB, largest, cost))
    columns = ("compaction", "commits", "files in the end", "PUT", "LIST", "GET", "GB read")
    return table((*columns, "MB of the last checkpoint", "dollars"), rows)


def sizes(sentences: int, rates: Rates, prices: Prices) -> str:
    """Bytes by what they are for."""
    parts = (
        ("parses", rates.parse_bytes),
        ("of these, Parquet footers", rates.footer_bytes),
        ("examples of one tokenizer, without matrices", rates.example_bytes),
        ("kept keys of parses and of examples, on each machine", 2 * rates.key_bytes),
        ("kept order of the examples, on each machine", rates.order_bytes),
    )
    rows = [(name, size * sentences / GB) for name, size in parts]
    month = (rates.parse_bytes + rates.example_bytes) * sentences / GB * prices.gigabyte_month
    return table(("", "GB"), rows) + f"\nStorage: {shown(month)} dollars a month.\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="What a corpus of a billion sentences takes.")
    parser.add_argument("--sentences", type=int, default=1_000_000_000)
    sentences = parser.parse_args().sentences
    rates, prices = Rates(), Prices()
    for part in (parsing, sizes, requests):
        print(part(sentences, rates, prices))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
