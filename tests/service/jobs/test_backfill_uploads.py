"""What is refused at the door, and that nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.jobs.staging import LONGEST, SMALLEST_PART

from .conftest import SPEC, Running, Service, ndjson, pairs


async def refused(service: Service, content: Any, name: str = "pairs") -> tuple[int, Any]:
    answer = await service.client.post(f"/datasets/{name}/backfill", content=content)
    assert not any((service.settings.state_dir / "staging").iterdir())
    assert (await service.client.get("/jobs")).json() == []
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("body", "error_type", "message"),
    [
        (b"", "spec", "the body is empty"),
        (ndjson([]), "spec", "no examples"),
        (b"{}\n", "spec", "line 1"),
        (ndjson(pairs(2), fields=["a"]), "example", "line 2"),
        (ndjson(pairs(50)) + b"\xff\xfe\n" + ndjson(pairs(3)), "example", "line 52"),
        (ndjson(pairs(1), mode="gold", parser="udpipe/english-ewt"), "spec", "parser"),
        (ndjson(pairs(1), mode="gold", long_sentences="split"), "spec", "gold"),
    ],
)
async def test_a_malformed_upload_is_422_with_its_line(
    running: Running, body: bytes, error_type: str, message: str
) -> None:
    async with running(job_workers=0) as service:
        status, answer = await refused(service, body)
        assert status == 422
        assert answer["error_type"] == error_type
        assert message in answer["message"]


@pytest.mark.parametrize("line", [b"nonsense\n", b"a" * 3_000])
async def test_bad_or_too_long_line_after_many_shards_removes_the_upload(
    running: Running, line: bytes
) -> None:
    limits = {"job_shard_segments": 2, "job_max_line_bytes": 2_000}
    async with running(job_workers=0, **limits) as service:
        status, answer = await refused(service, ndjson(pairs(20)) + line)
        assert (status, answer["detail"]["line"]) == (422, 22)


@pytest.mark.parametrize(
    ("change", "error_type"),
    [
        ({"parser": "udpipe/klingon"}, "unknown_parser"),
        ({"lang": "tlh"}, "unknown_language"),
        ({"tokenizer": "no/such/tokenizer/here"}, "unknown_tokenizer"),
    ],
)
async def test_unknown_names_are_refused_before_the_examples_are_read(
    running: Running, change: dict[str, Any], error_type: str
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield ndjson([], **change)
        raise AssertionError("the examples were read")

    async with running(job_workers=0) as service:
        status, answer = await refused(service, body())
        assert 400 <= status < 500
        assert answer["error_type"] == error_type


async def test_a_dataset_name_that_is_no_folder_is_refused(running: Running) -> None:
    async with running(job_workers=0) as service:
        for name in ("..", "a b", "%2e%2e%2fetc", "-x", "ä"):
            status, _ = await refused(service, ndjson(pairs(1)), name)
            assert status in (404, 422), name


async def test_a_long_upload_is_cut_into_shards_that_hold_it_all(running: Running) -> None:
    async with running(job_workers=0, job_shard_segments=100) as service:
        line = json.dumps(pairs(1)[0])

        async def body() -> AsyncIterator[bytes]:
            yield json.dumps({"spec": SPEC}).encode() + b"\r\n"
            for n in range(200):
                block = "".join(line.replace("pair-0", f"p{n}-{k}") + "\n" for k in range(10))
                yield block[:777].encode()
                yield block[777:].encode()

        answer = await service.client.post("/datasets/pairs/backfill", content=body())
        job = answer.json()
        assert job["counts"]["examples"] == 2000
        # All have one text, which keeps them together for as long as memory allows.
        shards = 40 // LONGEST
        assert shards <= job["shards"]["total"] <= shards + SMALLEST_PART
