"""``--engine`` and ``--scheduler``: for a service in this process, and for no other."""

from __future__ import annotations

import pytest
import typer

from clients.commands.connect import engine_settings, service_address

SCHEDULER = "tcp://head:8786"


@pytest.mark.parametrize(
    ("engine", "scheduler", "settings"),
    [
        (None, None, {}),
        ("local", None, {"engine": "local"}),
        ("dask", SCHEDULER, {"engine": "dask", "dask_scheduler": SCHEDULER}),
        (None, SCHEDULER, {"engine": "dask", "dask_scheduler": SCHEDULER}),
    ],
)
def test_engine_settings_hold_only_given_options(engine, scheduler, settings):
    assert engine_settings(engine, scheduler, None) == settings


def test_engine_options_are_refused_with_a_running_service():
    assert engine_settings(None, None, "http://host:8000") == {}
    with pytest.raises(typer.BadParameter, match=r"http://host:8000 was started with its own"):
        engine_settings(None, SCHEDULER, "http://host:8000")


def test_the_environment_names_a_service_unless_a_store_is_given(monkeypatch):
    monkeypatch.setenv("PARSEBANK_URL", "http://host:8000")
    assert service_address(None, None) == "http://host:8000"
    assert service_address(None, "./store") is None
    with pytest.raises(typer.BadParameter, match="not both"):
        service_address("http://host:8000", "./store")
