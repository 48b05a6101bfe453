"""Where the service and its helper processes log to."""

from __future__ import annotations

import logging
import sys

import structlog


def configure_logging(level: str) -> None:
    """Log events above a level to standard error."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=_standard_error,
    )


def _standard_error(*_: object) -> structlog.PrintLogger:
    # Asked for anew each time: a program that embeds the service may redirect it.
    return structlog.PrintLogger(sys.stderr)
