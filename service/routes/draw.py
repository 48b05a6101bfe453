"""``POST /draw``: pictures of CoNLL-U."""

from __future__ import annotations

from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from service.pipeline.records import MatrixName
from service.render.pictures import LARGEST, Limits, PictureName, draw_conllu
from service.routes.answers import error_answers
from service.routes.streams import while_connected
from service.schemas import AnyText, ErrorBody
from service.services import UsesServices
from syntax.fingerprint import MAX_WORDS
from syntax.subwords import POLICIES

DRAWN_LINES: Final = 100_000
"""Longest document, in lines of CoNLL-U; reading it takes a second."""

router = APIRouter(tags=["draw"])

_EXAMPLE: JsonValue = {
    "conllu": "1\tBirds\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsing\t_\tVERB\t_\t_\t0\troot\t_\t_\n",
    "pictures": ["arcs", "distance"],
}


class DrawRequest(BaseModel):
    """A document, and which of its sentences to draw."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})

    conllu: AnyText = Field(
        description="One or more sentences, such as `POST /parse?format=conllu` answers."
    )
    sentence: Annotated[int, Field(ge=0, description="Which sentence, counted from 0.")] = 0
    pictures: list[PictureName] = Field(
        default_factory=lambda: list(get_args(PictureName)),
        description="`arcs` and `hierarchy` show the tree; `wordpieces` needs a tokenizer. "
        "Matrices are over the wordpieces, or over the words if there is no tokenizer.",
    )
    matrices: list[MatrixName] = Field(
        default_factory=list,
        description=f"Matrices as numbers, of the first {LARGEST} wordpieces (or words).",
    )
    tokenizer: str | None = Field(
        default=None, description="Name or path of a Hugging Face tokenizer."
    )
    policy: str = Field(
        default="attach", description="How the pieces of a word hang, as in `POST /parse`."
    )


class DrawnMatrices(BaseModel):
    """Matrices of a sentence, as numbers."""

    total: int = Field(description="Wordpieces (or words) of the sentence.")
    labels: list[str] = Field(description=f"The texts of the first {LARGEST}.")
    words: list[str] = Field(
        description="The id of each one's word; empty for a piece without a word."
    )
    values: dict[MatrixName, list[Any]] = Field(
        description="By name: `depth` has a number for each label, `distance` and `ancestor` a row "
        "for each; null where there is no path."
    )


class DrawAnswer(BaseModel):
    """Pictures of a sentence."""

    texts: list[str] = Field(description="The text of every sentence that came.")
    conllu: str = Field(description="The sentence that is drawn.")
    pictures: dict[str, str] = Field(
        description="SVG by name. Elements have the ids of their words in `data-word`; those of a "
        "relation have its dependent's in `data-arc`."
    )
    matrices: DrawnMatrices | None = Field(
        default=None, description="Those that were asked for as numbers."
    )


@router.post(
    "/draw",
    response_model=DrawAnswer,
    responses={
        **error_answers(408, 413, 503, 504),
        429: {"model": ErrorBody, "description": "Many drawings wait; see `Retry-After`."},
    },
)
async def draw(request: Request, body: DrawRequest, services: UsesServices) -> Response:
    """Draw a sentence: its tree, its wordpieces, its matrices. This parses and stores nothing.

    Drawings take turns, so that they hold up nothing else.
    """
    settings = services.settings
    POLICIES[body.policy]  # an unknown name is refused, whichever pictures are asked for
    limits = Limits(
        characters=settings.max_chars_per_text,
        nodes=min(settings.max_words_per_sentence, MAX_WORDS),
        pieces=settings.max_matrix_pieces,
        lines=DRAWN_LINES,
    )
    tokenizer = body.tokenizer and await services.pipeline.tokenizers.get(body.tokenizer)

    def drawing() -> bytes:
        drawn = draw_conllu(
            body.conllu,
            body.sentence,
            list(dict.fromkeys(body.pictures)),
            list(dict.fromkeys(body.matrices)),
            limits,
            tokenizer or None,
            body.policy,
        )
        return DrawAnswer.model_validate(drawn, from_attributes=True).model_dump_json().encode()

    async with while_connected(request):
        content = await services.drawings.run(drawing)
    return Response(content, media_type="application/json")
