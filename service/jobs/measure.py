"""The cost of texts, measured on a sample of them in a process of its own.

The process does the same work as a job's worker, so it measures what a worker takes: it runs the
lines on a temporary store. The parser that it loads is freed when it ends.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pydantic import BaseModel

from featurestore import open_store
from service.jobs.lines import item_key, read_item
from service.jobs.records import Counts, JobRequest, Shard
from service.jobs.shard import run_shard
from service.jobs.staging import StagedLine
from service.jobs.tools import Toolbox, load_kernels
from service.logs import own_process
from service.processes import die_with, how_ended, python_command, python_environment
from service.settings import Settings
from syntax.errors import DeadlineError, ParsebankError, WorkerDiedError
from syntax.examples import Example
from syntax.strict_json import parse_json

PROGRAM: Final = "service.jobs.measure"

TIMEOUT_SECONDS: Final = 300.0

_OWN_ERROR: Final = 3
"""Exit code of a process that says what is wrong, by a pickled `ParsebankError`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The measured cost of a sample.

    Attributes:
        examples, parses: Number of lines, and of their distinct texts.
        dropped: Lines on which the parser failed, by reason.
        seconds_per_parse: Time of one process for a text that is parsed.
        seconds_per_row: Time of one process for everything else about an example.
        bytes_per_parse, bytes_per_row: Bytes on disk.
    """

    examples: int
    parses: int
    dropped: dict[str, int]
    seconds_per_parse: float
    seconds_per_row: float
    bytes_per_parse: float
    bytes_per_row: float


class MeasureRequest(BaseModel):
    """Standard input of the process, as one line of JSON."""

    parent: int
    settings: Settings
    request: dict[str, Any]
    lines: list[str]


def take_sample(settings: Settings, request: JobRequest, lines: Sequence[bytes]) -> Sample:
    """Run a sample of lines in a process of its own.

    Raises:
        ParsebankError: The job would fail with it, as with a model that cannot be loaded.
        DeadlineError: The process took longer than `TIMEOUT_SECONDS`.
        WorkerDiedError: The process died.
    """
    asked = MeasureRequest(
        parent=os.getpid(),
        settings=settings,
        request=request.to_json(),
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
    return _read(done.returncode, done.stdout)


def _read(code: int, output: bytes) -> Sample:
    """The answer of a process that has ended."""
    if code == 0:
        return Sample(**parse_json(output))
    if code == _OWN_ERROR:
        raise pickle.loads(output)
    raise WorkerDiedError(
        f"the process that tried a sample of the texts {how_ended(code)}; the service's log may "
        "have its reason"
    )


SECONDS: Final = 2.0
"""Approximate seconds of the measurement."""

TRIAL_LINES: Final = 10
"""Lines of the first trial, which gives the number of lines to run and the cost of a commit."""


def measure(settings: Settings, request: JobRequest, lines: Sequence[str]) -> Sample:
    """Run lines on a temporary store."""
    load_kernels()
    staged = [_staged(request, at, line) for at, line in enumerate(lines)]
    with TemporaryDirectory() as folder, open_store(folder) as store:
        bench = _Bench(Path(folder), Toolbox(settings, store), request)
        bench.warm_up(staged[0])
        trial, rest = bench.measure(staged[:TRIAL_LINES]), staged[TRIAL_LINES:]
        fitting = int(SECONDS / trial.seconds_per_line)
        if not (rest and fitting):
            return trial.sample()
        return bench.measure(rest[:fitting]).sample(trial)


@dataclass(frozen=True)
class _Measured:
    """Times and sizes of lines: parsed and stored, then stored again with the existing parses."""

    counts: Counts
    parsing: float
    storing: float
    parse_bytes: int
    row_bytes: int

    @property
    def seconds_per_line(self) -> float:
        return self.parsing / self.counts.examples

    def sample(self, trial: _Measured | None = None) -> Sample:
        """The cost of one line, without the fixed cost of a commit, which a trial shows."""
        parses, rows = max(1, self.counts.parsed), max(1, self.counts.stored)
        fixed = _fixed(self, trial) if trial else dict.fromkeys(_COMMITTED, 0.0)
        return Sample(
            examples=self.counts.examples,
            parses=self.counts.parsed,
            dropped=dict(self.counts.dropped),
            seconds_per_parse=max(0.0, self.parsing - self.storing) / parses,
            seconds_per_row=(self.storing - fixed["storing"]) / rows,
            bytes_per_parse=(self.parse_bytes - fixed["parse_bytes"]) / parses,
            bytes_per_row=(self.row_bytes - fixed["row_bytes"]) / rows,
        )


_COMMITTED: Final = ("storing", "parse_bytes", "row_bytes")


def _fixed(whole: _Measured, trial: _Measured) -> dict[str, float]:
    """The fixed cost: the intercept of the line through both measurements."""
    more = whole.counts.examples - trial.counts.examples
    if more < trial.counts.examples:  # too near each other to tell
        return dict.fromkeys(_COMMITTED, 0.0)
    return {name: _intercept(whole, trial, name, more) for name in _COMMITTED}


def _intercept(whole: _Measured, trial: _Measured, name: str, more: int) -> float:
    first, last = float(getattr(trial, name)), float(getattr(whole, name))
    return min(max(0.0, first - (last - first) / more * trial.counts.examples), last)


@dataclass(frozen=True)
class _Bench:
    """A temporary store and its tools."""

    folder: Path
    toolbox: Toolbox
    request: JobRequest

    def warm_up(self, line: StagedLine) -> None:
        """Load the parser and the tokenizer."""
        tools = self.toolbox.tools(self.request)
        item = read_item(line.body, self.request.dataset)
        tools.tokenizer.encode_flat([""])
        if isinstance(item, Example):
            list(tools.analyser.analyse(item.segments[:1]))

    def measure(self, lines: Sequence[StagedLine]) -> _Measured:
        """Parse and store lines, and store them once more."""
        parses = self._size("parses")
        parsing, counts = self._run(lines, f"first-{len(lines)}")
        parses = self._size("parses") - parses
        storing, _ = self._run(lines, f"again-{len(lines)}")
        return _Measured(
            counts, parsing, storing, parses, self._size(f"datasets/again-{len(lines)}")
        )

    def _run(self, lines: Sequence[StagedLine], name: str) -> tuple[float, Counts]:
        request = replace(self.request, dataset=replace(self.request.dataset, name=name))
        shard = Shard(id=0, job=name, number=0, tries=1, first_seq=0, request=request)
        tools = self.toolbox.tools(request)
        started = time.perf_counter()
        counts = run_shard(shard, lines, tools, _NoSignals())
        return time.perf_counter() - started, counts

    def _size(self, table: str) -> int:
        files = (self.folder / table).rglob("*")
        return sum(file.stat().st_size for file in files if file.is_file())


class _NoSignals:
    """Signals without effect."""

    fatal_keys: frozenset[str] = frozenset()
    slow_keys: frozenset[str] = frozenset()
    isolated_keys: frozenset[str] = frozenset()

    def beat(self) -> None:
        """See `Signals.beat`."""

    def watch(self, *keys: str, characters: int = 0) -> None:
        """See `Signals.watch`."""

    def announce(self, plan: Counts) -> None:
        """See `Signals.announce`."""


def _staged(request: JobRequest, position: int, line: str) -> StagedLine:
    key = item_key(read_item(line, request.dataset), *request.item_identity)
    return StagedLine(position, position + 1, key, line)


def main() -> int:
    """Measure the lines on standard input; the result goes to standard output.

    Returns:
        The exit code.
    """
    asked = MeasureRequest.model_validate_json(sys.stdin.buffer.read())
    die_with(parent=asked.parent)
    own_process(asked.settings.log_level, asked.settings.log_format)
    try:
        sample = measure(asked.settings, JobRequest.from_json(asked.request), asked.lines)
    except ParsebankError as error:
        sys.stdout.buffer.write(pickle.dumps(error))
        return _OWN_ERROR
    sys.stdout.write(json.dumps(asdict(sample)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
