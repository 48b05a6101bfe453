"""The app of a client in its own process, which finds it through the group ``parsebank.app``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from service.processes import without_pandas

if TYPE_CHECKING:
    from fastapi import FastAPI


def create_app(ahead: Literal["parser", "worker"] | None = None, **settings: Any) -> FastAPI:
    """Build the app, whose import takes a second.

    A command, whose process is ours, names one to start ``ahead``, meanwhile.
    """
    if ahead == "parser":
        from service.workers.process import start_ahead

        start_ahead()
    elif ahead == "worker":
        from service.jobs.processes import start_ahead

        start_ahead()
    if ahead is not None:
        without_pandas()
    from service.app import create_app as build

    return build(**settings)
