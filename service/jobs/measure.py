"""The cost of texts, measured on a sample of them in a process of its own.

The process runs the lines as a job's worker does, on a temporary store. The parser that it loads is
freed when it ends.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import BaseModel, Field

from featurestore import open_store
from service.jobs.lines import item_key, read_item
from service.jobs.records import Counts, JobRequest, Shard
from service.jobs.shard import run_shard
from service.jobs.staging import StagedLine
from service.jobs.tools import ToolCache, load_kernels
from service.logs import configure_process_logging
from service.processes import (
    OWN_ERROR,
    exit_with_parent,
    how_ended,
    python_command,
    python_environment,
)
from service.settings import Settings
from syntax.errors import DeadlineError, ParsebankError, WorkerDiedError
from syntax.examples import Example

PROGRAM: Final = "service.jobs.measure"

TIMEOUT_SECONDS: Final = 300.0

SECONDS: Final = 2.0
"""Approximate time of the measurement."""

TRIAL_LINES: Final = 10
"""Lines of a first trial, which tells how many lines fit into `SECONDS`."""


class SampleAnswer(BaseModel):
    """What was measured, by one process."""

    examples: int = Field(description="Examples that were tried, drawn at random.")
    parses: int
    dropped: dict[str, int] = Field(
        description="Examples among them on which the parser failed, by reason."
    )
    seconds_per_parse: float
    seconds_per_row: float = Field(description="Alignment, matrices and storage of an example.")
    bytes_per_parse: float
    bytes_per_row: float


class MeasureRequest(BaseModel):
    """Standard input of the process, as one line of JSON."""

    parent: int
    settings: Settings
    request: JobRequest
    lines: list[str]


def take_sample(settings: Settings, request: JobRequest, lines: Sequence[bytes]) -> SampleAnswer:
    """Run a sample of lines in a process of its own.

    A `ParsebankError` is one that the job would fail with. The process may take `TIMEOUT_SECONDS`.
    """
    asked = MeasureRequest(
        parent=os.getpid(),
        settings=settings,
        request=request,
        lines=[line.decode() for line in lines],
    )
    try:
        done = subprocess.run(
            python_command(PROGRAM),
            input=asked.model_dump_json().encode(),
            stdout=subprocess.PIPE,
            env=python_environment(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1"),
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(
            f"the trial of a sample of the texts was stopped after {TIMEOUT_SECONDS:g} s; a "
            "backfill has no such limit: send it without a dry run"
        ) from None
    if done.returncode == 0:
        return SampleAnswer.model_validate_json(done.stdout)
    if done.returncode == OWN_ERROR:
        raise pickle.loads(done.stdout)
    raise WorkerDiedError(
        f"the process that tried a sample of the texts {how_ended(done.returncode)}; the service's "
        "log may have its reason"
    )


def measure(settings: Settings, request: JobRequest, lines: Sequence[str]) -> SampleAnswer:
    """Run as many lines on a temporary store as fit into `SECONDS`, after a trial of a few."""
    load_kernels()
    items = [read_item(line, request.dataset) for line in lines]
    staged = [
        StagedLine(at, at + 1, item_key(item, *request.item_identity), line)
        for at, (item, line) in enumerate(zip(items, lines, strict=True))
    ]
    with TemporaryDirectory() as folder, open_store(folder) as store:
        cache = ToolCache(settings, store)
        tools = cache.tools(request)
        tools.tokenizer.encode_flat([""])
        if isinstance(items[0], Example):  # the parser is loaded with its first text
            list(tools.analyser.analyse(items[0].segments[:1]))

        def run(number: int, lines: Sequence[StagedLine]) -> tuple[SampleAnswer, float]:
            shard = Shard(id=0, job="sample", number=number, tries=1, first_seq=0, request=request)
            before = _size(folder, "parses"), _size(folder, "datasets")
            signals, started = _Stopwatch(), time.perf_counter()
            counts = run_shard(shard, lines, tools, signals)
            ended, parsing = time.perf_counter(), signals.parsed_at - started
            parses, rows = max(1, counts.parsed), max(1, counts.stored)
            return SampleAnswer(
                examples=counts.examples,
                parses=counts.parsed,
                dropped=dict(counts.dropped),
                seconds_per_parse=parsing / parses,
                seconds_per_row=(ended - signals.parsed_at) / rows,
                bytes_per_parse=(_size(folder, "parses") - before[0]) / parses,
                bytes_per_row=(_size(folder, "datasets") - before[1]) / rows,
            ), parsing

        trial, parsing = run(0, staged[:TRIAL_LINES])
        fitting = int(SECONDS / parsing * trial.examples)
        rest = staged[TRIAL_LINES : TRIAL_LINES + fitting]
        # Few lines say less than the trial: a commit costs them as much as many.
        return run(1, rest)[0] if len(rest) >= TRIAL_LINES else trial


class _Stopwatch:
    """`Signals` that note when the texts are parsed."""

    fatal_keys: frozenset[str] = frozenset()
    slow_keys: frozenset[str] = frozenset()
    isolated_keys: frozenset[str] = frozenset()
    parsed_at = 0.0

    def beat(self) -> None:
        """Do nothing."""

    def watch(self, *keys: str, characters: int = 0) -> None:  # noqa: ARG002 - of the protocol
        """Note the time when no text is in flight any more."""
        if not keys:
            self.parsed_at = time.perf_counter()

    def announce(self, plan: Counts) -> None:
        """Do nothing."""


def _size(folder: str, table: str) -> int:
    files = (Path(folder) / table).rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> int:
    """Measure the lines on standard input; the result goes to standard output."""
    asked = MeasureRequest.model_validate_json(sys.stdin.buffer.read())
    exit_with_parent(parent=asked.parent)
    configure_process_logging(asked.settings.log_level, asked.settings.log_format)
    try:
        sample = measure(asked.settings, asked.request, asked.lines)
    except ParsebankError as error:
        sys.stdout.buffer.write(pickle.dumps(error))
        return OWN_ERROR
    sys.stdout.write(sample.model_dump_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
