"""A progress bar in a terminal, in a pipe and in a notebook's kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from clients import ProgressBar
from clients.client.jobs import Job, decode_job


@dataclass
class Report:
    step: int
    total_steps: int
    losses: dict[str, float]


@pytest.fixture
def job(job_json) -> Job:
    return decode_job(job_json)


def test_a_terminal_shows_one_line_that_ends_with_the_job(capsys, monkeypatch, job):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = ProgressBar("dev")
    bar(replace(job, state="running"))
    bar(replace(job, state="done"))
    running, done = capsys.readouterr().err.split("\r\x1b[K")[1:]
    assert running == "dev: 50 of 100, running, 2 dropped"
    assert done == "dev: 50 of 100, done, 2 dropped\n"


def test_a_pipe_shows_nothing(capsys, job):
    ProgressBar("dev")(job)
    assert capsys.readouterr() == ("", "")


def test_it_shows_training_and_ignores_other_events(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    bar = ProgressBar("training")
    bar(object())
    bar(Report(5, 10, {"loss": 0.5}))
    bar(Report(10, 10, {"loss": 0.25}))
    shown = capsys.readouterr().err
    assert shown == (
        "\r\x1b[Ktraining: 5 of 10, loss 0.5000\r\x1b[Ktraining: 10 of 10, loss 0.2500\n"
    )


def test_the_trainer_reports_what_it_shows():
    from clients.progress import Steps
    from trainer.progress import Report as TrainingReport

    assert isinstance(TrainingReport(1, 2, {"loss": 0.0}, 0.1, 1, 1.0, 0.0), Steps)
