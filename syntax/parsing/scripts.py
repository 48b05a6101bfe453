"""Edit scripts: rules that make a lemma, or the words of a multiword token, from written forms.

A classifier chooses among the scripts that a treebank needs, as UDPipe 2 does for lemmas (Straka
2018, "UDPipe 2.0 Prototype at CoNLL 2018 UD Shared Task", section 3.2), so that it generalises to
unseen words. A script is a short text, which a model's card lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Final

from syntax.errors import InputError

SINGLE: Final = ""
"""The script of a token that is one word."""

_WHOLE: Final = "="
_EDIT: Final = "~"
_SPELLED: Final = "+"
_REST: Final = "*"
_SEPARATOR: Final = "\t"

_CASES: Final[dict[str, Callable[[str], str]]] = {
    "l": str.lower,
    "k": str,
    "t": lambda text: text[:1].upper() + text[1:].lower(),
    "u": str.upper,
}
"""Ways to write a form before it is edited: lower case, as it stands, title, upper case."""


def lemma_script(form: str, lemma: str) -> str:
    """The script that makes a lemma from a form.

    The longest common part stays; what stands before and after it is cut and replaced, in the case
    for which this is least. Without a common part the lemma itself is the script.

    >>> lemma_script("Dogs", "dog") == lemma_script("cats", "cat")
    True
    >>> lemma_script("went", "go")
    '=go'
    """
    edits = [(case, _edit(write(form), lemma)) for case, write in _CASES.items()]
    found = [(case, edit) for case, edit in edits if edit is not None]
    if not found:
        return _WHOLE + lemma
    case, edit = min(found, key=lambda pair: _cost(pair[1]))
    return _SEPARATOR.join((_EDIT + case, *edit))


def apply_lemma_script(script: str, form: str) -> str:
    """The lemma of a form; a script that cuts more than the form has leaves it as it is."""
    if script.startswith(_WHOLE):
        return script[len(_WHOLE) :]
    kind, cut_before, before, cut_after, after = script.split(_SEPARATOR)
    written = _CASES[kind[len(_EDIT) :]](form)
    first, last = int(cut_before), len(written) - int(cut_after)
    if first > last or (first == last and not before and not after):
        return form
    return before + written[first:last] + after


def split_scripts(token: str, words: Sequence[str]) -> list[str]:
    """The scripts that make the words of a token.

    Words that spell the token are told by their lengths, except one, which is the rest: *don't* is
    all but three characters and three, or two and all but two. A treebank shows which of them makes
    more tokens. Other words are told whole, in lower case.

    >>> both = split_scripts("don't", ["do", "n't"])
    >>> [apply_split_script(script, "wouldn't") for script in both]
    [['would', "n't"], ['wo', "uldn't"]]
    >>> [apply_split_script(script, "Du") for script in split_scripts("du", ["de", "le"])]
    [['De', 'le']]
    """
    if len(words) == 1 and words[0] == token:
        return [SINGLE]
    if "".join(words) != token:
        return [_WHOLE + _SEPARATOR.join(word.lower() for word in words)]
    lengths = [str(len(word)) for word in words]
    return [
        _SPELLED + _SEPARATOR.join([*lengths[:at], _REST, *lengths[at + 1 :]])
        for at in range(len(words))
    ]


def apply_split_script(script: str, token: str) -> list[str]:
    """The words of a token; the token alone, where it is too short for the script."""
    if script == SINGLE:
        return [token]
    parts = script[1:].split(_SEPARATOR)
    if script.startswith(_WHOLE):
        return _in_case_of(token, parts)
    if not script.startswith(_SPELLED) or parts.count(_REST) != 1:
        raise InputError(f"{script!r} is not a script of words; train the model again")
    lengths = [0 if part == _REST else int(part) for part in parts]
    rest = len(token) - sum(lengths)
    if rest < 1:
        return [token]
    words, at = [], 0
    for part, length in zip(parts, lengths, strict=True):
        end = at + (rest if part == _REST else length)
        words.append(token[at:end])
        at = end
    return words


def _in_case_of(token: str, words: list[str]) -> list[str]:
    if len(token) > 1 and token.isupper():
        return [word.upper() for word in words]
    if token[:1].isupper():
        return [words[0][:1].upper() + words[0][1:], *words[1:]]
    return words


def _edit(written: str, lemma: str) -> tuple[str, str, str, str] | None:
    matcher = SequenceMatcher(None, written, lemma, autojunk=False)
    common = matcher.find_longest_match()
    if not common.size:
        return None
    cut_after = len(written) - common.a - common.size
    return (
        *(str(common.a), lemma[: common.b]),
        *(str(cut_after), lemma[common.b + common.size :]),
    )


def _cost(edit: tuple[str, str, str, str]) -> int:
    cut_before, before, cut_after, after = edit
    return int(cut_before) + len(before) + int(cut_after) + len(after)
