"""A UD treebank on disk: its three splits, and the facts in its README."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from syntax.errors import SpecError
from syntax.trees.conllu.reader import read_conllu
from syntax.trees.sentence import Sentence

SPLITS = ("train", "dev", "test")
UNKNOWN = "unknown"

_METADATA = "=== Machine-readable metadata"


@dataclass(frozen=True)
class Treebank:
    """Facts that a model card must give about the data of a model.

    Attributes:
        name: As the repository is called, ``UD_English-EWT``.
        version: Release or commit; ``unknown`` if not given.
        licence: Licence of the annotation, which the model inherits.
    """

    folder: Path
    name: str
    version: str
    licence: str
    attribution: str

    @property
    def language(self) -> str:
        """ISO code in the names of the files, ``en`` of *en_ewt-ud-train.conllu*."""
        name = self.path("train").name
        code, underscore, _ = name.partition("_")
        if not (underscore and code.isalpha() and len(code) in (2, 3)):
            raise SpecError(
                f"{name} does not begin with a language, as en_ewt-ud-train.conllu does; "
                "give --lang",
                folder=str(self.folder),
            )
        return code

    def path(self, split: str) -> Path:
        found = sorted(self.folder.glob(f"*-ud-{split}.conllu"))
        if len(found) != 1:
            raise SpecError(
                f"{self.folder} has {len(found)} files *-ud-{split}.conllu, expected one; "
                f"a treebank to train from needs the splits {', '.join(SPLITS)}",
                folder=str(self.folder),
                split=split,
            )
        return found[0]

    def read(self, split: str, limit: int | None = None) -> list[Sentence]:
        sentences = list(islice(read_conllu(self.path(split)), limit))
        if not sentences:
            raise SpecError(f"{self.path(split)} holds no sentence", split=split)
        return sentences


def filled_columns(sentences: Iterable[Sentence]) -> set[str]:
    """The columns besides form, head and relation that a word of the sentences has."""
    words = [word for sentence in sentences for word in sentence.words]
    columns = ("lemma", "upos", "xpos", "feats")
    return {name for name in columns if any(getattr(word, name) is not None for word in words)}


def open_treebank(
    folder: Path,
    *,
    version: str | None = None,
    licence: str | None = None,
    attribution: str | None = None,
) -> Treebank:
    """Describe a treebank by its README's machine-readable lines; arguments win over them."""
    said = readme_metadata(folder)
    treebank = Treebank(
        folder=folder,
        name=folder.resolve().name,
        version=version or UNKNOWN,
        licence=licence or said.get("License", UNKNOWN),
        attribution=attribution or said.get("Contributors", UNKNOWN),
    )
    for split in SPLITS:
        treebank.path(split)
    return treebank


def readme_metadata(folder: Path) -> dict[str, str]:
    """The ``Key: value`` lines at the end of a treebank's README; none where there is no README."""
    for name in ("README.md", "README.txt"):
        path = folder / name
        if path.is_file():
            _, _, metadata = path.read_text(encoding="utf-8", errors="replace").partition(_METADATA)
            lines = (line.partition(":") for line in metadata.splitlines())
            return {key.strip(): value.strip() for key, _, value in lines if value.strip()}
    return {}
