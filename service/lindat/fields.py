"""Parameters of a query, a form, or a multipart body."""

from __future__ import annotations

import re
from typing import Any, Final

from python_multipart import create_form_parser
from python_multipart.exceptions import FormParserError

from syntax.errors import SpecError

_MULTIPART: Final = "multipart/form-data"
_FORM: Final = "application/x-www-form-urlencoded"
_MOST_PAIRS: Final = 100
_ESCAPES: Final = re.compile(rb"(?:%[0-9A-Fa-f]{2}){1,4096}")


def read_fields(query: bytes, content_type: str, body: bytes) -> dict[str, str]:
    """Parameters of a request; those of the body override those of the query.

    In the query a name without a value (``?tokenizer``) counts as given. The body is
    form-urlencoded, or multipart, whose parts may be files, or empty.
    """
    fields = _pairs(query, "query")
    if not body:
        return fields
    if content_type.startswith(_MULTIPART):
        return fields | _parts(content_type, body)
    if content_type.startswith(_FORM):
        return fields | _pairs(body, "form")
    raise SpecError(
        f"the body is {content_type or 'of no type'!r}; send {_MULTIPART} or {_FORM}",
        content_type=content_type,
    )


def _pairs(encoded: bytes, where: str) -> dict[str, str]:
    if encoded.count(b"&") > _MOST_PAIRS:
        raise SpecError(f"the {where} has more than {_MOST_PAIRS} parameters")
    pairs = (pair.partition(b"=") for pair in encoded.split(b"&") if pair)
    try:
        return {_unquoted(name).decode(): _unquoted(value).decode() for name, _, value in pairs}
    except UnicodeDecodeError:
        raise _not_utf8(where) from None


def _unquoted(encoded: bytes) -> bytes:
    """Undo percent-encoding by runs; `urllib.parse` takes seconds for a book in Cyrillic."""
    return _ESCAPES.sub(
        lambda run: bytes.fromhex(run[0].replace(b"%", b"").decode()), encoded.replace(b"+", b" ")
    )


def _parts(content_type: str, body: bytes) -> dict[str, str]:
    found: dict[str, bytes] = {}

    def add_field(field: Any) -> None:
        found[_name(field.field_name)] = field.value or b""

    def add_file(file: Any) -> None:
        file.file_object.seek(0)
        found[_name(file.field_name)] = file.file_object.read()
        file.close()

    _parse_multipart(content_type, body, add_field, add_file)
    return {name: _text(name, content) for name, content in found.items()}


def _parse_multipart(content_type: str, body: bytes, add_field: Any, add_file: Any) -> None:
    # The body is in memory already; a file on disk beside it would only cost time.
    config = {"MAX_MEMORY_FILE_SIZE": len(body) + 1}
    try:
        headers = {"Content-Type": content_type.encode("latin-1")}
        parser = create_form_parser(headers, add_field, add_file, config=config)
        parser.write(body)
        parser.finalize()
    except (FormParserError, ValueError) as error:
        raise SpecError(f"the {_MULTIPART} body cannot be read: {error}") from None


def _name(name: bytes | None) -> str:
    return (name or b"").decode("utf-8", "replace")


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _not_utf8(f"part {name!r}") from None


def _not_utf8(where: str) -> SpecError:
    return SpecError(f"the {where} is not UTF-8; convert it")
