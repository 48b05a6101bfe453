"""Requests of clients of the UDPipe REST API."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import ufal.udpipe

from syntax.errors import InvalidCharacterError, SpecError

INPUTS: Final = ("conllu", "generic_tokenizer", "horizontal", "vertical")

OUTPUTS: Final = ("conllu", "epe", "horizontal", "matxin", "plaintext", "vertical")

_TOKENIZER_OPTIONS: Final = ("normalized_spaces", "presegmented", "ranges")
_NOTHING: Final = ("", "default")


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Options of the tokenizer.

    Attributes:
        normalized_spaces: Only ``SpaceAfter=No`` is written, not the spaces themselves.
        presegmented: Each line is a sentence.
        ranges: Each token has its character span, ``TokenRange``.
    """

    normalized_spaces: bool = False
    presegmented: bool = False
    ranges: bool = False


@dataclass(frozen=True, slots=True)
class LindatRequest:
    """A request to ``process``.

    Attributes:
        data: The text, in Unicode's NFC as LINDAT has it; offsets count its code points.
        model: Name, beginning of a name, or language code; ``None`` for the service's default.
        tokenizer: ``None`` if the data has its tokens already.
        tagger, parser: Fill the columns from LEMMA to FEATS, and HEAD and DEPREL.
        input, output: Formats, with their options; ``input`` only without a tokenizer.
        ignored: Options that change nothing here, each as ``parameter: option``.
    """

    data: str
    model: str | None = None
    tokenizer: Tokenizer | None = None
    tagger: bool = False
    parser: bool = False
    input: str = "conllu"
    output: str = "conllu"
    ignored: tuple[str, ...] = ()


def read_request(fields: Mapping[str, str]) -> LindatRequest:
    """Read the parameters as UDPipe does: a given parameter counts with any value but ``none``.

    Unknown parameters are ignored. NUL is refused, because UDPipe's readers would stop there.
    """
    if "data" not in fields:
        raise SpecError("The parameter 'data' is required.")
    request = LindatRequest(
        data=_checked(unicodedata.normalize("NFC", fields["data"])),
        model=fields.get("model") or None,
        tokenizer=_tokenizer(fields.get("tokenizer")),
        tagger=fields.get("tagger", "none") != "none",
        parser=fields.get("parser", "none") != "none",
        input=fields.get("input", "conllu"),
        output=fields.get("output", "conllu"),
        ignored=tuple(_ignored(fields)),
    )
    _check_formats(request)
    return request


def _checked(data: str) -> str:
    if (position := data.find("\0")) >= 0:
        raise InvalidCharacterError(
            f"the data holds NUL at character {position}, which is no text; remove it",
            character="U+0000",
            position=position,
        )
    return data


def _tokenizer(options: str | None) -> Tokenizer | None:
    if options is None:
        return None
    names = _names(options)
    if "joint_with_parsing" in names:
        raise SpecError(
            "tokenizer option 'joint_with_parsing' is not supported; leave it out, and sentences "
            "end where the tokenizer ends them"
        )
    return Tokenizer(**{name: name in names for name in _TOKENIZER_OPTIONS})


def _check_formats(request: LindatRequest) -> None:
    formats = ufal.udpipe.InputFormat, ufal.udpipe.OutputFormat
    if request.tokenizer is None and formats[0].newInputFormat(request.input) is None:
        raise _unknown("input", request.input, INPUTS)
    if formats[1].newOutputFormat(request.output) is None:
        raise _unknown("output", request.output, OUTPUTS)


def _unknown(kind: str, name: str, known: tuple[str, ...]) -> SpecError:
    return SpecError(
        f"Unknown {kind} format '{name}'. Known are {', '.join(known)}.", known=list(known)
    )


def _ignored(fields: Mapping[str, str]) -> Iterator[str]:
    known = {"tokenizer": (*_TOKENIZER_OPTIONS, *_NOTHING), "tagger": _NOTHING, "parser": _NOTHING}
    for parameter, kept in known.items():
        for name in _names(fields.get(parameter, "")):
            if name not in (*kept, "none", parameter):
                yield f"{parameter}: {name}"


def _names(options: str) -> list[str]:
    return [option.partition("=")[0].strip() for option in options.split(";")]
