"""Second backfills, with another parser or limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.parsers import find_parser
from service.settings import Settings

from .conftest import Running, Service, ndjson, pair, pairs

pytestmark = pytest.mark.asyncio


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """A folder with the bundled model under another name, which makes another parser of it."""
    path = find_parser(Settings(), "udpipe/english-ewt").path
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "english-other.udpipe").symlink_to(path)
    return folder


def parsers(service: Service, table: str) -> dict[str, int]:
    query = f"select parser, count(*) from {table} group by 1"
    return dict(service.store.sql(query).fetchall())


@pytest.mark.slow
async def test_another_parser_parses_into_rows_of_its_own_beside_the_old(
    running: Running, other_model: Path
) -> None:
    async with running(models_dir=other_model) as service:
        first, second = [
            await service.backfill(ndjson(pairs(12), parser=f"udpipe/english-{name}"))
            for name in ("ewt", "other")
        ]
        for job in (first, second):
            assert job["counts"]["stored"] == 12
            assert job["counts"]["parses"] == {"done": 18, "reused": 6}
        both = {job["parser_fingerprint"] for job in (first, second)}
        assert len(both) == 2
        assert parsers(service, "parses") == dict.fromkeys(both, 18)
        assert parsers(service, "examples") == dict.fromkeys(both, 12)
        chosen = service.store.dataset("pairs", parser="udpipe/english-other")
        assert set(chosen.parsers) == {second["parser_fingerprint"]}
        again = await service.backfill(ndjson(pairs(12), parser="udpipe/english-ewt"))
        assert again["counts"]["already_stored"] == 12


@pytest.mark.slow
async def test_another_parser_than_the_present_one_is_warned_of_before_anything_is_parsed(
    running: Running, other_model: Path
) -> None:
    async with running(models_dir=other_model) as service:
        first = await service.backfill(ndjson(pairs(2), parser="udpipe/english-ewt"))
        other = {"parser": "udpipe/english-other"}

        async def foretold(body: bytes) -> dict[str, Any]:
            answer = await service.client.post(
                "/datasets/pairs/backfill", params={"dry_run": True}, content=body
            )
            return dict(answer.json())

        asked = await foretold(ndjson([], **other))  # the specification alone
        assert (asked["examples"], asked["sample"]) == (0, None)
        (warning,) = asked["warnings"]
        assert f"was parsed by udpipe/english-ewt ({first['parser_fingerprint'][:12]})" in warning
        assert "has it parsed by udpipe/english-other" in warning
        assert warning.endswith("to go on as before, give `parser=en:udpipe/english-ewt`")

        job = await service.submit(ndjson(pairs(2), split="test", **other))
        assert job["warnings"] == [warning]
        assert (await service.ended(job))["warnings"] == [warning]
        assert first["warnings"] == []
        for known in ({}, {"split": "test"}, other):  # either is present by now
            body = ndjson([], **{"parser": "en:udpipe/english-ewt,de:none"} | known)
            assert (await foretold(body))["warnings"] == []


@pytest.mark.slow
async def test_a_drop_whose_example_is_stored_since_is_not_listed(running: Running) -> None:
    items = [*pairs(3), pair(3, second="word " * 20), pair(4, first="")]

    async def listed(limit: int) -> dict[str, Any]:
        async with running(max_words_per_sentence=limit) as service:
            await service.backfill(ndjson(items))
            (dataset,) = (await service.client.get("/datasets")).json()
            (part,) = dataset["parts"]
            return {"rows": part["rows"], **part["dropped"]}

    assert await listed(15) == {"rows": 3, "sentence_too_long": 1, "empty_text": 1}
    assert await listed(30) == {"rows": 4, "empty_text": 1}
