"""ISO codes of the languages that UD names its treebanks by."""

from __future__ import annotations

from typing import Final

ISO_CODES: Final = {
    "afrikaans": "af",
    "ancient_greek": "grc",
    "arabic": "ar",
    "armenian": "hy",
    "basque": "eu",
    "belarusian": "be",
    "bulgarian": "bg",
    "buryat": "bxr",
    "catalan": "ca",
    "chinese": "zh",
    "classical_chinese": "lzh",
    "coptic": "cop",
    "croatian": "hr",
    "czech": "cs",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "estonian": "et",
    "finnish": "fi",
    "french": "fr",
    "galician": "gl",
    "german": "de",
    "gothic": "got",
    "greek": "el",
    "hebrew": "he",
    "hindi": "hi",
    "hungarian": "hu",
    "icelandic": "is",
    "indonesian": "id",
    "irish": "ga",
    "italian": "it",
    "japanese": "ja",
    "kazakh": "kk",
    "korean": "ko",
    "latin": "la",
    "latvian": "lv",
    "lithuanian": "lt",
    "maltese": "mt",
    "marathi": "mr",
    "north_sami": "sme",
    "norwegian": "no",
    "old_church_slavonic": "cu",
    "old_french": "fro",
    "old_russian": "orv",
    "persian": "fa",
    "polish": "pl",
    "portuguese": "pt",
    "romanian": "ro",
    "russian": "ru",
    "sanskrit": "sa",
    "scottish_gaelic": "gd",
    "serbian": "sr",
    "slovak": "sk",
    "slovenian": "sl",
    "spanish": "es",
    "swedish": "sv",
    "tamil": "ta",
    "telugu": "te",
    "thai": "th",
    "turkish": "tr",
    "ukrainian": "uk",
    "upper_sorbian": "hsb",
    "urdu": "ur",
    "uyghur": "ug",
    "vietnamese": "vi",
    "welsh": "cy",
    "wolof": "wo",
}


def language_of(model_name: str) -> str | None:
    """ISO code of the language that a UD-style model name begins with.

    >>> language_of("ancient_greek-proiel-ud-2.5")
    'grc'
    """
    return ISO_CODES.get(model_name.partition("-")[0].lower())
