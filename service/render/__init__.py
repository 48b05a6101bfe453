"""Pipeline answers in the formats that the service speaks."""

from service.render.arrow import render_arrow
from service.render.conllu import render_conllu
from service.render.json import render_json
from service.render.ndjson import render_ndjson
from service.render.representation import Rendered, Representation

__all__ = [
    "Rendered",
    "Representation",
    "render_arrow",
    "render_conllu",
    "render_json",
    "render_ndjson",
]
