from __future__ import annotations

import json

import pytest

from clients.client.failures import (
    ServiceUnreachableError,
    answered_error,
    error_class,
    named_error,
)
from syntax import errors
from syntax.errors import OverloadedError, ParsebankError

OURS = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, ParsebankError)
]


@pytest.mark.parametrize("cls", OURS)
def test_every_named_error_comes_back_as_itself(cls):
    error = named_error({"error_type": cls.error_type, "message": "m", "detail": {"limit": 3}})
    assert type(error) is cls
    assert (error.message, error.detail) == ("m", {"limit": 3})


def test_service_unreachable_error_has_an_error_type():
    assert error_class("service_unreachable") is ServiceUnreachableError


def test_a_name_of_a_later_release_keeps_its_name_in_the_detail():
    error = named_error({"error_type": "quota_exceeded", "message": "m", "detail": None})
    assert type(error) is ParsebankError
    assert error.detail == {"error_type": "quota_exceeded"}


def test_errors_are_found_inside_and_outside_an_envelope():
    body = {"error_type": "spec", "message": "m", "detail": {}}
    for content in ({"error": body}, body):
        error = answered_error(422, {}, json.dumps(content).encode())
        assert type(error) is errors.SpecError


@pytest.mark.parametrize("content", [b"", b"<html>Bad gateway</html>", b"[1]", b'{"detail": "x"}'])
def test_error_of_a_foreign_server_quotes_its_body(content):
    error = answered_error(502, {}, content)
    assert type(error) is ParsebankError
    assert error.message == f"the server answered 502: {content.decode()}"


def test_retry_after_seconds_are_in_the_overload_error():
    error = answered_error(429, {"retry-after": "2"}, b"")
    assert isinstance(error, OverloadedError)
    assert error.detail["retry_after"] == 2.0


def test_retry_after_date_is_ignored():
    error = answered_error(429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"")
    assert "retry_after" not in error.detail


def test_deeply_nested_error_body_is_quoted():
    error = answered_error(502, {}, b"[" * 90_000)
    assert type(error) is ParsebankError
    assert error.message.startswith("the server answered 502: [[[")
