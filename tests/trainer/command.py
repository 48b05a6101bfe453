"""``parsebank`` as a user types it, in this process."""

from __future__ import annotations

import json
import subprocess
import sys

from typer.testing import CliRunner, Result

from clients.cli import build_app


def parsebank(*arguments: object, given: str | None = None) -> Result:
    """Run a command; ``given`` is its standard input."""
    words = [*map(str, arguments)]
    return CliRunner().invoke(build_app(words), words, input=given)


LIGHT = """
import json, sys
from typer.testing import CliRunner
from clients.cli import build_app

codes = [CliRunner().invoke(build_app(w), w).exit_code for w in json.loads(sys.argv[1])]
sys.exit(any(codes) or "torch" in sys.modules or "transformers" in sys.modules)
"""


def need_no_torch(*commands: list[object]) -> bool:
    """True if commands succeed in a process, and leave out torch, whose import takes seconds."""
    words = json.dumps([list(map(str, command)) for command in commands])
    return subprocess.run([sys.executable, "-c", LIGHT, words], check=False).returncode == 0
