"""The file of API keys, the ring that follows it, and the commands that write it; rates."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from clients.cli import build_app
from service.app import create_app
from service.security import keys as keys_module
from service.security.keys import PREFIX, ApiKey, KeyFile, KeyStore, digest
from service.security.rates import RateLimits, parse_rate
from service.settings import Settings
from syntax.errors import RateLimitError, SpecError, UnauthorizedError

ENTRY = {"name": "x", "sha256": "0" * 64, "created": "2026-01-01"}


def today() -> date:
    return datetime.now(UTC).date()


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json")


@pytest.fixture
def look_again(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the second pass that a ring waits between two looks at its file."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(
        keys_module, "time", SimpleNamespace(monotonic=lambda: clock.now, time=time.time)
    )

    def pass_second() -> None:
        clock.now += 1.5

    return pass_second


# The file


def test_a_key_is_random_recognisable_and_not_in_the_file(file: KeyFile) -> None:
    secrets = {file.add("ada")[0] for _ in range(20)}
    assert len(secrets) == 20
    assert all(re.fullmatch(PREFIX + "[A-Za-z0-9_-]{43}", secret) for secret in secrets)
    content = file.path.read_text()
    assert not any(secret in content or secret[3:] in content for secret in secrets)
    assert all(digest(secret) in content for secret in secrets)


def test_only_the_owner_can_read_the_file_and_no_draft_stays(file: KeyFile) -> None:
    file.add("ada")
    file.add("bob")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [*file.path.parent.iterdir()] == [file.path]


def test_what_is_written_is_read_back(file: KeyFile) -> None:
    file.add("ada", rate_limit="5/second", expires=date(2030, 1, 31))
    file.add("bob")
    first, second = file.read()
    assert (first.name, first.rate_limit, first.expires) == ("ada", "5/second", date(2030, 1, 31))
    assert (second.name, second.rate_limit, second.expires) == ("bob", None, None)
    assert first.created == today()
    assert (first.role, "role" in file.path.read_text()) == ("admin", False)


def test_a_failed_write_leaves_the_old_keys(file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, _ = file.add("ada")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        file.add("bob")
    assert [key.name for key in file.read()] == ["ada"]
    assert KeyStore(file.path).find(secret).name == "ada"
    assert [*file.path.parent.iterdir()] == [file.path]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"keys": [{}]}',
        '{"keys": [3]}',
        json.dumps({"keys": [{**ENTRY, "sha256": "short"}]}),
        json.dumps({"keys": [{**ENTRY, "created": "yesterday"}]}),
        json.dumps({"keys": [{**ENTRY, "x": 1}]}),
        json.dumps({"keys": [{**ENTRY, "name": "a\nb"}]}),
        json.dumps({"keys": [{**ENTRY, "rate_limit": "9"}]}),
    ],
)
def test_invalid_keys_file_stops_the_start(file: KeyFile, content: str) -> None:
    file.path.write_text(content)
    with pytest.raises(SpecError):
        create_app(Settings(store=str(file.path.parent / "store"), keys_file=file.path))


def test_a_missing_file_is_named_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="parsebank keys add"):
        KeyStore(tmp_path / "none.json")


# The ring


def test_key_store_finds_only_the_right_key(file: KeyFile) -> None:
    secret, key = file.add("ada")
    ring = KeyStore(file.path)
    assert ring.find(secret) == key
    for wrong in ("", PREFIX, secret[:-1], secret + "x", secret.lower() + "_", digest(secret)):
        with pytest.raises(UnauthorizedError):
            ring.find(wrong)


def test_two_keys_of_a_name_overlap_until_the_old_one_is_revoked(file, look_again) -> None:
    old, old_key = file.add("ada")
    ring = KeyStore(file.path)
    new, _ = file.add("ada")
    look_again()
    assert {ring.find(old).name, ring.find(new).name} == {"ada"}
    assert [key.id for key in file.revoke(old_key.id)] == [old_key.id]
    look_again()
    assert ring.find(new).name == "ada"
    with pytest.raises(UnauthorizedError):
        ring.find(old)


def test_a_revoked_name_loses_all_its_keys(file: KeyFile) -> None:
    file.add("ada")
    file.add("ada")
    file.add("bob")
    assert len(file.revoke("ada")) == 2
    assert [key.name for key in file.read()] == ["bob"]
    with pytest.raises(SpecError, match="bob"):
        file.revoke("ada")


def test_an_expired_or_disabled_key_is_refused(file: KeyFile) -> None:
    last_day, _ = file.add("ada", expires=today())
    over, _ = file.add("ada", expires=today() - timedelta(days=1))
    off, _ = file.add("ada")
    *others, last = file.read()
    file.write([*others, ApiKey.from_json({**last.to_json(), "disabled": True})])
    ring = KeyStore(file.path)
    assert ring.find(last_day).name == "ada"
    with pytest.raises(UnauthorizedError, match="expired"):
        ring.find(over)
    with pytest.raises(UnauthorizedError, match="disabled"):
        ring.find(off)


@pytest.mark.parametrize("damage", ["broken", "gone"])
def test_broken_keys_file_keeps_the_old_keys(file, look_again, damage) -> None:
    secret, _ = file.add("ada")
    ring = KeyStore(file.path)
    if damage == "broken":
        file.path.write_text("{")
    else:
        file.path.unlink()
    look_again()
    assert ring.find(secret).name == "ada"
    file.path.unlink(missing_ok=True)
    fresh, _ = file.add("bob")
    look_again()
    assert ring.find(fresh).name == "bob"
    with pytest.raises(UnauthorizedError):
        ring.find(secret)


# The rates


@pytest.mark.parametrize("text", ["", "x", "5", "0/minute", "5/fortnight", "5/second;9/hour"])
def test_invalid_rate_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="600/minute"):
        parse_rate(text)
    with pytest.raises(SpecError):
        create_app(Settings(store=str(tmp_path), rate_limit=text))


def test_a_window_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    clock = [now]
    monkeypatch.setattr(time, "time", lambda: clock[0])
    limits, rate = RateLimits(), parse_rate("2/minute")
    limits.hit(rate, "ada")
    clock[0] = now + 40
    limits.hit(rate, "ada")
    clock[0] = now + 59
    with pytest.raises(RateLimitError) as refused:
        limits.hit(rate, "ada")
    assert refused.value.detail["retry_after"] == 1
    clock[0] = now + 61
    assert limits.hit(rate, "ada").remaining == 0


def test_rate_limits_forget_idle_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, rate = RateLimits(), parse_rate("2/second")
    for number in range(1000):
        limits.hit(rate, f"10.0.0.{number}")
    assert len(limits) == 1000
    later = time.time() + 100
    monkeypatch.setattr(time, "time", lambda: later)
    limits.hit(rate, "10.1.1.1")
    assert len(limits) == 1


# The commands


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), ["keys", *arguments])


@pytest.fixture
def by_setting(file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> KeyFile:
    monkeypatch.setenv("PARSEBANK_KEYS_FILE", str(file.path))
    return file


@pytest.mark.slow
def test_a_key_made_by_the_command_opens_the_service(by_setting: KeyFile) -> None:
    limits = ("--rate-limit", "5/second", "--expires", "2099-12-31")
    made = run("add", "ada", "--role", "parse", *limits)
    assert made.exit_code == 0
    secret = made.stdout.strip()
    key = KeyStore(by_setting.path).find(secret)
    assert (key.name, key.rate_limit, key.expires) == ("ada", "5/second", date(2099, 12, 31))
    assert key.role == "parse"
    listed = run("list").output
    assert "parse" in listed
    assert key.id in listed
    assert secret not in listed
    assert json.loads(run("list", "--json").stdout)[0]["rate limit"] == "5/second"
    assert run("revoke", key.id).output.split() == ["revoked", key.id, "of", "ada"]
    assert by_setting.read() == []


def test_commands_say_what_is_wrong(file: KeyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARSEBANK_KEYS_FILE", raising=False)
    assert "--keys-file" in run("list").output
    path = str(file.path)
    add = ("add", "ada", "--keys-file", path)
    assert "is over" in run(*add, "--expires", "2001-01-01").output
    assert "not a rate limit" in run(*add, "--rate-limit", "often").output
    assert not file.path.exists()
    run(*add)
    unknown = run("revoke", "eve", "--keys-file", path)
    assert unknown.exit_code == 1
    assert "ada" in unknown.output
