"""The demo as a user runs it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from clients.client.jobs import decode_job
from clients.client.results import decode_parse_result
from clients.demo import Round, serving
from clients.processes import parsebank
from syntax.errors import WorkError


def test_a_round_adds_up_what_its_stages_did(job_json):
    words = {"key": "k", "text": "", "sentences": []}
    answer = {
        "parser": {"name": "p", "fingerprint": "f"},
        "items": [words | {"cached": cached} for cached in (True, False, False)],
    }
    job = decode_job(job_json)
    one = Round(decode_parse_result(answer), (job, job), {}, {})
    assert (one.examples, one.dropped) == (200, {"empty_text": 4})
    assert (one.parses_done, one.parses_reused) == (2 + 140, 1 + 60)


@pytest.mark.slow
def test_a_service_that_cannot_start_is_reported_with_its_log(tmp_path):
    store = tmp_path / "store"
    store.write_text("a file where a folder should be", "utf-8")
    with (
        pytest.raises(WorkError, match=r"the end of .*service\.log"),
        serving(store, tmp_path / "service.log"),
    ):
        pytest.fail("it must not start")


@pytest.mark.slow
def test_demo_parses_once_trains_twice_and_cleans_up(tmp_path):
    done = subprocess.run(
        parsebank("demo", "--store", str(tmp_path / "store")),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=marked(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = (line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    figures = {name: cells for name, *cells in rows}
    assert figures["examples"] == ["500", "500"]
    assert figures["parses done"][1] == "0"
    assert figures["dropped"] == ["3 empty_text", "3 empty_text"]
    assert figures["loss at end"][0] == figures["loss at end"][1]
    assert float(figures["loss at end"][0]) < float(figures["loss at start"][0])
    for line in re.findall(r"^  (parsebank store .*)$", done.stdout, re.MULTILINE):
        subprocess.run(parsebank(*shlex.split(line)[1:]), check=True, capture_output=True)
    assert not left_behind(tmp_path)


@pytest.mark.slow
def test_interrupting_the_demo_stops_its_processes(tmp_path):
    process = subprocess.Popen(
        parsebank("demo", "--store", str(tmp_path / "store")),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=marked(tmp_path),
    )
    while "backfilling" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=240)
    assert process.returncode == 130
    assert not left_behind(tmp_path)


def marked(folder: Path) -> dict[str, str]:
    """An environment that tells every descendant of a process, and keeps its files together."""
    return {**os.environ, "PARSEBANK_TEST_MARK": str(folder), "TMPDIR": str(folder)}


def left_behind(folder: Path) -> list[psutil.Process]:
    """Living processes with that mark, once they have had time to end."""
    deadline = time.monotonic() + 60
    while (found := list(_marked_processes(folder))) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _marked_processes(folder: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            mark = process.environ().get("PARSEBANK_TEST_MARK")
            if mark == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                yield process
