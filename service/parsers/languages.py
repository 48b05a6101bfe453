"""Language codes of model names, and codes that mean the same."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from syntax.strict_json import parse_json

_SUFFIX: Final = "-ud-"


@cache
def ud_languages() -> dict[str, tuple[str, ...]]:
    """Codes by language as UD names it in file names, ``ancient_greek``; UD's own code first.

    A treebank may have a code of its own: ``norwegian-nynorsk`` is ``nn``.
    """
    path = files("service") / "resources" / "languages.json"
    return {name: tuple(codes) for name, codes in parse_json(path.read_text("utf-8")).items()}


def language_of(model_name: str) -> str | None:
    """ISO code of a UD-style model name.

    >>> language_of("ancient_greek-proiel-ud-2.5")
    'grc'
    """
    treebank = model_name.lower().partition(_SUFFIX)[0]
    known = ud_languages()
    codes = known.get(treebank) or known.get(treebank.partition("-")[0])
    return codes[0] if codes else None


def language_code(code: str) -> str:
    """The one code of models and parses for a code in any of ISO 639's forms.

    >>> language_code("ENG"), language_code("fre"), language_code("xx")
    ('en', 'fr', 'xx')
    """
    lower = code.lower()
    return _canonical().get(lower, lower)


@cache
def _canonical() -> dict[str, str]:
    return {code: codes[0] for codes in ud_languages().values() for code in codes}
