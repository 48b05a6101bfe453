r"""White space around and inside tokens, as MISC columns record it.

``SpaceAfter=No`` means that the next token follows at once. Other spacing is recorded in UDPipe's
attributes ``SpacesBefore``, ``SpacesAfter`` and ``SpacesInToken``, whose values escape white space
and the MISC separator: ``\s \t \n \r \p`` (``|``) and ``\\``. Other white space is written
``\u00A0``, as UD_English-EWT does.

Source: https://ufal.mff.cuni.cz/udpipe/1/users-manual, "Preserving Original Spaces".
"""

from __future__ import annotations

import re
from typing import Final

SPACING_KEYS: Final = ("SpaceAfter", "SpacesBefore", "SpacesAfter", "SpacesInToken")

_ESCAPES: Final = {" ": "\\s", "\t": "\\t", "\n": "\\n", "\r": "\\r", "|": "\\p", "\\": "\\\\"}
_CHARACTERS: Final = {escape: character for character, escape in _ESCAPES.items()}
_NEEDS_ESCAPE: Final = re.compile(r"[\s|\\\x00-\x1f\x7f-\x9f]")
_ESCAPED: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|[stnrp\\])")
# Every character that some reader treats as the end of a line or a column.
_BREAKS: Final = re.compile("[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]")


def escape_spaces(text: str) -> str:
    r"""Write any characters as the value of a MISC attribute.

    >>> print(escape_spaces(" \n|"))
    \s\n\p
    """
    return _NEEDS_ESCAPE.sub(lambda at: _ESCAPES.get(at[0]) or f"\\u{ord(at[0]):04X}", text)


def unescape_spaces(value: str) -> str:
    r"""The characters of a value of a MISC attribute; an unknown escape stands for itself.

    >>> unescape_spaces(r"\s\u00A0\n")
    ' \xa0\n'
    """
    return _ESCAPED.sub(lambda at: _CHARACTERS.get(at[0]) or chr(int(at[0][2:], 16)), value)


def safe_column(value: str) -> str:
    """A value fit for a CoNLL-U column: no tabs, line breaks and outer white space, not empty."""
    line = value if value.isprintable() else _BREAKS.sub(" ", value)
    return line.strip() or "_"


def attribute(misc: str | None, key: str) -> str | None:
    if misc is None or key not in misc:
        return None
    prefix = f"{key}="
    found = (entry for entry in misc.split("|") if entry.startswith(prefix))
    entry = next(found, None)
    return None if entry is None else entry[len(prefix) :]


def surface(form: str, misc: str | None) -> str:
    """The token's characters in the text: ``SpacesInToken``, or else its form."""
    value = attribute(misc, "SpacesInToken")
    return form if value is None else unescape_spaces(value)


def space_before(misc: str | None) -> str:
    """White space before the token that the token before it does not record."""
    value = attribute(misc, "SpacesBefore")
    return "" if value is None else unescape_spaces(value)


def space_after(misc: str | None) -> str:
    r"""White space between the token and the next one.

    >>> space_after(None), space_after("SpaceAfter=No"), space_after(r"SpacesAfter=\n")
    (' ', '', '\n')
    """
    value = attribute(misc, "SpacesAfter")
    if value is not None:
        return unescape_spaces(value)
    return "" if attribute(misc, "SpaceAfter") == "No" else " "


def spacing_entries(form: str, written: str, before: str, after: str) -> list[str]:
    """MISC entries from which `surface`, `space_before` and `space_after` restore the text."""
    if after in ("", " ") and not before and written == form:
        return [] if after else ["SpaceAfter=No"]
    glued = not any(character.isspace() for character in after)
    return [
        *(["SpaceAfter=No"] if glued else []),
        *([f"SpacesBefore={escape_spaces(before)}"] if before else []),
        *([f"SpacesAfter={escape_spaces(after)}"] if after not in ("", " ") else []),
        *([f"SpacesInToken={escape_spaces(written)}"] if written != form else []),
    ]


def with_spacing(misc: str | None, entries: list[str]) -> str | None:
    """Replace the spacing of a MISC column by ``entries``; its others stay, in their order."""
    if misc is None:
        return "|".join(entries) or None
    own = misc.split("|")
    if [entry for entry in own if _is_spacing(entry)] != entries:
        own = [*entries, *(entry for entry in own if not _is_spacing(entry))]
    return "|".join(own) or None


def _is_spacing(entry: str) -> bool:
    return entry.partition("=")[0] in SPACING_KEYS
