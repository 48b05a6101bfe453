from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from clients.processes import (
    finish,
    parsebank,
    running,
    termination_unwinds,
    wait_until,
)
from syntax.errors import WorkError

FAMILY = (
    "import subprocess, sys, time;"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print(child.pid, flush=True); time.sleep(60)"
)


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "out.log"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def gone(pid: int, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def first_line(log: Path) -> str:
    while "\n" not in log.read_text("utf-8"):
        time.sleep(0.02)
    return log.read_text("utf-8").splitlines()[0]


def test_running_ends_the_process_group(log):
    with running(python(FAMILY), log) as process:
        child = int(first_line(log))
        assert psutil.pid_exists(child)
    assert process.returncode == -signal.SIGTERM
    assert gone(child)


def test_running_ends_the_process_group_after_an_error(log):
    with pytest.raises(KeyboardInterrupt), running(python(FAMILY), log) as process:
        raise KeyboardInterrupt
    assert process.returncode is not None


def test_finish_waits_and_keeps_the_output(log):
    finish(python("print('hello')"), log)
    assert log.read_text("utf-8") == "hello\n"


def test_finish_shows_the_end_of_a_failed_commands_log(log):
    code = "import sys; [print('line', n) for n in range(100)]; sys.exit(3)"
    with pytest.raises(WorkError, match="exited with 3") as caught:
        finish(python(code), log)
    assert "line 99" in caught.value.message
    assert "line 79" not in caught.value.message


def test_wait_until_raises_when_the_process_ends(log):
    with (
        running(python("raise SystemExit('no such port')"), log) as process,
        pytest.raises(WorkError, match="no such port"),
    ):
        wait_until(lambda: False, process, log, 30)


def test_wait_until_raises_after_its_timeout(log):
    with (
        running(python("import time; time.sleep(60)"), log) as process,
        pytest.raises(WorkError, match="was not ready after 0 s"),
    ):
        wait_until(lambda: False, process, log, 0.2)


def test_wait_until_returns_once_ready(log):
    with running(python("import time; time.sleep(60)"), log) as process:
        wait_until(lambda: True, process, log, 0.0)


def test_sigterm_runs_finally_blocks():
    with pytest.raises(SystemExit) as caught, termination_unwinds():
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_command_runs_without_being_on_the_path():
    done = subprocess.run(parsebank("--version"), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("parsebank ")
