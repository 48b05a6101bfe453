"""What the server runs on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from service.app import create_app
from service.server import Server


@pytest.mark.skipif(sys.platform != "linux", reason="uvloop is for POSIX")
async def test_uvloop_and_httptools_are_there_and_chosen(make_settings: Callable[..., Any]) -> None:
    chosen = make_settings()
    config = Server(create_app(chosen), chosen).config
    config.load()
    assert config.http_protocol_class.__name__ == "BoundedProtocol"
    loop = config.get_loop_factory()()
    try:
        assert type(loop).__module__ == "uvloop"
    finally:
        loop.close()
