"""``/info``: version, defaults and limits of the service."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final, get_args

from fastapi import APIRouter, Request

from service.parsers import find_parser
from service.pipeline.records import MatrixName
from service.render.negotiate import FORMATS
from service.schemas import InfoAnswer
from service.security.middleware import ROLE_IN_SCOPE
from service.services import UsesServices
from service.settings import Settings
from service.tokenizers import bundled_tokenizers
from syntax.errors import UnknownNameError
from syntax.examples import ParseMode
from syntax.subwords import POLICIES

router = APIRouter(tags=["info"])

_LIMITS: Final = (
    *("max_body_bytes", "max_items", "max_chars_per_text", "max_words_per_sentence"),
    *("max_matrix_pieces", "max_matrix_cells", "max_packed_matrix_mb"),
    *("max_queued_words", "request_deadline_seconds"),
    *("job_max_line_bytes", "rate_limit"),
)


@router.head("/info", include_in_schema=False)
@router.get("/info")
async def info(request: Request, services: UsesServices) -> InfoAnswer:
    """Show version, defaults, limits, and what the caller may do."""
    settings = services.settings
    return InfoAnswer(
        version=version("parsebank"),
        role=request.scope.get(ROLE_IN_SCOPE, "admin"),
        read_only=settings.read_only,
        lang=settings.lang,
        parser=_default_parser(settings),
        tokenizer=settings.tokenizer,
        tokenizers=list(bundled_tokenizers()),
        modes=list(get_args(ParseMode)),
        policies=list(POLICIES),
        matrices=list(get_args(MatrixName)),
        formats=list(FORMATS),
        limits={name: getattr(settings, name) for name in _LIMITS},
    )


def _default_parser(settings: Settings) -> str | None:
    try:
        return find_parser(settings).name
    except UnknownNameError:
        return None
