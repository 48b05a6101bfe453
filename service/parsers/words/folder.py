"""The folder of an exported parser, found and read.

``words.onnx`` goes from pieces (B, L), bool mask (B, L), word of each piece (B, L), the word whose
pieces give each word's state (B, W) and bool (B, W), true for a word, to states (B, W, D), scores
of heads (B, W, H) and, for each column of tags, scores (B, W, T); other inputs are int64.
``relations.onnx`` goes from states (B, W, D) and heads, int64 (B, W), to scores of relations
(B, W, R). ``segmentation.udpipe``, which may be missing, is the UDPipe model that finds sentences
and words.

Letters in shapes: ``B`` sentences, ``L`` pieces, ``W`` words, ``H`` heads: ROOT and the words,
``D`` width, ``R`` relations, ``T`` tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from service.parsers.base import ModelFile
from service.parsers.records import model_card
from syntax.batches import SpecialTokens
from syntax.errors import ModelLoadError
from syntax.parsing.folder import RELATIONS, TOKENIZER, WORDS

BACKEND: Final = "parsebank.v1"
FAMILY: Final = "parsebank"
FORMAT: Final = 1

CARD: Final = "parser.json"
SEGMENTATION: Final = "segmentation.udpipe"

_NEEDED: Final = (CARD, WORDS, RELATIONS, TOKENIZER)
TAGS: Final = ("upos", "xpos", "feats")


@dataclass(frozen=True)
class ParserCard:
    """Content of ``parser.json``.

    Attributes:
        tags: Values of each tagged column, in the order of the program's outputs.
        max_pieces: Pieces of a sentence that the encoder can read, special tokens included.
        single_root: True if exactly one word of a sentence hangs from ROOT.
    """

    relations: tuple[str, ...]
    tags: Mapping[str, tuple[str, ...]]
    max_pieces: int
    special_tokens: SpecialTokens
    single_root: bool

    @property
    def max_words(self) -> int:
        """Words of the longest sentence, each with one piece."""
        return self.max_pieces - self.special_tokens.count(1)


def find_word_parsers(folder: Path) -> Iterator[ModelFile]:
    for path in sorted(folder.glob(f"*/{CARD}")):
        if path.parent.name.startswith("."):
            continue
        files = [path.with_name(name) for name in (*_NEEDED, SEGMENTATION)]
        parts = tuple(file for file in files if file.is_file())
        card: dict[str, Any] = {}
        try:
            card = model_card(path)
            problem = _problem(path, card)
        except ModelLoadError as error:
            problem = error.message
        langs = (card["language"],) if card.get("language") else ()
        name = f"{FAMILY}/{path.parent.name}"
        yield ModelFile(BACKEND, name, path.parent, langs, None, card, parts, problem)


def read_card(folder: Path) -> ParserCard:
    path = folder / CARD
    content = model_card(path)
    if (problem := _problem(path, content)) is not None:
        raise ModelLoadError(problem, path=str(path))
    try:
        card = ParserCard(
            relations=_names(content["relations"]),
            tags={column: _names(content["tags"][column]) for column in content["tags"]},
            max_pieces=int(content["max_pieces"]),
            special_tokens=SpecialTokens.from_json(content["special_tokens"]),
            single_root=bool(content["single_root"]),
        )
        if card.max_words < 1 or not card.relations or not set(card.tags) <= set(TAGS):
            raise ValueError("it has no room for a word, no relations, or tags of no known column")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelLoadError(
            f"{path} does not describe a parser ({type(error).__name__}: {error}); add it again",
            path=str(path),
        ) from None
    return card


def _problem(path: Path, card: Mapping[str, Any]) -> str | None:
    if card.get("format") != FORMAT:
        return (
            f"{path} is of format {card.get('format')!r}, and this release reads {FORMAT}; add the "
            "model again with this release"
        )
    missing = [name for name in _NEEDED if not path.with_name(name).is_file()]
    return f"{path.parent} lacks {', '.join(missing)}; add it again" if missing else None


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{value!r} is not a list of names")
    return tuple(value)
