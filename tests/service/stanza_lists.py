"""A part of Stanza's own list of packages."""

from __future__ import annotations

import json
from typing import Any


def official_excerpt() -> dict[str, Any]:
    """What Stanza's official list says about a language, with what its packages build on."""
    vectors = [{"model": "pretrain", "package": "fasttextwiki"}]
    charlm = [
        *vectors,
        {"model": "forward_charlm", "package": "oscar"},
        {"model": "backward_charlm", "package": "oscar"},
    ]
    plain = {"tokenize": "afribooms", "lemma": "identity"}
    best = {**plain, "pos": "afribooms_charlm", "depparse": "afribooms_charlm"}
    fast = {**plain, "pos": "afribooms_nocharlm", "depparse": "afribooms_nocharlm"}
    mixed = {**best, "pos": "afribooms_nocharlm"}
    trained = {
        "afribooms_charlm": {"md5": "1", "dependencies": charlm},
        "afribooms_nocharlm": {"md5": "2", "dependencies": vectors},
    }
    entry = {
        "tokenize": {"afribooms": {"md5": "3"}},
        "pos": trained,
        "depparse": json.loads(json.dumps(trained)),
        "pretrain": {"fasttextwiki": {"md5": "4"}},
        "forward_charlm": {"oscar": {"md5": "5"}},
        "backward_charlm": {"oscar": {"md5": "6"}},
        "ner": {"nchlt": {"md5": "7", "dependencies": charlm}},
        "packages": {
            "afribooms": best,
            "default": {**best, "ner": "nchlt"},
            "default_fast": fast,
            "default_accurate": mixed,
        },
        "lang_name": "Afrikaans",
    }
    return {"af": entry, "afrikaans": {"alias": "af"}, "url": "https://example.org/{filename}"}
