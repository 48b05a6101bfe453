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
from syntax.errors import SpecError
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
    put(settings, "english-ewt")
    return settings


def put(settings: Settings, bundled: str) -> None:
    """Make a bundled model the file of ``udpipe/mine``."""
    assert settings.models_dir is not None
    path = find_parser(settings, f"udpipe/{bundled}").path
    shutil.copyfile(path, settings.models_dir / "mine.udpipe")


def request_of(settings: Settings) -> JobRequest:
    """A job with ``udpipe/mine`` as it is now."""
    identity = parser_identity(settings, "raw", "udpipe/mine")
    return replace(REQUEST, parser=identity.name, parser_fingerprint=identity.fingerprint)


def has_lemmas(cache: ToolCache, request: JobRequest) -> bool:
    """Whether a job's parses have lemmas: `english-ewt-full` makes them, `english-ewt` none."""
    (parse,) = cache.analyser(request).analyse([SEGMENT])
    assert isinstance(parse, Parse)
    return any(lemma not in (None, "_") for lemma in parse.lemma or ())


def test_a_model_replaced_under_its_name_is_loaded_anew(
    settings: Settings, store: FeatureStore
) -> None:
    cache = ToolCache(settings, store)
    assert not has_lemmas(cache, request_of(settings))
    put(settings, "english-ewt-full")
    assert has_lemmas(cache, request_of(settings))


def test_a_model_replaced_between_check_and_first_parse_is_refused(
    settings: Settings, store: FeatureStore
) -> None:
    cache, request = ToolCache(settings, store), request_of(settings)
    analyser = cache.analyser(request)
    put(settings, "english-ewt-full")
    with pytest.raises(SpecError, match=r"'udpipe/mine' is .* now and was"):
        analyser.analyse([SEGMENT])
