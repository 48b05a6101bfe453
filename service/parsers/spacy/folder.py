"""spaCy pipelines in a folder, as ``nlp.to_disk`` writes them; nothing here imports spaCy."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from service.parsers.base import ModelFile
from service.parsers.files import read_object
from syntax.errors import ModelLoadError
from syntax.extras import missing_extra
from syntax.trees.ud import deprel_id

BACKEND: Final = "spacy.v1"
FAMILY: Final = "spacy"
META: Final = "meta.json"
CONFIG: Final = "config.cfg"

_FALLBACK: Final = "ROOT"


def find_spacy(folder: Path) -> Iterator[ModelFile]:
    for path in sorted(folder.glob(f"*/{META}")):
        home = path.parent
        if home.name.startswith(".") or not home.joinpath(CONFIG).is_file():
            continue
        meta: dict[str, Any] = {}
        try:
            meta = read_object(path)
            problem = _problem(home, meta)
        except ModelLoadError as error:
            problem = error.message
        lang = meta.get("lang")
        langs = (lang,) if isinstance(lang, str) and lang else ()
        card = {"language": lang, "licence": meta.get("license"), "treebank": _sources(meta)}
        card |= {"version": meta.get("version"), "attribution": meta.get("author")}
        known = {key: value for key, value in card.items() if isinstance(value, str) and value}
        name = f"{FAMILY}/{home.name}"
        yield ModelFile(BACKEND, name, home, langs, None, known, files_of(home), problem)


def files_of(home: Path) -> tuple[Path, ...]:
    return tuple(sorted(file for file in home.rglob("*") if file.is_file()))


def spacy_version() -> str:
    try:
        return version("spacy")
    except PackageNotFoundError:
        raise missing_extra("spaCy models need the extra `spacy`", "spacy") from None


def _problem(home: Path, meta: dict[str, Any]) -> str | None:
    labels = meta.get("labels")
    relations = labels.get("parser") if isinstance(labels, dict) else None
    if not isinstance(relations, list) or not relations:
        return f"{home} has no component `parser`; use a pipeline with a dependency parser"
    others = sorted({str(name) for name in relations if not _is_ud(str(name))})
    if others:
        return (
            f"{home} has labels that are not relations of UD ({', '.join(others[:8])}): its trees "
            "are of another scheme, as those of spaCy's English models; use a model that was "
            "trained from a UD treebank"
        )
    return None


def _is_ud(label: str) -> bool:
    """True for a relation of UD; ``||`` marks an arc that was lifted."""
    return all(part == _FALLBACK or deprel_id(part) for part in label.split("||"))


def _sources(meta: dict[str, Any]) -> str:
    sources = meta.get("sources")
    names = [one.get("name") for one in sources or () if isinstance(one, dict)]
    return ", ".join(name for name in names if isinstance(name, str) and name.startswith("UD "))
