"""Errors carry a stable name, a message and facts, also from one process to another."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from syntax import errors
from syntax.errors import (
    DROP_REASONS,
    ConlluError,
    MissingExtraError,
    ParsebankError,
    SentenceTooLongError,
    StoreBusyError,
    UnknownParserError,
    drop_reason,
)


def all_errors(base: type[ParsebankError] = ParsebankError) -> Iterator[type[ParsebankError]]:
    yield base
    for error in base.__subclasses__():
        yield from all_errors(error)


ERRORS = [error for error in all_errors() if error.__module__ == errors.__name__]


@pytest.mark.parametrize(
    ("error", "name", "builtin"),
    [
        (SentenceTooLongError, "sentence_too_long", ValueError),
        (ConlluError, "conllu", ValueError),
        (UnknownParserError, "unknown_parser", LookupError),
        (StoreBusyError, "store_busy", RuntimeError),
        (MissingExtraError, "missing_extra", ImportError),
        (ParsebankError, "parsebank", Exception),
    ],
)
def test_errors_inherit_builtins_and_have_stable_types(error, name, builtin) -> None:
    assert error.error_type == name
    assert issubclass(error, builtin)


def test_no_two_errors_share_a_name() -> None:
    names = [error.error_type for error in ERRORS]
    assert len(names) == len(set(names)) > 30


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_survives_pickling(error: type[ParsebankError]) -> None:
    sent = error("what came", limit=5, known=["a"])
    received = pickle.loads(pickle.dumps(sent))
    assert type(received) is error
    assert str(received) == received.message == "what came"
    assert received.detail == {"limit": 5, "known": ["a"]}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://ada:s3cret@store:9000/b", "http://ada:***@store:9000/b"),
        ("postgresql+psycopg://:s3cret@host/db", "postgresql+psycopg://:***@host/db"),
        ("https://ada:s3c@ret@host", "https://ada:***@host"),
        ("http://[::1]:9000/a@b:c", "http://[::1]:9000/a@b:c"),
        ("http://store:9000/b?at=x@y", "http://store:9000/b?at=x@y"),
    ],
)
def test_no_error_shows_the_password_of_a_url(url: str, shown: str) -> None:
    error = ParsebankError(f"no answer from {url} and '{url}'", url=url, tries=3)
    assert str(error) == error.message == f"no answer from {shown} and '{shown}'"
    assert error.detail == {"url": shown, "tries": 3}
    assert repr(url) not in repr(error) or url == shown


@pytest.mark.parametrize("error", ERRORS)
def test_the_hierarchy_in_the_docstring_lists_every_error(error: type[ParsebankError]) -> None:
    assert errors.__doc__ is not None
    assert error.__name__ in errors.__doc__
    assert error.__doc__


@pytest.mark.parametrize("cls", [*all_errors(errors.InputError)], ids=lambda cls: cls.__name__)
def test_every_input_error_has_a_listed_reason(cls: type[errors.InputError]) -> None:
    assert drop_reason(cls("what came")) in DROP_REASONS


def test_a_listed_error_is_its_own_reason() -> None:
    assert drop_reason(errors.NoLabelError("none")) == "no_label"
    assert drop_reason(errors.WorkerDiedError("died")) == "worker_died"


def test_an_unlisted_error_counts_as_its_base_class() -> None:
    class OddExampleError(errors.ExampleError):
        pass

    assert drop_reason(OddExampleError("odd")) == "example"
