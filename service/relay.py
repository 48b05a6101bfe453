"""Relay of standard error: lines that libraries write themselves become JSON log events.

A separate process wraps the lines, so that a message before an abort (such as a Rust panic) is not
lost. In a container this needs an init as the first process, because all processes end with the
first. The service's own log lines do not pass through the relay.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

from service.processes import python_command, python_environment
from syntax.errors import without_passwords
from syntax.strict_json import parse_json


def relay_standard_error() -> None:
    """Wrap all lines but those to ``sys.stderr``, the target of the logger."""
    relay = subprocess.Popen(
        python_command(__name__),
        stdin=subprocess.PIPE,
        stdout=sys.stderr.fileno(),
        env=python_environment(),
        process_group=0,
    )
    sys.stderr = os.fdopen(os.dup(sys.stderr.fileno()), "w", buffering=1, errors="backslashreplace")
    if relay.stdin is not None:
        os.dup2(relay.stdin.fileno(), 2)
        relay.stdin.close()


def main() -> None:
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            is_event = isinstance(parse_json(line), dict)
        except ValueError:
            is_event = False
        # The service's own processes write events themselves.
        sys.stdout.buffer.write(line if is_event else _event(line))
        sys.stdout.buffer.flush()


def _event(line: bytes) -> bytes:
    event = {
        "event": without_passwords(line.decode("utf-8", "backslashreplace").rstrip()),
        "logger": "stderr",
        "level": "warning",
        "time": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
    }
    return json.dumps(event).encode() + b"\n"


if __name__ == "__main__":
    main()
