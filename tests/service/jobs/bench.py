"""A shard to be run in this process, and signals that note everything."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from featurestore import FeatureStore
from service.jobs.lines import item_key, read_item
from service.jobs.records import Counts, JobRequest, Shard
from service.jobs.shard import Tools, run_shard
from service.jobs.staging import StagedLine
from service.jobs.tools import TextAnalyser, ToolCache, parser_identity
from service.settings import Settings
from service.tokenizers import load_tokenizer
from syntax.examples import DatasetSpec, LabelSpec

DATASET = DatasetSpec(
    "pairs", "dev", "en", ("premise", "hypothesis"), (LabelSpec("label", "class", ("yes", "no")),)
)


class Killed(Exception):  # noqa: N818 - it stands for a signal
    """The process ends here."""


@dataclass
class Recorder:
    """`Signals` that note everything, and can end the run before the commits."""

    fatal_keys: frozenset[str] = frozenset()
    slow_keys: frozenset[str] = frozenset()
    isolated_keys: frozenset[str] = frozenset()
    dies_at_announce: bool = False
    watched: list[tuple[str, ...]] = field(default_factory=list)
    plans: list[Counts] = field(default_factory=list)
    beats: int = 0

    def beat(self) -> None:
        self.beats += 1

    def watch(self, *keys: str, characters: int = 0) -> None:
        self.watched.append(keys)

    def announce(self, plan: Counts) -> None:
        if self.dies_at_announce:
            raise Killed
        self.plans.append(plan)


@dataclass
class Bench:
    """Tools over one store, and the shard of a few examples."""

    settings: Settings
    store: FeatureStore
    request: JobRequest

    def tools(self, *, store: FeatureStore | None = None, bulk: bool = False) -> Tools:
        tools = ToolCache(self.settings, store or self.store).tools(self.request)
        analyser = tools.analyser
        assert isinstance(analyser, TextAnalyser)
        analyser.bulk = bulk
        return tools

    def shard(self, number: int = 0, plan: Counts | None = None) -> Shard:
        return Shard(1, "job", number, 1, 0, self.request, plan)

    def lines(self, items: list[dict[str, Any]]) -> list[StagedLine]:
        bodies = [json.dumps(item) for item in items]
        keys = [item_key(read_item(body, DATASET), *self.request.item_identity) for body in bodies]
        return [StagedLine(n, n + 2, keys[n], body) for n, body in enumerate(bodies)]

    def watched(self, lines: list[StagedLine], bulk: bool = False) -> list[tuple[str, ...]]:
        """Texts in hand of a try that dies before its commits."""
        signals = Recorder(dies_at_announce=True)
        with pytest.raises(Killed):
            run_shard(self.shard(), lines, self.tools(bulk=bulk), signals)
        return signals.watched

    def size(self, table: str) -> int:
        (row,) = self.store.sql(f"select count(*) from {table}").fetchall()
        return int(row[0])


def make_bench(folder: Path, store: FeatureStore) -> Bench:
    settings = Settings(store=str(folder), state_dir=folder / "state")
    request = JobRequest(
        dataset=DATASET,
        parser="udpipe/english-ewt",
        parser_fingerprint=parser_identity(settings, "raw", "udpipe/english-ewt").fingerprint,
        tokenizer="parsebank-wordpiece-en",
        tokenizer_fingerprint=load_tokenizer("parsebank-wordpiece-en").fingerprint,
    )
    return Bench(settings, store, request)
