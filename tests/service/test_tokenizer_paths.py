"""Which tokenizers a request may name, and what an answer tells of other folders."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clients.client.client import Client
from service.settings import Settings
from service.tokenizer_cache import TokenizerCache
from service.tokenizers import bundled_tokenizers
from syntax.errors import UnknownTokenizerError

from .serving import upload

BUNDLED = "parsebank-wordpiece-en"


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer below ``tmp_path / "allowed"``."""
    path = tmp_path / "allowed" / "mine"
    shutil.copytree(bundled_tokenizers()[BUNDLED], path)
    return path


async def tokenizer_of(client: Any, name: str) -> Any:
    answer = await client.post("/parse", json={"text": "It works.", "tokenizer": name})
    return answer.json()["tokenizer"] if answer.status_code == 200 else answer.json()["message"]


async def test_an_answer_does_not_tell_whether_a_folder_exists(
    serve: Callable[..., Any], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    names = [
        *(str(tmp_path / "elsewhere"), str(tmp_path / "nowhere"), "/", "/root"),
        *("~/elsewhere", "~/nowhere", "~nobody/x", "~no-such-user/x"),
        *("../elsewhere", "../nowhere", "./../allowed/../elsewhere"),
        f"{folder}/../../elsewhere",
    ]
    async with serve(tokenizers_dir=folder.parent) as client:
        answers = {name: await tokenizer_of(client, name) for name in names}
    told = {str(answer).replace(repr(name), "X") for name, answer in answers.items()}
    refusals = {message for message in told if "below the service's tokenizers_dir" in message}
    assert len(refusals) == 1
    # Of these, nothing tells but that they could be names on the hub.
    others = told - refusals
    assert len(others) <= 1
    assert all("HF_HUB_OFFLINE forbids the hub" in message for message in others)


async def test_folders_below_the_configured_one_are_named_from_there_or_in_full(
    serve: Callable[..., Any], folder: Path
) -> None:
    async with serve(tokenizers_dir=folder.parent, job_workers=0) as client:
        bundled = await tokenizer_of(client, BUNDLED)
        for name in ("mine", "./mine", str(folder), "mine/"):
            found = await tokenizer_of(client, name)
            assert found == bundled | {"name": name}
        job = await client.post(
            "/datasets/d/backfill",
            content=upload("It works.", tokenizer="mine"),
        )
        assert job.status_code == 202, job.text
        assert job.json()["tokenizer"] == str(folder.resolve())


async def test_without_a_configured_folder_only_names_are_taken(
    serve: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    async with serve() as client:
        assert "tokenizers_dir" in await tokenizer_of(client, str(folder))
        # A folder beside the service is not what a name means.
        assert "HF_HUB_OFFLINE forbids the hub" in await tokenizer_of(client, "mine")


async def test_the_services_own_tokenizer_may_lie_anywhere(
    serve: Callable[..., Any], folder: Path
) -> None:
    async with serve(tokenizer=str(folder)) as client:
        assert (await tokenizer_of(client, str(folder)))["name"] == str(folder)


def test_a_service_in_this_process_takes_every_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("PARSEBANK_TOKENIZERS_DIR", str(tmp_path / "other"))
    monkeypatch.chdir(folder.parent)
    with Client.embedded(str(tmp_path / "store"), workers=1) as client:
        for name in (str(folder), "mine", "~/mine"):
            result = client.parse("It works.", tokenizer=name)
            assert result.tokenizer is not None


def test_offline_asks_no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    cache = TokenizerCache(Settings(store=str(tmp_path), offline=True))
    with pytest.raises(UnknownTokenizerError, match="PARSEBANK_OFFLINE forbids the hub"):
        cache.get("somebody/nothing-like-it")


def test_a_replaced_tokenizer_is_read_again_and_another_not(folder: Path, tmp_path: Path) -> None:
    cache = TokenizerCache(Settings(store=str(tmp_path), tokenizers_dir=folder.parent))
    first = cache.get("mine")
    assert cache.cached("mine") is cache.get("mine") is first
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["max_input_chars_per_word"] = 3
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert cache.cached("mine") is None
    second = cache.get("mine")
    assert second.fingerprint != first.fingerprint
    assert cache.cached("mine") is second
    shutil.rmtree(folder)
    with pytest.raises(UnknownTokenizerError):
        cache.get("mine")


@pytest.mark.parametrize("file", ["tokenizer.json", "tokenizer_config.json", "vocab.txt"])
async def test_a_pipe_in_a_folder_is_refused_before_anything_is_opened(
    serve: Callable[..., Any], folder: Path, file: str
) -> None:
    (folder / file).unlink(missing_ok=True)
    os.mkfifo(folder / file)
    async with serve(tokenizers_dir=folder.parent) as client:
        answer = await client.post("/parse", json={"text": "It works.", "tokenizer": "mine"})
    assert (answer.status_code, answer.json()["error_type"]) == (422, "unknown_tokenizer")
    assert f"{file} is not a regular file, but a pipe" in answer.json()["message"]


async def test_names_and_files_that_the_system_refuses_are_the_callers(
    serve: Callable[..., Any], folder: Path
) -> None:
    (folder / "tokenizer_config.json").unlink(missing_ok=True)
    (folder / "tokenizer_config.json").mkdir()
    async with serve(tokenizers_dir=folder.parent) as client:
        for name in ("mine", "a" * 300, "a/" * 2_500):
            answer = await client.post("/parse", json={"text": "It works.", "tokenizer": name})
            assert (answer.status_code, answer.json()["error_type"]) == (422, "unknown_tokenizer")


@pytest.mark.parametrize("content", ["{", "[]", b"\xff"])
@pytest.mark.parametrize("file", ["config.json", "special_tokens_map.json"])
def test_a_file_that_tells_of_a_tokenizer_must_be_readable(
    folder: Path, tmp_path: Path, file: str, content: str | bytes
) -> None:
    config = {"tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    cache = TokenizerCache(Settings(store=str(tmp_path), tokenizers_dir=folder.parent))
    with pytest.raises(UnknownTokenizerError, match=file):
        cache.get("mine")
