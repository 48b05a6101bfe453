"""Real pairs of texts, as an upload."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, islice
from pathlib import Path

from clients.benchmarks import BENCHMARKS
from service.settings import Settings
from syntax.examples import Example

DATA = os.environ.get("PARSEBANK_DATA")

Pair = tuple[str, str, str]
"""Id and two texts."""


@dataclass(frozen=True)
class Corpus:
    """Pairs to backfill, and the distinct texts in them."""

    name: str
    lang: str
    pairs: list[Pair]

    @property
    def texts(self) -> list[str]:
        """The distinct texts, in order."""
        return list(dict.fromkeys(chain.from_iterable(pair[1:] for pair in self.pairs)))


def read_corpora(limit: int | None = None) -> Iterator[Corpus]:
    """English for the model that ships with us and, with data, French for an official one."""
    if not DATA:
        yield _read("sample", None, ("train", "dev"), "en", limit)
        return
    folder = Path(DATA) / "benchmarks" / "xnli"
    yield _read("xnli", folder, ("dev", "test"), "en", limit)
    yield _read("xnli", folder, ("dev",), "fr", limit)


def _read(
    name: str, path: Path | None, splits: tuple[str, ...], lang: str, limit: int | None
) -> Corpus:
    reader = BENCHMARKS[name]
    # As `parsebank backfill --limit` counts: in each split.
    items = chain.from_iterable(islice(reader.read(path, split, lang), limit) for split in splits)
    examples = (item for item in items if isinstance(item, Example))
    pairs = [
        (f"{n}", *(segment.text or "" for segment in example.segments))
        for n, example in enumerate(examples)
    ]
    return Corpus(f"{name} {'+'.join(splits)} {lang}", lang, pairs)


def settings(lang: str, **values: object) -> Settings:
    """Settings under which the language's model, and tokenizers in every folder, are found."""
    if lang != "en":
        values["models_dir"] = Path(DATA or "") / "models" / "udpipe"
    parsers = {"en": "udpipe/english-ewt"}  # whose library the others call
    return Settings(**{"tokenizers_dir": "/", "parsers": parsers} | values)


def upload(pairs: list[Pair], lang: str, **options: str) -> Iterator[bytes]:
    """The lines of an upload."""
    spec = {"split": "bench", "lang": lang, "fields": ["premise", "hypothesis"], **options}
    yield json.dumps({"spec": spec}).encode() + b"\n"
    for name, first, second in pairs:
        example = {"example_id": name, "segments": [{"text": first}, {"text": second}]}
        yield json.dumps({"example": example}, ensure_ascii=False).encode() + b"\n"


@contextmanager
def second_tokenizer() -> Iterator[str]:
    """A folder with a tokenizer that is not the service's own."""
    if DATA:
        yield str(Path(DATA) / "tokenizers" / "bert-base-multilingual-cased")
        return
    with tempfile.TemporaryDirectory() as folder:
        words = Path(str(files("service") / "resources" / "tokenizers" / "parsebank-wordpiece-en"))
        content = json.loads((words / "tokenizer.json").read_text(encoding="utf-8"))
        content["normalizer"] = None
        (Path(folder) / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        config = (words / "tokenizer_config.json").read_text(encoding="utf-8")
        (Path(folder) / "tokenizer_config.json").write_text(config, encoding="utf-8")
        yield folder
