"""The pipeline without HTTP: keys, cache, duplicates, pieces and matrices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from featurestore import open_store
from service.parsers import Limits, ParseInput, Parser
from service.pipeline.adhoc import AdhocDataset
from service.pipeline.inputs import parse_key
from service.pipeline.pipeline import FeaturePipeline
from service.pipeline.records import FeatureAnswer, FeatureRequest, ItemFeatures
from service.settings import Settings
from service.tokenizers import bundled_tokenizers
from service.workers.pools import WorkerPools
from syntax.errors import TextTooLongError, UnknownNameError
from syntax.matrices import tree_matrices
from syntax.subwords import POLICIES

TOKENIZER = "parsebank-wordpiece-en"
TEXT = "I can't untokenizable-things. It stops; \u200b really."


@asynccontextmanager
async def pipeline(tmp_path: Path, **fields: Any) -> AsyncIterator[tuple[FeaturePipeline, Any]]:
    settings = Settings(store=str(tmp_path / "store"), workers=1, **fields)
    with open_store(settings.store) as store:
        pools = WorkerPools(settings)
        adhoc = AdhocDataset(store, settings.commit_seconds)
        try:
            yield FeaturePipeline(settings, store, pools, adhoc), store
        finally:
            await pools.stop()
            adhoc.close()


def request(*texts: str, **fields: Any) -> FeatureRequest:
    return FeatureRequest(tuple(ParseInput("raw", text=text) for text in texts), **fields)


def parsed(answer: FeatureAnswer) -> list[ItemFeatures]:
    assert all(isinstance(item, ItemFeatures) for item in answer.items), answer.items
    return [item for item in answer.items if isinstance(item, ItemFeatures)]


async def test_a_duplicate_in_one_request_is_parsed_once(tmp_path: Path) -> None:
    async with pipeline(tmp_path) as (run, _):
        answer = await run.run(request(TEXT, "Other.", TEXT))
        items = parsed(answer)
        assert items[0].parse is items[2].parse
        assert [item.parse.text for item in items] == [TEXT, "Other.", TEXT]


async def test_without_store_nothing_is_kept(tmp_path: Path) -> None:
    async with pipeline(tmp_path) as (run, store):
        (item,) = parsed(await run.run(request(TEXT, store=False)))
        assert store.parses.get_many([item.key]) == {}
        (again,) = parsed(await run.run(request(TEXT)))
        assert not again.cached


async def test_modes_and_token_borders_are_part_of_the_key(english: Parser) -> None:
    inputs = [
        ParseInput("raw", text="a b"),
        ParseInput("sentence", text="a b"),
        ParseInput("pretokenized", tokens=("a", "b")),
        ParseInput("pretokenized", tokens=("a b",)),
        ParseInput("raw", text="a  b"),
        ParseInput("raw", text="á"),
        ParseInput("raw", text="a\u0301"),
    ]
    keys = [parse_key(english.identity, "en", item, Limits()) for item in inputs]
    keys.append(parse_key(english.identity, "de", inputs[0], Limits()))
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 for key in keys)


async def test_matrices_are_those_of_the_tree_over_pieces(tmp_path: Path) -> None:
    names = ("distance", "depth", "ancestor")
    async with pipeline(tmp_path) as (run, _):
        for policy in POLICIES:
            wanted = request(TEXT, tokenizer=TOKENIZER, policy=policy, matrices=names)
            (item,) = parsed(await run.run(wanted))
            assert item.pieces is not None
            expected = tree_matrices(item.pieces.parents, item.pieces.source)
            for name in names:
                assert np.array_equal(item.matrices[name], getattr(expected, name)), policy


async def test_matrices_that_would_fill_the_answer_are_refused_by_item(tmp_path: Path) -> None:
    fields = {"max_matrix_pieces": 6, "max_matrix_cells": 40}
    long = "one two three four five six seven eight"
    async with pipeline(tmp_path, **fields) as (run, _):
        answer = await run.run(request("It works.", long, "It works, so.", "It works."))
    assert len(parsed(answer)) == 4
    async with pipeline(tmp_path, **fields) as (run, _):
        wanted = request("It works.", long, "It works, so.", "It works.", matrices=("distance",))
        answer = await run.run(wanted)
    kinds = [isinstance(item, TextTooLongError) for item in answer.items]
    assert kinds == [False, True, False, True]


async def test_many_requests_load_a_tokenizer_once_and_failures_are_forgotten(tmp_path) -> None:
    async with pipeline(tmp_path, tokenizers_dir=tmp_path) as (run, _):
        wanted = request(TEXT, tokenizer=TOKENIZER)
        answers = await asyncio.gather(*(run.run(wanted) for _ in range(4)))
        assert len({id(answer.tokenizer) for answer in answers}) == 1
        folder = tmp_path / "later"
        with pytest.raises(UnknownNameError):
            await run.run(request(TEXT, tokenizer=str(folder)))
        folder.symlink_to(bundled_tokenizers()[TOKENIZER])
        answer = await run.run(request(TEXT, tokenizer=str(folder)))
        assert answer.tokenizer is not None
        assert answer.tokenizer.fingerprint == answers[0].tokenizer.fingerprint
