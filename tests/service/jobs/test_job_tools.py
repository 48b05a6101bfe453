"""`ToolCache` lives as long as its worker; models change under it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from featurestore import FeatureStore, open_store
from service.jobs.records import JobRequest
from service.jobs.tools import ToolCache, parser_identity
from service.parsers import find_parser
from service.settings import Settings
from syntax.errors import ModelLoadError, SpecError
from syntax.examples import Segment
from syntax.trees.parse import Parse

from .board import REQUEST

SEGMENT = Segment(text="The cats were sleeping.")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FeatureStore]:
    with open_store(tmp_path / "store") as store:
        yield store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """With a model of its own, ``udpipe/mine``."""
    (tmp_path / "models").mkdir()
    settings = Settings(models_dir=tmp_path / "models")
    path = find_parser(settings, "udpipe/english-ewt").path
    shutil.copyfile(path, tmp_path / "models/mine.udpipe")
    return settings


def request_of(settings: Settings) -> JobRequest:
    """A job with ``udpipe/mine`` as it is now."""
    identity = parser_identity(settings, "raw", "udpipe/mine")
    return replace(REQUEST, parser=identity.name, parser_fingerprint=identity.fingerprint)


def test_a_model_replaced_under_its_name_is_loaded_anew(
    settings: Settings, store: FeatureStore
) -> None:
    cache = ToolCache(settings, store)
    (parse,) = cache.analyser(request_of(settings)).analyse([SEGMENT])
    assert isinstance(parse, Parse)
    path = settings.models_dir / "mine.udpipe"
    path.write_bytes(path.read_bytes()[:1_000_000])  # looks like a model, and cannot be loaded
    with pytest.raises(ModelLoadError):
        next(iter(cache.analyser(request_of(settings)).analyse([SEGMENT])))


def test_a_model_replaced_between_check_and_first_parse_is_refused(
    settings: Settings, store: FeatureStore
) -> None:
    cache, request = ToolCache(settings, store), request_of(settings)
    analyser = cache.analyser(request)
    with (settings.models_dir / "mine.udpipe").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(SpecError, match=r"'udpipe/mine' is .* now and was"):
        analyser.analyse([SEGMENT])
