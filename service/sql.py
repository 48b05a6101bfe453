"""SQL over the store for HTTP: each query runs in a process of its own.

One query can take all memory of a process, or go on for ever. So the kernel bounds the process,
which is killed when its time is over.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any, Final

from service.processes import (
    OWN_ERROR,
    exit_with_parent,
    how_ended,
    python_command,
    python_environment,
)
from syntax.errors import DeadlineError, OverloadedError, SpecError, WorkError
from syntax.strict_json import parse_json

QUERY_BYTES: Final = 1_000_000_000

PROCESS_BYTES: Final = 3_000_000_000
"""Memory that the whole process may take, libraries and Python's values included."""


@dataclass(frozen=True)
class SqlQuery:
    """One SELECT, as `FeatureStore.sql` takes it; the most rows, and the longest time."""

    query: str
    limit: int
    seconds: float


class SqlProcesses:
    """Runs queries, one at a time."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._running = asyncio.Lock()

    async def run(self, query: SqlQuery) -> dict[str, Any]:
        if self._running.locked():
            raise OverloadedError(
                "another query is running, and the service runs one at a time; try again when it "
                "has ended",
                retry_after=1,
            )
        async with self._running:
            return await self._run(query)

    async def _run(self, query: SqlQuery) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *python_command("service.sql"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=python_environment(),
        )
        asked = {"store": self._store, "query": query.query, "limit": query.limit}
        content = json.dumps({**asked, "parent": os.getpid()}).encode("ascii")
        try:
            async with asyncio.timeout(query.seconds):
                output, log = await process.communicate(content)
        except TimeoutError:
            raise DeadlineError(
                f"the query was stopped after {query.seconds:g} s; ask for less, or run it with "
                "`parsebank store sql`, which has no limit"
            ) from None
        finally:
            if process.returncode is None:  # also where the caller has left
                process.kill()
                await process.wait()
        return _read(process.returncode, output, log)


def _read(code: int | None, output: bytes, log: bytes) -> dict[str, Any]:
    if code == 0:
        answer: dict[str, Any] = parse_json(output)
        return answer
    if code == OWN_ERROR:
        raise SpecError(parse_json(output))
    last = log.decode("utf-8", "replace").strip().rpartition("\n")[2]
    raise WorkError(
        f"the process of the query {how_ended(code or 0)} ({last}); it may have needed more than "
        f"{PROCESS_BYTES // 10**9} GB of memory: ask for less, or use `parsebank store sql`"
    )


def main() -> int:
    from featurestore import open_store
    from featurestore.sql.answer import answer_query

    asked = parse_json(sys.stdin.buffer.read())
    exit_with_parent(asked["parent"])
    if sys.platform == "linux":  # other systems do not count mapped memory
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_BYTES, PROCESS_BYTES))
    try:
        with open_store(asked["store"]) as store:
            answer = answer_query(store, asked["query"], asked["limit"], QUERY_BYTES)
    except SpecError as error:
        sys.stdout.write(json.dumps(error.message))
        return OWN_ERROR
    except MemoryError:
        sys.stdout.write(json.dumps("the query needs more memory than it may take; ask for less"))
        return OWN_ERROR
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
