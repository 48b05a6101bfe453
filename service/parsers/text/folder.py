"""The folder of a parser of running text. Nothing here imports ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from service.parsers.base import ModelFile
from service.parsers.records import model_card
from syntax.batches import SpecialTokens
from syntax.errors import ModelLoadError
from syntax.parsing.folder import CARD, FILES, FORMAT

BACKEND: Final = "parsebank.v2"
FAMILY: Final = "parsebank"
_LONG: Final = ("labels", "special_tokens", "scores_exact")

Column = Literal["upos", "xpos", "feats", "lemma"]
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Labels(BaseModel):
    """Names of the classes of the programs.

    Attributes:
        split: Scripts of tokens, `syntax.parsing.scripts.split_scripts`.
        tags: Values of each column that the model gives; of ``lemma``, scripts.
        spaces: True if tokens may have spaces in them.
        exceptions: The lemma of a form by its UPOS, where its script is wrong more often.
    """

    split: Names
    tags: dict[Column, Names]
    deprel: Names
    spaces: bool
    exceptions: dict[str, dict[str, str]] = {}


class ModelCard(BaseModel):
    """The part of ``model.json`` that programs read; ``max_pieces`` include special tokens."""

    model_config = ConfigDict(extra="ignore", arbitrary_types_allowed=True)

    format: Literal[1]
    language: str
    labels: Labels
    max_pieces: Annotated[int, Field(ge=16)]
    special_tokens: dict[str, Any]

    @property
    def special(self) -> SpecialTokens:
        return SpecialTokens.from_json(self.special_tokens)


def find_text_parsers(folder: Path) -> Iterator[ModelFile]:
    for path in sorted(folder.glob(f"*/{CARD}")):
        if not path.parent.name.startswith("."):
            yield model_in(path.parent)


def model_in(folder: Path) -> ModelFile:
    """Model of a folder; one that cannot be read has a ``problem``."""
    content: dict[str, Any] = {}
    try:
        content = model_card(folder / CARD)
        problem = _problem(folder / CARD, content)
    except ModelLoadError as error:
        problem = error.message
    # What only programs read stays out of lists of models.
    card = {key: value for key, value in content.items() if key not in _LONG}
    langs = content.get("languages") or [content.get("language")]
    parts = tuple(folder / name for name in FILES if (folder / name).is_file())
    name = f"{FAMILY}/{folder.name}"
    return ModelFile(BACKEND, name, folder, tuple(filter(None, langs)), None, card, parts, problem)


def read_card(folder: Path) -> ModelCard:
    path = folder / CARD
    content = model_card(path)
    if (problem := _problem(path, content)) is not None:
        raise ModelLoadError(problem, path=str(path))
    try:
        return ModelCard.model_validate(content)
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(map(str, found["loc"]))
        raise ModelLoadError(
            f"{path} does not describe a parser: {where}: {found['msg']}; train or pull it again",
            path=str(path),
        ) from None


def _problem(path: Path, content: dict[str, Any]) -> str | None:
    if content.get("format") != FORMAT:
        return (
            f"{path} is of format {content.get('format')!r}, and this release reads {FORMAT}; "
            "train or pull the model again"
        )
    missing = [name for name in FILES if not path.with_name(name).is_file()]
    return f"{path.parent} lacks {', '.join(missing)}; train or pull it again" if missing else None
