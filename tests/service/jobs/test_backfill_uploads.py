"""What is refused at the door, and that nothing of it is kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.jobs.staging import LONGEST, SMALLEST_PART

from .conftest import SPEC, Running, Service, ndjson, pairs


def nothing_kept(service: Service) -> bool:
    return not any((service.settings.state_dir / "staging").iterdir())


async def refused(service: Service, content: Any, name: str = "pairs") -> tuple[int, Any]:
    answer = await service.client.post(f"/datasets/{name}/backfill", content=content)
    assert nothing_kept(service)
    assert (await service.client.get("/jobs")).json() == []
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("body", "error_type", "message"),
    [
        (b"", "spec", "the body is empty"),
        (b"\n \n", "spec", "the body is empty"),
        (ndjson([]), "spec", "no examples"),
        (ndjson([])[:-10], "spec", "line 1"),
        (b"{}\n", "spec", "line 1"),
        (ndjson(pairs(2)) + b'{"example": \n', "example", "line 4"),
        (ndjson([*pairs(1), {"sample": {}}]), "example", "line 3"),
        (ndjson(pairs(2), fields=["a"]), "example", "line 2"),
        (ndjson(pairs(50)) + b"\xff\xfe\n" + ndjson(pairs(3)), "example", "line 52"),
        (ndjson(pairs(1), lang="en/us"), "spec", "lang"),
        (ndjson(pairs(1), mode="gold", parser="udpipe/english-ewt"), "spec", "parser"),
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


async def test_bad_line_after_many_shards_removes_the_upload(running: Running) -> None:
    async with running(job_workers=0, job_shard_segments=2) as service:
        status, answer = await refused(service, ndjson(pairs(20)) + b"nonsense\n")
        assert status == 422
        assert answer["detail"]["line"] == 22


async def test_a_line_beyond_the_limit_is_refused(running: Running) -> None:
    async with running(job_workers=0, job_max_line_bytes=2000) as service:
        long = pairs(1)
        long[0]["example"]["segments"][0]["text"] = "a" * 3000
        status, answer = await refused(service, ndjson(long))
        assert (status, answer["detail"]["line"]) == (422, 2)


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


@pytest.mark.parametrize("name", ["..", "a b", "%2e%2e%2fetc", "-x", "ä"])
async def test_a_dataset_name_that_is_no_folder_is_refused(running: Running, name: str) -> None:
    async with running(job_workers=0) as service:
        answer = await service.client.post(f"/datasets/{name}/backfill", content=ndjson(pairs(1)))
        assert answer.status_code in (404, 422)
        assert nothing_kept(service)


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
