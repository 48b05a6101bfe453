"""Families of languages, named as in Ahmad et al. (2019), table 1: Indo-European ones by branch."""

from __future__ import annotations

from typing import Final

_LANGUAGES: Final = {
    "Afro-Asiatic": "aii ajp akk am apc ar arz cop ha hbo he kab ktb mt om so ti",
    "Austroasiatic": "km vi",
    "Austronesian": "ceb fil haw id jv mg mi ms su tl",
    "Basque": "eu",
    "Creole": "ht pcm",
    "Dravidian": "kn ml ta te",
    "IE.Albanian": "sq",
    "IE.Armenian": "hy hyw xcl",
    "IE.Baltic": "lt ltg lv",
    "IE.Celtic": "br cy ga gd gv sga",
    "IE.Germanic": "af bar da de en fo fy gmh got gsw is lb nb nds nl nn no sv yi",
    "IE.Greek": "el grc",
    "IE.Indic": "as bho bn dv gu hi mr ne or pa pi sa sd si ur",
    "IE.Iranian": "ckb fa kmr ku pal ps tg",
    "IE.Latin": "la",
    "IE.Romance": "ast ca egl es fr fro frm gl it lij nap oc pt ro scn vec",
    "IE.Slavic": "be bg bs cs cu dsb hr hsb mk orv pl qpm ru sh sk sl sr uk",
    "Japanese": "ja",
    "Kartvelian": "ka xmf",
    "Korean": "ko",
    "Mongolic": "bxr mn",
    "Niger-Congo": "bm ig lg rw sn st sw tn wo xh yo zu",
    "Quechuan": "qu",
    "Sino-Tibetan": "bo lzh my yue zh",
    "Tai-Kadai": "lo th",
    "Turkic": "az ba crh cv kk ky ota otk sah tr tt ug uz",
    "Uralic": "et fi hu kca koi kpv krl mdf myv olo sjd sme sms smi vep",
}

_FAMILIES: Final = {lang: family for family, langs in _LANGUAGES.items() for lang in langs.split()}


def family_of(lang: str) -> str | None:
    """The family of a language by its code, with or without script and region.

    >>> family_of("sl"), family_of("pt-BR"), family_of("und")
    ('IE.Slavic', 'IE.Romance', None)
    """
    return _FAMILIES.get(lang.lower().replace("_", "-").partition("-")[0])
