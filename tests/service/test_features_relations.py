"""``/features`` with relations beyond distance, depth and ancestor."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest

from syntax.matrices import MATRICES

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = ("sgnet_mask(variant=as_released)", "lca", "gate_weights.v1", "subtree_size")
BODY = {
    "examples": [{"segments": [{"text": "Who can't fly?"}]}],
    "matrices": list(NAMES),
    "joint_root": False,
}


def expected(name: str, example: dict[str, Any]) -> list[Any]:
    special = {"special": example["special_tokens_mask"]}
    reads = special if "special" in MATRICES.columns(name) else {}
    return MATRICES[name](np.array(example["parents"]), **reads).tolist()


async def test_relations_keep_their_requested_names(
    client: httpx.AsyncClient,
) -> None:
    answer = (await client.post("/features", json=BODY)).json()
    (example,) = answer["examples"]
    assert answer["options"]["matrices"] == list(NAMES)
    arrow = await client.post("/features?format=arrow", json=BODY)
    (row,) = pa.ipc.open_stream(arrow.content).read_all().to_pylist()
    for name in NAMES:
        assert example[name] == row[name] == expected(name, example)
    assert example[NAMES[0]][0] == [False] * example["length"]


@pytest.mark.parametrize("mark", [",", ";"])
async def test_commas_part_names_and_settings(client: httpx.AsyncClient, mark: str) -> None:
    name = f"sla_mask(threshold=1{mark}variant=as_released)"
    body = {**BODY, "matrices": [name]}
    (example,) = (await client.post("/features", json=body)).json()["examples"]
    query = {"matrices": f"{name},depth", "joint_root": "false"}
    answer = (await client.get(f"/features/{example['key']}", params=query)).json()
    assert example[name] == answer["examples"][0][name]
    assert answer["examples"][0][name] == expected(name, answer["examples"][0])


async def test_settings_that_are_none_are_a_contradiction(client: httpx.AsyncClient) -> None:
    body = {**BODY, "matrices": ["sla_mask(treshold=4)"]}
    response = await client.post("/features", json=body)
    assert (response.status_code, response.json()["error_type"]) == (422, "spec")
    assert "threshold=3" in response.json()["message"]
