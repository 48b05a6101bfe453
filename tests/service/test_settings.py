"""Settings: from the environment, with defaults that fit a laptop."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from service.settings import Settings, read_settings
from syntax.errors import SpecError


def test_every_field_says_what_it_does() -> None:
    silent = [name for name, field in Settings.model_fields.items() if not field.description]
    assert silent == []


def test_fields_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARSEBANK_STORE", "s3://bucket/x")
    monkeypatch.setenv("PARSEBANK_MAX_ITEMS", "7")
    monkeypatch.setenv("PARSEBANK_PARSERS", '{"en": "udpipe/english-ewt"}')
    settings = Settings()
    assert settings.max_items == 7
    assert settings.parsers == {"en": "udpipe/english-ewt"}
    assert not settings.is_local_store
    assert settings.state_dir == Path("parsebank-state")


def test_job_state_lies_in_a_local_store_unless_told_otherwise(tmp_path: Path) -> None:
    assert Settings(store=str(tmp_path)).state_dir == tmp_path / "state"
    assert Settings(store=str(tmp_path), state_dir=tmp_path / "x").state_dir == tmp_path / "x"


@pytest.mark.parametrize(
    "fields",
    [
        {"max_items": 0},
        {"workers": 0},
        {"port": 70000},
        {"request_deadline_seconds": 0},
        {"log_level": "loud"},
        {"job_text_seconds": float("inf")},
        {"max_itmes": 3},
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings(**fields)


def test_a_wrong_variable_is_named_also_where_it_is_overridden(monkeypatch) -> None:
    monkeypatch.setenv("PARSEBANK_WORKERS", "many")
    for given in ({}, {"workers": 1}):
        with pytest.raises(SpecError, match=r"PARSEBANK_WORKERS.*'many'.*integer"):
            read_settings(**given)
    monkeypatch.setenv("PARSEBANK_WORKERS", "1")
    monkeypatch.setenv("PARSEBANK_PARSERS", "udpipe")
    with pytest.raises(SpecError, match=r"parsers.*JSON"):
        read_settings()


def test_a_service_link_of_kubernetes_is_no_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARSEBANK_PORT", "tcp://10.96.0.17:8000")
    assert Settings().port == Settings.model_fields["port"].default
    monkeypatch.setenv("PARSEBANK_PORT", "8010")
    assert Settings().port == 8010
