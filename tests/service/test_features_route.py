"""``POST /features`` and ``GET /features/{key}``: the contract, in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import httpx
import numpy as np
import pyarrow as pa
import pytest

from clients.client.features import FeatureOptions, StoredOptions
from featurestore import open_store
from featurestore.tables.encode.blobs import decode_ancestor, decode_depth, decode_distance
from service.routes.feature_schemas import FeatureQuery, FeaturesAnswer, FeaturesRequest
from service.settings import Settings
from syntax.batches import MAX_LENGTH, AssemblySpec
from syntax.matrices import MATRICES
from syntax.options import options_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENIZER = "parsebank-wordpiece-en"
GUIDE = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
PAIR = {"segments": [{"text": "Who can't fly?"}, {"text": "Time flies. It's late."}]}
Json = dict[str, Any]


async def ask(client: httpx.AsyncClient, *examples: Json, **options: Any) -> list[Json]:
    response = await client.post("/features", json={"examples": list(examples), **options})
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return list(answer["examples"])


def single(text: str, **fields: Any) -> Json:
    return {"segments": [{"text": text, **fields}]}


async def test_answers_are_as_the_schema_says(client: httpx.AsyncClient) -> None:
    body = {"examples": [PAIR, single(""), single("Yes \u200b")], "max_length": 16}
    response = await client.post("/features", json=body)
    FeaturesAnswer.model_validate_json(response.content, strict=True)
    answer = response.json()
    assert answer["tokenizer"]["name"] == TOKENIZER
    assert [parser["name"] for parser in answer["parsers"]] == ["parsebank/english"]
    assert answer["options"]["max_length"] == 16
    first = answer["examples"][0]
    described = FeaturesAnswer.model_json_schema()["$defs"]["ExampleAnswer"]["properties"]
    assert first.keys() == described.keys()
    positions = len(first["input_ids"])
    assert positions == first["length"] == 16
    assert [len(row) for row in first["distance"]] == [positions] * positions
    assert first["key"].split(",") == [segment["key"] for segment in first["segments"]]


async def test_key_is_that_of_parse(client: httpx.AsyncClient) -> None:
    text = "One text, one key."
    (example,) = await ask(client, single(text))
    (item,) = (await client.post("/parse", json={"text": text})).json()["items"]
    assert (item["key"], item["cached"]) == (example["key"], True)
    assert example["segments"][0]["cached"] is False


async def test_modes_hold_for_segments_that_have_none(client: httpx.AsyncClient) -> None:
    text = "One went home.\n\nTwo stayed."
    raw, sentence, own = await ask(
        client, single(text, mode="raw"), single(text), single(text, mode="raw"), mode="sentence"
    )
    assert max(raw["sentence_ids"]) == max(own["sentence_ids"]) == 1
    assert max(sentence["sentence_ids"]) == 0
    tokens = {"segments": [{"tokens": ["New York", "is"], "mode": "pretokenized"}]}
    (words,) = await ask(client, tokens, mode="sentence")
    assert words["segments"][0]["text"] == "New York is"
    assert max(words["word_ids"]) == 1


async def test_a_mode_that_does_not_fit_is_the_error_of_its_example(client) -> None:
    good, bad = await ask(client, single("Fine."), single("No.", mode="pretokenized"))
    assert "error" not in good
    assert bad["error"]["error_type"] == "spec"


async def test_special_tokens_and_truncation(client: httpx.AsyncClient) -> None:
    (long,) = await ask(client, PAIR, max_length=None)
    first, second = (segment["length"] for segment in long["segments"])
    (cut,) = await ask(client, PAIR, max_length=first + 4, truncation="only_second")
    assert (long["truncated"], cut["truncated"]) == (False, True)
    assert long["length"] == first + second + 3
    assert [segment["kept"] for segment in cut["segments"]] == [first, 1]
    assert [segment["length"] for segment in cut["segments"]] == [first, second]
    assert cut["special_tokens_mask"] == [True, *[False] * first, True, False, True]
    assert cut["input_ids"] == [*long["input_ids"][: first + 3], long["input_ids"][-1]]
    texts = [segment["text"] for segment in cut["segments"]]
    spans = zip(cut["segment_ids"], cut["offset_mapping"], strict=True)
    pieces = [texts[segment][a:z] for segment, (a, z) in spans if segment >= 0]
    assert pieces == ["Who", "can", "'", "t", "fly", "?", "Time"]


async def test_padding_is_to_a_common_multiple(client: httpx.AsyncClient) -> None:
    short, long = await ask(client, single("Go!"), PAIR, padded=True, pad_to_multiple_of=8)
    size = len(short["input_ids"])
    assert long["length"] <= len(long["input_ids"]) == size
    assert size % 8 == 0
    assert sum(short["attention_mask"]) == short["length"]
    assert short["input_ids"][short["length"] :] == [0] * (size - short["length"])
    assert [len(row) for row in short["distance"]] == [size] * size


async def test_ndjson_has_the_same(client: httpx.AsyncClient) -> None:
    body = {"examples": [PAIR, single(""), single("Yes.")], "matrices": ["depth"]}
    whole = (await client.post("/features", json=body)).json()
    response = await client.post("/features", json=body, headers={"accept": "application/x-ndjson"})
    assert response.headers["content-type"] == "application/x-ndjson"
    head, *lines, done = map(json.loads, response.text.splitlines())
    assert head == {name: whole[name] for name in ("tokenizer", "parsers", "options")}
    assert done == {"done": {"items": 3, "failed": 1}}
    # Everything was stored by then.
    assert [without_cached(line) for line in lines] == [
        {"index": index, **without_cached(example)}
        for index, example in enumerate(whole["examples"])
    ]


def without_cached(example: Json) -> Json:
    segments = [{**segment, "cached": None} for segment in example.get("segments", [])]
    return {**example, "segments": segments}


@pytest.mark.parametrize("padded", [False, True])
async def test_arrow_has_the_same(client: httpx.AsyncClient, padded: bool) -> None:
    body = {
        "examples": [PAIR, single("", mode="raw"), single("Yes.")],
        "matrices": ["distance", "depth.v1", "ancestor"],
        "padded": padded,
    }
    await client.post("/features", json=body)
    whole = (await client.post("/features", json=body)).json()
    response = await client.post("/features?format=arrow", json=body)
    assert response.headers["content-type"] == "application/vnd.apache.arrow.stream"
    table = pa.ipc.open_stream(response.content).read_all()
    assert json.loads(table.schema.metadata[b"options"]) == whole["options"]
    for row, example in zip(table.to_pylist(), whole["examples"], strict=True):
        failed = example.pop("error", None)
        assert row.pop("error_type") == (failed and failed["error_type"])
        assert row.pop("error_message") == (failed and failed["message"])
        detail = row.pop("error_detail")
        assert (detail and json.loads(detail)) == (failed and failed["detail"])
        assert row.pop("index") >= 0
        assert comparable(row) == example | dict.fromkeys(row.keys() - example.keys())


def comparable(row: Json) -> Json:
    """A row with its matrices unpacked; nothing else is changed."""
    del row["distance_dtype"], row["depth_dtype"]
    if row["key"] is not None:
        row["distance"] = decode_distance(row["distance"]).tolist()
        row["depth"] = decode_depth(row["depth"], len(row["input_ids"])).tolist()
        row["ancestor"] = decode_ancestor(row["ancestor"]).tolist()
    return row


async def test_arrow_without_any_success(client: httpx.AsyncClient) -> None:
    response = await client.post("/features?format=arrow", json={"examples": [single("")]})
    (row,) = pa.ipc.open_stream(response.content).read_all().to_pylist()
    assert row["error_type"] == "empty_text"
    assert row["input_ids"] is row["distance"] is None


async def test_features_of_no_examples_are_empty(client: httpx.AsyncClient) -> None:
    for shape in ("json", "ndjson", "arrow"):
        for padded in (False, True):
            body = {"examples": [], "padded": padded}
            response = await client.post(f"/features?format={shape}", json=body)
            assert response.status_code == 200


async def test_a_name_that_is_no_text_comes_back_as_text(client: httpx.AsyncClient) -> None:
    body = json.dumps({"examples": [{**single("Yes."), "example_id": "\ud800x"}]})
    response = await client.post(
        "/features", content=body, headers={"content-type": "application/json"}
    )
    assert response.json()["examples"][0]["example_id"] == "\ufffdx"


@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ({}, "spec"),
        ({"examples": [{"segments": [{"text": "a", "tokens": ["a"]}]}]}, "spec"),
        ({"examples": [{"segments": [{}]}]}, "spec"),
        ({"examples": [{"segments": [{"text": "a", "typo": 1}]}]}, "spec"),
        ({"examples": [single("a")], "typo": 1}, "spec"),
        ({"examples": [single("a")], "max_length": 2**63}, "spec"),
        ({"examples": [single("a")], "truncation": "nope"}, "spec"),
        ({"examples": [single("a")], "padded": True, "pad_to_multiple_of": 1 << 30}, "spec"),
        ({"examples": [single("a")], "pad_to_multiple_of": 8}, "spec"),
        ({"examples": [single("a")], "policy": "nope"}, "unknown_name"),
        ({"examples": [single("a")], "matrices": ["nope"]}, "unknown_name"),
        ({"examples": [single("a")], "tokenizer": "/nope"}, "unknown_tokenizer"),
        ({"examples": [single("a")], "parser": "nope"}, "unknown_parser"),
        ({"examples": [single("a", lang="tlh")]}, "unknown_language"),
    ],
)
async def test_a_request_that_cannot_be_answered(client, body, error_type) -> None:
    response = await client.post("/features", json=body)
    assert (response.status_code, response.json()["error_type"]) == (422, error_type)


async def test_no_format_in_common(client: httpx.AsyncClient) -> None:
    body = {"examples": [single("a")]}
    response = await client.post("/features", json=body, headers={"accept": "text/x-conllu"})
    assert response.status_code == 406


async def test_stored_features_have_a_tag(client: httpx.AsyncClient) -> None:
    (example,) = await ask(client, PAIR)
    path = f"/features/{example['key']}"
    first = await client.get(path)
    assert first.json()["examples"][0]["input_ids"] == example["input_ids"]
    tag = first.headers["etag"]
    again = await client.get(path, headers={"if-none-match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert first.headers["cache-control"] == again.headers["cache-control"]
    others = [f"{path}?max_length=8", f"{path}?format=ndjson", path.partition(",")[0]]
    tags = {(await client.get(other)).headers["etag"] for other in others}
    assert len(tags | {tag}) == 4
    nowhere = await client.get(f"/features/{'0' * 32}", headers={"if-none-match": "*"})
    assert nowhere.status_code == 404
    changed = await client.get(f"{path}?policy=chain", headers={"if-none-match": tag})
    assert changed.status_code == 200


async def test_query_parameters_are_the_options(client: httpx.AsyncClient) -> None:
    (example,) = await ask(client, PAIR)
    query = "max_length=&matrices=depth,ancestor&joint_root=false&separator_edge=none&policy=none"
    answer = (await client.get(f"/features/{example['key']}?{query}")).json()
    assert answer["options"] == {
        "max_length": None,
        "policy": "none",
        "joint_root": False,
        "separator_edge": "none",
        "truncation": "longest_first",
        "truncation_tie": "fast",
        "pad_to_multiple_of": 1,
        "matrices": ["depth", "ancestor"],
        "padded": False,
    }
    assert "distance" not in answer["examples"][0]
    bare = (await client.get(f"/features/{example['key']}?matrices=")).json()
    assert bare["options"]["matrices"] == []


@pytest.mark.parametrize(
    ("path", "status", "error_type"),
    [
        ("KEY," + "0" * 32, 404, "unknown_key"),
        ("nope", 422, "spec"),
        ("KEY,", 422, "spec"),
        ("KEY?typo=1", 422, "spec"),
        (f"KEY?max_length={2**63}", 422, "spec"),
        ("KEY?max_length=2", 422, "spec"),
        ("KEY?max_length=3&truncation=none", 422, "spec"),
        ("KEY?policy=nope", 422, "unknown_name"),
        ("KEY?tokenizer=/nope", 422, "unknown_tokenizer"),
    ],
)
async def test_unknown_stored_features_are_404(client, path, status, error_type) -> None:
    (example,) = await ask(client, PAIR)
    response = await client.get(f"/features/{path.replace('KEY', example['key'])}")
    assert (response.status_code, response.json()["error_type"]) == (status, error_type)
    if error_type == "unknown_key":
        assert response.json()["detail"]["keys"] == ["0" * 32]


@pytest.mark.slow
async def test_segments_are_limited(serve: Callable[..., Any]) -> None:
    async with serve(max_items=3, max_matrix_pieces=12, max_matrix_cells=200) as client:
        body = {"examples": [PAIR, PAIR]}
        refused = await client.post("/features", json=body)
        assert (refused.status_code, refused.json()["detail"]["limit"]) == (422, 3)
        small, large, last = await ask(
            client,
            single("Go!"),
            single("It is far too long for a matrix, is it not?"),
            single("Go!"),
        )
        assert large["error"]["error_type"] == "text_too_long"
        assert "error" not in small | last


@pytest.mark.slow
async def test_two_languages_in_one_example(serve: Callable[..., Any], data_dir: Path) -> None:
    pair = {"segments": [{"text": "Yes, of course."}, {"text": "Du chat, oui.", "lang": "fr"}]}
    models = data_dir / "models" / "udpipe"
    async with serve(models_dir=models, parsers={"fr": "udpipe/french-partut"}) as client:
        example, _ = await ask(client, pair, single("Oui.", lang="fr"), lang="en")
        settings: Settings = client.app.state.services.settings
        stored = await client.get(f"/features/{example['key']}")
    assert [segment["lang"] for segment in example["segments"]] == ["en", "fr"]
    parsers = {parser["fingerprint"]: parser["name"] for parser in stored.json()["parsers"]}
    assert [parsers[segment["parser"]] for segment in example["segments"]]
    with open_store(settings.store) as store:
        data = store.dataset("adhoc-2", split="parse", lang="en-fr")
        (parser,) = data.parsers.values()
        assert parser["name"].count("udpipe/") == 2
        (batch,) = data.stream(batch_size=1)
    assert np.array_equal(batch["input_ids"][0], example["input_ids"])


async def test_the_guide_names_every_field(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()["components"]["schemas"]
    missing = [name for name in described["FeaturesRequest"]["properties"] if name not in GUIDE]
    assert missing == []
    arrays = described["ExampleAnswer"]["properties"]
    assert [name for name in arrays if name not in GUIDE] == []


# Relations beyond distance, depth and ancestor.

RELATIONS = ("sgnet_mask(variant=as_released)", "lca", "gate_weights.v1", "subtree_size")
RELATED = {
    "examples": [{"segments": [{"text": "Who can't fly?"}]}],
    "matrices": list(RELATIONS),
    "joint_root": False,
}


def relation(name: str, example: dict[str, Any]) -> list[Any]:
    special = {"special": example["special_tokens_mask"]}
    reads = special if "special" in MATRICES.columns(name) else {}
    return MATRICES[name](np.array(example["parents"]), **reads).tolist()


async def test_relations_keep_their_requested_names(client: httpx.AsyncClient) -> None:
    answer = (await client.post("/features", json=RELATED)).json()
    (example,) = answer["examples"]
    assert answer["options"]["matrices"] == list(RELATIONS)
    arrow = await client.post("/features?format=arrow", json=RELATED)
    (row,) = pa.ipc.open_stream(arrow.content).read_all().to_pylist()
    for name in RELATIONS:
        assert example[name] == row[name] == relation(name, example)
    assert example[RELATIONS[0]][0] == [False] * example["length"]


@pytest.mark.parametrize("mark", [",", ";"])
async def test_commas_part_names_and_settings(client: httpx.AsyncClient, mark: str) -> None:
    name = f"sla_mask(threshold=1{mark}variant=as_released)"
    body = {**RELATED, "matrices": [name]}
    (example,) = (await client.post("/features", json=body)).json()["examples"]
    query = {"matrices": f"{name},depth", "joint_root": "false"}
    answer = (await client.get(f"/features/{example['key']}", params=query)).json()
    assert example[name] == answer["examples"][0][name]
    assert answer["examples"][0][name] == relation(name, answer["examples"][0])


# The options of the routes, and of the client, are those of assembly.

OPTIONS = {
    *("max_length", "policy", "joint_root", "separator_edge", "truncation", "truncation_tie"),
    "matrices",
}


@pytest.mark.parametrize(
    ("model", "keywords", "offered"),
    [
        (FeatureQuery, StoredOptions, OPTIONS),
        (FeaturesRequest, FeatureOptions, OPTIONS | {"pad_to_multiple_of"}),
    ],
)
async def test_options_have_the_type_and_default_of_assembly(model, keywords, offered) -> None:
    options, fields, hints = options_of(AssemblySpec), model.model_fields, get_type_hints(keywords)
    assert options.keys() & fields.keys() == options.keys() & hints.keys() == offered
    for name in offered - {"max_length", "matrices"}:
        assert fields[name].annotation == hints[name] == options[name].kind, name
        assert fields[name].default == options[name].default, name
    assert hints["max_length"] == options["max_length"].kind
    assert fields["max_length"].default == MAX_LENGTH
    assert tuple(fields["matrices"].default) == options["matrices"].default


async def test_options_of_a_request_reach_the_spec() -> None:
    given = {
        "max_length": None,
        "policy": "chain",
        "joint_root": False,
        "separator_edge": "none",
        "truncation": "only_first",
        "truncation_tie": "slow",
        "pad_to_multiple_of": 8,
    }
    request = FeaturesRequest(examples=[], padded=True, matrices=["depth", "depth"], **given)
    assert request.spec() == AssemblySpec(matrices=("depth",), **given)
