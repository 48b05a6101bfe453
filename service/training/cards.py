"""Model cards: what a trained model is, for programs (JSON) and for people (Markdown)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from service.parsers.base import ModelFile
from service.parsers.discovery import places
from service.parsers.records import ModelRecord, RecordedFile, changed_records
from service.parsers.registry import checksum
from service.parsers.udpipe.backend import udpipe_version
from service.settings import Settings
from service.training.evaluation import Scores
from service.training.recipe import Recipe
from syntax.fingerprint import file_sha256
from syntax.trees.conllu.treebank import UNKNOWN, Treebank

_INPUTS = {"raw": "raw text", "gold_tokens": "gold tokens"}


@dataclass(frozen=True)
class ModelCard:
    """Facts about one model file; the fields are the keys of ``<name>.json``.

    Attributes:
        language: ISO code.
        treebank_version: Its release or commit.
        licence: Licence of the treebank, and so of the model.
        attribution: Whom to name.
        columns: CoNLL-U columns that the model fills.
        scores: F1 in percent by split, input and metric, CoNLL 2018 definitions.
        date: Day of the training, UTC.
    """

    name: str
    file: str
    backend: str
    backend_version: str
    language: str
    treebank: str
    treebank_version: str
    licence: str
    attribution: str
    columns: list[str]
    sha256: str
    size: int
    recipe: dict[str, Any]
    command: str
    scores: Scores
    date: str

    @classmethod
    def describe(
        cls,
        model: Path,
        treebank: Treebank,
        recipe: Recipe,
        language: str,
        command: str,
        scores: Scores,
    ) -> ModelCard:
        return cls(
            name=model.stem,
            file=model.name,
            backend="udpipe",
            backend_version=udpipe_version(),
            language=language,
            treebank=treebank.name,
            treebank_version=treebank.version,
            licence=treebank.licence,
            attribution=treebank.attribution,
            columns=["form", "upos", *recipe.columns, "head", "deprel"],
            sha256=file_sha256(model),
            size=model.stat().st_size,
            recipe=recipe.content(),
            command=command,
            scores=scores,
            date=datetime.now(UTC).date().isoformat(),
        )


def write_card(card: ModelCard, folder: Path) -> tuple[Path, Path]:
    machine, human = folder / f"{card.name}.json", folder / f"{card.name}.md"
    content = json.dumps(asdict(card), indent=2, ensure_ascii=False)
    machine.write_text(content + "\n", encoding="utf-8")
    human.write_text("\n".join(_markdown(card)) + "\n", encoding="utf-8")
    return machine, human


def note_trained(settings: Settings, model: ModelFile, card: Mapping[str, Any]) -> bool:
    """Record a trained model; true if its files lie in the models folder."""
    folder = settings.models_dir
    if folder is None or not all(_is_searched(file, folder) for file in model.files):
        return False
    record = ModelRecord(
        name=model.name,
        backend=model.backend,
        files=tuple(
            RecordedFile(
                file.resolve().relative_to(folder.resolve()).as_posix(),
                file_sha256(file),
                size=file.stat().st_size,
            )
            for file in model.files
        ),
        language=card.get("language"),
        treebank=card.get("treebank"),
        version=card.get("treebank_version"),
        licence=card.get("licence"),
        attribution=card.get("attribution"),
        source=card.get("command"),
        sha256=checksum(model),
        size=model.size,
        date=datetime.now(UTC).date().isoformat(),
    )
    with changed_records(folder) as records:
        records[record.name] = record
    return True


def _is_searched(file: Path, folder: Path) -> bool:
    searched = {place.resolve() for place in places(folder)}
    return not searched.isdisjoint(file.resolve().parents[:2])


def _markdown(card: ModelCard) -> Iterator[str]:
    yield from (f"# {card.name}", "")
    yield f"A UDPipe 1 model (tokenizer, tagger, parser) for `{card.language}`, trained from"
    yield f"{card.treebank}, version {card.treebank_version}. It fills the CoNLL-U columns"
    yield from (f"{', '.join(column.upper() for column in card.columns)}.", "")
    yield from _licence_section(card)
    yield from _score_section(card)
    yield from _training_section(card)
    yield from _use_section(card)


def _licence_section(card: ModelCard) -> Iterator[str]:
    yield from ("## Licence and attribution", "")
    yield f"The model is a derivative of {card.treebank} and is distributed under the treebank's"
    yield f"own licence: **{card.licence}**. Whoever passes the model on must name the authors and,"
    yield "where the licence says so (SA), share it alike."
    if UNKNOWN in (card.licence, card.attribution):
        yield "The command that made it was told no licence or authors: find out before sharing."
    yield from ("", f"Authors of the treebank: {card.attribution}", "")


_NEEDED: Final = {
    "XPOS": {"xpos"},
    "UFeats": {"feats"},
    "AllTags": {"xpos", "feats"},
    "Lemmas": {"lemma"},
}


def filled_metrics(metrics: Iterable[str], columns: Collection[str]) -> list[str]:
    return [metric for metric in metrics if _NEEDED.get(metric, set()) <= set(columns)]


def _score_section(card: ModelCard) -> Iterator[str]:
    every = next(iter(card.scores.values()))["raw"]
    metrics = filled_metrics(every, card.columns)
    yield from ("## Scores", "")
    yield "F1 in percent, as the CoNLL 2018 shared task defines the metrics (Zeman et al. 2018)."
    yield from ("Raw text: the model also splits sentences, tokens and words.", "")
    yield f"| split, input | {' | '.join(metrics)} |"
    yield "|---" * (len(metrics) + 1) + "|"
    for split, by_input in card.scores.items():
        for name, figures in by_input.items():
            cells = " | ".join(f"{figures[metric]:.2f}" for metric in metrics)
            yield f"| {split}, {_INPUTS[name]} | {cells} |"
    yield ""


def _training_section(card: ModelCard) -> Iterator[str]:
    yield from ("## Training", "", "```", card.command, "```", "")
    yield f"Recipe `{card.recipe['name']}`, UDPipe {card.backend_version}, {card.date}."
    yield f"Every option is in `{card.name}.json`. Learned from the train split; the dev split"
    yield "chose the best iteration; the test split was used for the scores only."
    yield from ("", f"{card.size:,} bytes, sha256 `{card.sha256}`", "")


def _use_section(card: ModelCard) -> Iterator[str]:
    yield from ("## Intended use and limits", "")
    yield "Made for syntax features, demonstrations and tests where no larger model can be had."
    yield "Larger models (Stanza, UDPipe 2) are better by several points of LAS."
    missing = [name for name in ("lemma", "xpos", "feats") if name not in card.columns]
    if missing:
        yield f"It gives no {', '.join(name.upper() for name in missing)}: scores for them are"
        yield "those of an empty column."
    yield "Expect lower scores on kinds of text that the treebank does not hold. Parsing time is"
    yield "quadratic in the length of a sentence."
