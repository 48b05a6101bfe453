"""Pipeline answers in the formats that the service speaks."""

from collections.abc import Callable, Mapping
from typing import Final

from service.pipeline.records import FeatureAnswer
from service.render.arrow import render_arrow
from service.render.conllu import render_conllu
from service.render.json import render_json
from service.render.ndjson import render_ndjson
from service.render.negotiate import Format

__all__ = ["RENDERERS", "render_arrow", "render_conllu", "render_json", "render_ndjson"]

RENDERERS: Final[Mapping[Format, Callable[[FeatureAnswer], bytes]]] = {
    "json": render_json,
    "conllu": lambda answer: render_conllu(answer).encode(),
    "ndjson": render_ndjson,
    "arrow": render_arrow,
}
