"""Put a parser that Parsebank trained, or the card of a remote one, into the models folder."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from service.models.catalogue import Offer
from service.models.download import Downloader, open_client
from service.models.pull import pull
from service.parsers.base import ModelFile
from service.parsers.discovery import models_in
from service.parsers.languages import language_of
from service.parsers.records import ModelRecord, RecordedFile, model_card
from service.parsers.registry import BACKENDS, find_parser, list_models, serves
from service.parsers.udpipe2 import backend as udpipe2
from service.parsers.words.folder import BACKEND, CARD, FAMILY, SEGMENTATION
from service.settings import Settings
from service.tokenizers import LoadedTokenizer, load_tokenizer
from syntax.errors import ConflictError, ModelLoadError, SpecError, UnknownModelError
from syntax.files import write_whole
from syntax.fingerprint import file_sha256
from syntax.parsing.folder import RELATIONS, TOKENIZER, WORDS
from syntax.registry import unknown_name

NO_WORDS: Final = "none"

_UDPIPE: Final = "udpipe.v1"
_NAME: Final = re.compile(r"[\w.+-]*\w[\w.+-]*")


def add(
    name: str,
    exported: Path,
    settings: Settings,
    models_dir: Path,
    *,
    lang: str | None = None,
    words_from: str | None = None,
    tokenizer: str | None = None,
    licence: str | None = None,
    source: Path | None = None,
) -> ModelRecord:
    """Add an exported parser under ``parsebank/<name>``; returns its record.

    ``exported`` is a folder of ``parsebank export-parser``. By default the language is that of the
    training data, the UDPipe model in ``words_from`` (or `NO_WORDS`) the one that serves it, the
    tokenizer that of the training, and the recorded source the exported folder.
    """
    check_name(name, models_dir)
    missing = [file for file in (CARD, WORDS, RELATIONS) if not (exported / file).is_file()]
    if missing:
        raise ModelLoadError(
            f"{exported} lacks {', '.join(missing)}; give a run of the task dependency.v1, or a "
            "folder that `parsebank export-parser` wrote",
            path=str(exported),
        )
    card = model_card(exported / CARD)
    languages = [lang] if lang else card.get("languages") or []
    if len(languages) != 1:
        found = ", ".join(languages) or "no language"
        raise SpecError(f"{exported} was trained on {found}; say which it is to serve: `lang=`")
    language = str(languages[0])
    segmenter = _segmenter(settings, words_from, language)
    loaded = _tokenizer(card, tokenizer)
    content = {
        **card,
        "language": language,
        "licence": licence,
        "special_tokens": loaded.special_tokens.to_json(),
        "words": None if segmenter is None else segmenter.name,
    }
    with TemporaryDirectory(prefix="parsebank-") as made, open_client(1.0) as client:
        folder, full = Path(made), f"{FAMILY}/{name}"
        shutil.copyfile(exported / WORDS, folder / WORDS)
        shutil.copyfile(exported / RELATIONS, folder / RELATIONS)
        loaded.save(folder / TOKENIZER)
        if segmenter is not None:
            shutil.copyfile(segmenter.path, folder / SEGMENTATION)
        text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
        (folder / CARD).write_text(f"{text}\n", encoding="utf-8")
        record = ModelRecord(
            name=full,
            backend=BACKEND,
            files=tuple(
                RecordedFile(f"{full}/{path.name}", file_sha256(path))
                for path in sorted(folder.iterdir())
            ),
            language=language,
            treebank=content.get("treebank"),
            licence=licence,
        )
        offer = Offer(record, (f"{folder}/{{file}}",))
        return pull(offer, models_dir, Downloader(client), source=str(source or exported))


def add_remote(
    name: str, url: str, models_dir: Path, *, lang: str | None = None, licence: str | None = None
) -> Path:
    """Write the card of a model of the UDPipe 2 service at ``url``; returns its file.

    The name is one that the service lists. No text is sent.
    """
    check_name(name, models_dir, udpipe2.FAMILY)
    address = url.rstrip("/")
    with udpipe2.open_service() as client:
        found = udpipe2.ask(client, "GET", f"{address}/models", "models")["models"]
    if name not in found:
        alike = [one for one in found if one.startswith(name)]
        raise unknown_name(f"model of {address}", name, alike or found, UnknownModelError)
    missing = sorted({"tokenizer", "tagger", "parser"}.difference(found[name]))
    if missing:
        raise SpecError(f"{name} of {address} has no {' and no '.join(missing)}; add another")
    language = lang or language_of(name)
    if language is None:
        raise SpecError(f"{name} does not say of which language it is; say so: `lang=`")
    card = {"url": address, "model": name, "language": language, "licence": licence}
    path = models_dir / udpipe2.FAMILY / f"{name}.{udpipe2.FAMILY}"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{json.dumps(card, indent=2)}\n".encode())
    return path


def check_name(name: str, models_dir: Path, family: str = FAMILY) -> None:
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise SpecError(f"{name!r} is no name for a model; use letters, digits, and any of . + - _")
    full = f"{family}/{name}"
    if any(model.name == full for model in models_in(models_dir, BACKENDS)):
        raise ConflictError(
            f"{full} is there already; `parsebank models remove {full}` first, or choose another "
            "name",
            name=full,
        )


def _segmenter(settings: Settings, wanted: str | None, language: str) -> ModelFile | None:
    if wanted == NO_WORDS:
        return None
    if wanted is not None:
        model = find_parser(settings, wanted)
        if model.backend == _UDPIPE:
            return model
        raise SpecError(
            f"{model.name} is not a UDPipe model, and only those find words for another parser; "
            "name one in `words_from=`"
        )
    for model in list_models(settings):
        if model.backend == _UDPIPE and serves(model, language):
            return model
    raise SpecError(
        f"no UDPipe model serves the language {language!r}, and the parser needs one to find "
        f"words. Pull one (`parsebank models list --remote --lang {language}`), name another in "
        "`words_from=`, or say `words_from=none`: then the parser takes only tokens"
    )


def _tokenizer(card: dict[str, Any], wanted: str | None) -> LoadedTokenizer:
    known = card.get("tokenizer") or {}
    loaded = load_tokenizer(wanted or str(known.get("name")))
    if loaded.fingerprint != known.get("fingerprint"):
        raise SpecError(
            f"the parser reads pieces of the tokenizer {known.get('name')} "
            f"({str(known.get('fingerprint'))[:12]}), and {loaded.name} is another one "
            f"({loaded.fingerprint[:12]}); give its folder: `tokenizer=`"
        )
    return loaded
