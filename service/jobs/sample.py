"""The cost of texts, measured on a sample of them in a process of its own.

The process does the same work as a job's worker, so it measures what a worker takes. The parser
that it loads is freed when it ends.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from service.jobs.records import JobRequest
from service.processes import python_command, python_environment
from service.settings import Settings
from syntax.errors import WorkerDiedError
from syntax.strict_json import parse_json

PROGRAM: Final = "service.jobs.measure"

_TIMEOUT_SECONDS: Final = 300.0


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
        WorkerDiedError: The process failed.
    """
    asked = MeasureRequest(
        parent=os.getpid(),
        settings=settings,
        request=request.to_json(),
        lines=[line.decode() for line in lines],
    )
    done = subprocess.run(
        python_command(PROGRAM),
        input=asked.model_dump_json().encode(),
        stdout=subprocess.PIPE,
        env=python_environment(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1"),
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise WorkerDiedError(
            f"the process that tried a sample of the texts ended with {done.returncode}; its "
            "reason is in the service's log"
        )
    return Sample(**parse_json(done.stdout))
