"""A dry run says what a backfill then does, and keeps nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.jobs import measure

from .conftest import Running, Service, ndjson, pair, pairs

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def forecast(service: Service, body: bytes, name: str) -> dict[str, Any]:
    address = f"/datasets/{name}/backfill"
    answer = await service.client.post(address, content=body, params={"dry_run": True})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def upload() -> bytes:
    items = pairs(60, "Fred")
    items += [
        items[3],
        pair(70, "Fred", first=""),
        pair(70, "Fred", first=""),
        pair(71, "Fred", second="a\0b"),
    ]
    items += [{"rejected": {"example_id": "r", "reason": "example", "message": "2 fields"}}]
    items.append(pair(80, "Fred", first="word " * 1500))
    return ndjson(items, parser="udpipe/english-ewt")


@pytest.mark.slow
async def test_the_job_does_what_the_forecast_said(shared: Service) -> None:
    body = upload()
    expected = await forecast(shared, body, "foretold")
    assert (await shared.client.get("/jobs", params={"dataset": "foretold"})).json() == []
    counts = (await shared.backfill(body, "foretold"))["counts"]
    dropped = {"empty_text": 2, "invalid_character": 1, "example": 1}
    assert expected["examples"] == counts["examples"] == 66
    assert expected["dropped"] == dropped
    assert counts["dropped"] == dropped | {"sentence_too_long": 1}  # known only to the parser
    assert expected["to_store"] == counts["stored"] + 1
    assert expected["already_stored"] == counts["already_stored"] == 1
    assert expected["texts"]["new"] == counts["parses"]["done"] + 1
    assert expected["texts"]["total"] == 122


@pytest.mark.slow
async def test_after_a_backfill_nothing_is_left_to_store(shared: Service) -> None:
    items = [*pairs(4, "Ruth"), *[pair(5, "Ruth", first="word " * 1500)] * 2]
    body = ndjson(items, parser="udpipe/english-ewt")
    counts = (await shared.backfill(body, "finished"))["counts"]
    again = await forecast(shared, body, "finished")
    assert again["dropped"] == counts["dropped"] == {"sentence_too_long": 2}
    assert (again["to_store"], again["already_stored"], again["sample"]) == (0, 4, None)
    costs = ("parse_seconds", "store_seconds", "parse_bytes", "store_bytes")
    assert again["estimate"] == {"workers": 2, **dict.fromkeys(costs, 0)}


@pytest.mark.slow
async def test_examples_that_changed_under_their_ids_are_named(shared: Service) -> None:
    items = pairs(5, "Vera")
    first = await shared.backfill(ndjson(items), "changing")
    items[3]["example"]["labels"]["label"] = None
    items[4]["example"]["segments"][0]["text"] = "Another premise."
    body = ndjson([*items, pair(9, "Vera")])
    foretold = await forecast(shared, body, "changing")
    second = await shared.backfill(body, "changing")
    third = await shared.backfill(body, "changing")
    (warning,) = second["warnings"]
    assert warning.startswith("2 examples, such as pair-3, pair-4, have ids that dev/en of dataset")
    assert foretold["warnings"] == [warning]
    assert first["warnings"] == third["warnings"] == []
    assert (second["counts"]["stored"], third["counts"]["already_stored"]) == (3, 6)


@pytest.mark.slow
async def test_what_is_stored_and_parsed_already_costs_nothing(shared: Service) -> None:
    await shared.backfill(ndjson(pairs(20, "Gina")), "partly")
    more = await forecast(shared, ndjson(pairs(30, "Gina")), "partly")
    assert (more["to_store"], more["already_stored"]) == (10, 20)
    elsewhere = await forecast(shared, ndjson(pairs(30, "Gina")), "elsewhere")
    texts = elsewhere["texts"]
    assert texts["total"] == 60
    assert texts["already_parsed"] == 30  # 20 hypotheses, each two with one premise
    assert texts["distinct"] - texts["already_parsed"] == texts["new"] == 15


async def test_the_estimate_comes_from_a_sample_that_is_parsed_and_thrown_away(
    shared: Service,
) -> None:
    before = len(shared.store.sql("select key from parses").fetchall())
    found = await forecast(shared, ndjson(pairs(40, "Hugo")), "sampled")
    assert len(shared.store.sql("select key from parses").fetchall()) == before
    assert "sampled" not in {info.name for info in shared.store.datasets()}
    sample, estimate = found["sample"], found["estimate"]
    assert 1 <= sample["parses"] <= found["texts"]["new"]
    parse_seconds = found["texts"]["new"] * sample["seconds_per_parse"] / estimate["workers"]
    assert estimate["parse_seconds"] == pytest.approx(parse_seconds)
    assert estimate["store_bytes"] == round(found["to_store"] * sample["bytes_per_row"])
    assert sample["bytes_per_row"] > 0


@pytest.mark.slow
async def test_a_model_that_cannot_be_loaded_is_the_error_of_the_job(
    running: Running, tmp_path: Path
) -> None:
    # It begins as a model does, so that only loading it tells.
    (tmp_path / "bad.udpipe").write_bytes(b"\x12morphodita_parsito" + b"x" * 1_000)
    async with running(models_dir=tmp_path) as service:
        body = ndjson(pairs(2), parser="udpipe/bad")
        answer = await service.client.post(
            "/datasets/bad/backfill", content=body, params={"dry_run": True}
        )
        job = await service.backfill(body, "bad")
    assert str(tmp_path / "bad.udpipe") in answer.json()["message"]
    for name in ("error_type", "message"):
        assert answer.json()[name] == job["error"][name]


async def test_a_sample_that_takes_too_long_is_a_deadline(
    shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "TIMEOUT_SECONDS", 0.01)
    answer = await shared.client.post(
        "/datasets/slow/backfill", content=ndjson(pairs(2)), params={"dry_run": True}
    )
    assert (answer.status_code, answer.json()["error_type"]) == (504, "deadline")
    assert "stopped after 0.01 s" in answer.json()["message"]
