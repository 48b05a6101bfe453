"""Which Stanza packages a folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service.parsers.stanza.packages import find_stanza, package_of
from syntax.errors import ModelLoadError


def write_resources(folder: Path, resources: dict[str, Any], files: list[str]) -> None:
    (folder / "resources.json").write_text(json.dumps(resources))
    for name in files:
        path = folder / f"{name}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


COMBINED = {
    "tokenize": "combined",
    "mwt": "combined",
    "pos": "combined_charlm",
    "lemma": "combined_nocharlm",
    "depparse": "combined_charlm",
}
OFFICIAL = {
    "url": "https://example.org/{resources_version}/{lang}.zip",
    "zh": {"alias": "zh-hans"},
    "simplified_chinese": {"alias": "zh-hans"},
    "en": {
        "packages": {
            "ewt": {"tokenize": "ewt", "mwt": "ewt", "pos": "ewt_charlm", "depparse": "ewt_charlm"},
            "default": {**COMBINED, "ner": "onto", "optional": {"ner": ["onto"]}},
            "again": COMBINED,
        },
        "pos": {
            "combined_charlm": {
                "md5": "x",
                "dependencies": [
                    {"model": "pretrain", "package": "conll17"},
                    {"model": "forward_charlm", "package": "1billion"},
                ],
            }
        },
        "depparse": {
            "combined_charlm": {"dependencies": [{"model": "pretrain", "package": "conll17"}]}
        },
    },
    "zh-hans": {
        "default_processors": {
            "tokenize": "gsdsimp",
            "pos": "gsdsimp",
            "lemma": "identity",
            "depparse": "gsdsimp",
        },
    },
    "la": {"packages": {"default": {"tokenize": "ittb"}}},
}
ENGLISH = [
    *("tokenize/combined", "mwt/combined", "pos/combined_charlm", "lemma/combined_nocharlm"),
    *("depparse/combined_charlm", "pretrain/conll17", "forward_charlm/1billion"),
]


def test_the_packages_whose_files_are_there_are_listed(tmp_path: Path) -> None:
    chinese = [f"zh-hans/{kind}/gsdsimp" for kind in ("tokenize", "pos", "depparse")]
    write_resources(tmp_path, OFFICIAL, [*(f"en/{name}" for name in ENGLISH), *chinese])
    english, simplified = find_stanza(tmp_path)
    assert (english.name, english.card["treebank"]) == ("stanza/en", "combined")
    parts = [part.relative_to(tmp_path / "en").with_suffix("").as_posix() for part in english.parts]
    assert parts == ENGLISH
    assert (simplified.name, simplified.langs) == ("stanza/zh-hans", ("zh", "zh-hans"))
    ewt = ("tokenize/ewt", "mwt/ewt", "pos/ewt_charlm", "depparse/ewt_charlm")
    write_resources(tmp_path, OFFICIAL, [f"en/{name}" for name in ewt])
    assert [model.name for model in find_stanza(tmp_path)][:2] == ["stanza/en", "stanza/en-ewt"]
    (tmp_path / "en/pretrain/conll17.pt").unlink()
    assert next(model.name for model in find_stanza(tmp_path)) == "stanza/en-ewt"
    with pytest.raises(ModelLoadError, match="fetch it again"):
        package_of(english)


def test_other_folders_hold_no_package(tmp_path: Path, data_dir: Path) -> None:
    assert list(find_stanza(tmp_path)) == []
    assert list(find_stanza(data_dir / "models" / "udpipe")) == []
    for broken in ("{", "[]", '"text"'):
        (tmp_path / "resources.json").write_text(broken)
        with pytest.raises(ModelLoadError, match=r"resources\.json"):
            list(find_stanza(tmp_path))
